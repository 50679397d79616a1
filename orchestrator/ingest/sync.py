"""A sync as the command runs it: with the configured embedder, and a progress bar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from anyio import run
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from orchestrator.ingest.embedding import LOT, IngestEstimate, Payer, changed_of, estimate
from orchestrator.ingest.shards.processes import Spread
from orchestrator.ingest.writer import writing
from orchestrator.models import Models
from orchestrator.service import index_place
from orchestrator.settings import Settings
from posology.corpus import checksums
from posology.corpus.items import Record
from posology.errors import BadFile, IndexMissing
from posology.index.embedders import load as load_embedder
from posology.index.embedders.paid.embedder import OpenAIEmbedder
from posology.index.manifest import applied_files
from posology.index.store import Index
from posology.index.sync.arrivals import files_of
from posology.index.sync.order import Plan, plan, plan_rebuild
from posology.index.sync.prospect import prospect
from posology.index.sync.rebuild import rebuild
from posology.index.sync.report import Rebuilt, SyncProgress, SyncReport
from posology.index.sync.sync import sync


@dataclass(frozen=True, kw_only=True, slots=True)
class Ways:
    """How the files of a folder are applied."""

    #: see :func:`posology.index.sync.sync.sync`
    allow_gaps: bool = False
    #: see there
    reapply: bool = False
    #: see there
    publish_each: bool = False
    #: whether the folder is all there is, see :func:`posology.index.sync.rebuild.rebuild`
    rebuild: bool = False
    #: see there
    allow_removals: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreseen:
    """What a sync will do, and cost."""

    plan: Plan
    #: names of files that wait, since one of them cannot be read; only a rebuild looks
    waiting: tuple[str, ...] = ()
    broken: tuple[BadFile, ...] = ()
    #: ``None``: the index is not rebuilt
    rebuilt: Rebuilt | None = None
    #: name and version that readers see now; ``None``: there is no index yet
    index: str | None = None
    #: ``None``: vectors are computed on this machine
    vectors: IngestEstimate | None = None


def foresee(
    folder: Path,
    settings: Settings,
    ways: Ways,
    payer: Payer,
    *,
    bought: bool,
    place: str | None = None,
    embedder: str | None = None,
) -> Foreseen:
    """What a sync will do, and what its vectors will cost. Blocking; nothing is spent, or written to an index.

    Args:
        folder: the files; they are read once more where vectors are bought, or where the index is to be rebuilt.
        settings: say what the arguments do not.
        ways: how the files are applied.
        payer: pays for vectors that are bought.
        bought: whether they are; no model is loaded where they are not.
        place: the index; it need not be there yet.
        embedder: as :func:`posology.index.embedders.load` takes it.

    Raises:
        SyncRefused: the files cannot be applied as they are.
        IndexMismatch: the index was made with another embedder.
        IndexLocked: it is to be rebuilt, and another process is writing it.
        PosologyError: it is not known what the vectors will cost.
    """
    index = _opened(settings, place)
    name = embedder or settings.embedder
    paid = load_embedder(name, options=settings.embedding) if bought else None
    if index is not None and paid is not None:
        index.require(paid.name, paid.dim)
    version = None if index is None else index.version

    models = Models(name, settings.embedding)

    def priced(changed: Iterable[Sequence[Record]]) -> IngestEstimate | None:
        if not isinstance(paid, OpenAIEmbedder):
            return None
        return run(estimate, changed, paid, settings, models, payer)

    if not ways.rebuild:
        todo = _planned(folder, index, ways)
        return Foreseen(plan=todo, index=version, vectors=priced(changed_of(todo.files, index)))
    with (
        nullcontext() if index is None else index.lock,
        prospect(
            folder, index, allow_gaps=ways.allow_gaps, allow_removals=ways.allow_removals
        ) as found,
    ):
        return Foreseen(
            plan=found.plan,
            waiting=found.waiting,
            broken=found.broken,
            rebuilt=found.rebuilt,
            index=version,
            vectors=priced(part.records for part in found.batches(LOT)),
        )


def run_sync(
    folder: Path,
    settings: Settings,
    ways: Ways,
    *,
    place: str | None = None,
    embedder: str | None = None,
    payer: Payer | None = None,
    spread: Spread | None = None,
    console: Console | None = None,
) -> SyncReport:
    """Apply a folder's files, making the index if there is none, unless they are refused. Blocking.

    Args:
        folder: the files.
        settings: see :func:`orchestrator.ingest.writer.writing`.
        ways: how the files are applied.
        place: the index.
        embedder: as :func:`posology.index.embedders.load` takes it.
        payer: pays for vectors that are bought; ``None``: the configured tenant.
        spread: workers that encode; ``None``: this process does.
        console: draws a progress bar; ``None``: none.

    Raises:
        PosologyError: nothing can be applied; what is wrong with single records is in the report.
    """
    if _opened(settings, place) is None:
        # before an index is made for nothing
        _planned(folder, None, ways)
    with (
        writing(settings, place=place, embedder=embedder, payer=payer, spread=spread) as ready,
        Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[files]}"),
            TimeElapsedColumn(),
            console=console,
            disable=console is None,
        ) as bar,
    ):
        task = bar.add_task("comparing the folder with the index", total=None, files="")

        def advance(now: SyncProgress) -> None:
            done = now.ingest.written + now.ingest.unchanged
            verb = "reading " if now.reading else ""
            said = f"{verb}{Path(now.ingest.path).name} ({done:,} records)"
            files = f"{now.applied}/{now.files} files"
            bar.update(task, total=now.files, completed=now.applied, description=said, files=files)

        if ways.rebuild:
            report = rebuild(
                folder,
                ready.index,
                ready.embedder,
                annotator=ready.annotator,
                codec=ready.codec,
                making=ready.making,
                batch=ready.batch,
                allow_gaps=ways.allow_gaps,
                allow_removals=ways.allow_removals,
                progress=advance,
            )
        else:
            report = sync(
                folder,
                ready.index,
                ready.embedder,
                annotator=ready.annotator,
                codec=ready.codec,
                making=ready.making,
                batch=ready.batch,
                allow_gaps=ways.allow_gaps,
                reapply=ways.reapply,
                publish_each=ways.publish_each,
                progress=advance,
            )
        if report.applied:
            done = len(report.applied)
            bar.update(task, total=done, completed=done, files=f"{done}/{done} files")
        return report


def _opened(settings: Settings, place: str | None) -> Index | None:
    try:
        return Index.open(index_place(settings, place))
    except IndexMissing:
        return None


def _planned(folder: Path, index: Index | None, ways: Ways) -> Plan:
    files = files_of(folder)
    if ways.rebuild:
        return plan_rebuild(files, allow_gaps=ways.allow_gaps)
    known = () if index is None else applied_files(index.connection, index.uri)
    try:
        return plan(
            files,
            {file.name: file for file in known},
            checksums.md5,
            allow_gaps=ways.allow_gaps,
            reapply=ways.reapply,
        )
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(error.filename or folder)) from error
