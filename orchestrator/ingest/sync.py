"""Sync as the command runs it: with the configured models, and a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from anyio import run
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from orchestrator.ingest.embedding import LOT, IngestEstimate, changed_of, estimate
from orchestrator.ingest.writer import Target, Writer, open_writer
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
from posology.index.sync.arrivals import files_of, readable
from posology.index.sync.order import Plan, plan, plan_rebuild
from posology.index.sync.prospect import prospect
from posology.index.sync.rebuild import rebuild
from posology.index.sync.rebuilt import Rebuilt
from posology.index.sync.report import SyncProgress, SyncReport
from posology.index.sync.sync import sync


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncOptions:
    """How the files of a folder are applied."""

    #: see :func:`posology.index.sync.sync.sync`
    allow_gaps: bool = False
    #: see there
    reapply: bool = False
    #: see there
    publish_each: bool = False
    #: whether the folder has all files of the index, see :func:`posology.index.sync.rebuild.rebuild`
    rebuild: bool = False
    #: see there
    allow_removals: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncForecast:
    """Plan of a sync, with its estimated cost."""

    plan: Plan
    #: names of all files, if one of them cannot be read; checked for a rebuild only
    waiting: tuple[str, ...] = ()
    #: files that cannot be read
    broken: tuple[BadFile, ...] = ()
    #: ``None``: the index is not rebuilt
    rebuilt: Rebuilt | None = None
    #: name and version of the published index; ``None``: there is no index yet
    index: str | None = None
    #: ``None``: vectors are computed on this machine
    vectors: IngestEstimate | None = None


def forecast(
    folder: Path, settings: Settings, options: SyncOptions, target: Target, *, bought: bool
) -> SyncForecast:
    """Return what a sync will do, and what its vectors will cost. Blocking; nothing is spent or written to an index.

    Args:
        folder: the files; they are read if vectors are bought, or the index is rebuilt.
        settings: the configuration.
        options: how the files are applied.
        target: the index, which need not exist yet, and who pays for its vectors.
        bought: whether vectors are bought; otherwise no model is loaded.

    Raises:
        SyncRefused: the files cannot be applied as they are.
        IndexMismatch: the index was made with another embedder.
        IndexLocked: the index is to be rebuilt, and another process is writing it.
        PosologyError: the price of the vectors is unknown.
    """
    index = _open(settings, target.place)
    name = target.embedder or settings.embedder
    paid = load_embedder(name, options=settings.embedding) if bought else None
    if index is not None and paid is not None:
        index.require(paid.name, paid.dim)
    version = None if index is None else index.version

    def priced(changed: Iterable[Sequence[Record]]) -> IngestEstimate | None:
        if not isinstance(paid, OpenAIEmbedder):
            return None
        models = Models(name, settings.embedding)
        return run(estimate, changed, paid, settings, models, target.payer)

    if not options.rebuild:
        todo = _plan(folder, index, options)
        return SyncForecast(plan=todo, index=version, vectors=priced(changed_of(todo.files, index)))
    gaps, removals = options.allow_gaps, options.allow_removals
    with (
        nullcontext() if index is None else index.lock,
        prospect(folder, index, allow_gaps=gaps, allow_removals=removals) as found,
    ):
        return SyncForecast(
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
    options: SyncOptions,
    target: Target | None = None,
    *,
    console: Console | None = None,
) -> SyncReport:
    """Apply a folder's files, creating the index if there is none, unless the files are refused. Blocking.

    Args:
        folder: the files.
        settings: the configuration.
        options: how the files are applied.
        target: the index, and who computes and pays for its vectors; ``None``: as configured.
        console: shows a progress bar; ``None``: no bar.

    Raises:
        PosologyError: nothing can be applied; faults of single records are in the report.
    """
    target = target or Target()
    if _open(settings, target.place) is None:
        # refused files must not leave an empty index
        _plan(folder, None, options)
    with open_writer(settings, target) as writer, _bar(console) as bar:
        task = bar.add_task("comparing the folder with the index", total=None, files="")

        def advance(now: SyncProgress) -> None:
            done = now.ingest.written + now.ingest.unchanged
            verb = "reading " if now.reading else ""
            name = f"{verb}{Path(now.ingest.path).name} ({done:,} records)"
            files = f"{now.applied}/{now.files} files"
            bar.update(task, total=now.files, completed=now.applied, description=name, files=files)

        report = _apply(folder, writer, options, advance)
        if report.applied:
            done = len(report.applied)
            bar.update(task, total=done, completed=done, files=f"{done}/{done} files")
        return report


def _apply(
    folder: Path, writer: Writer, options: SyncOptions, progress: Callable[[SyncProgress], None]
) -> SyncReport:
    if options.rebuild:
        return rebuild(
            folder,
            writer.index,
            writer.source,
            allow_gaps=options.allow_gaps,
            allow_removals=options.allow_removals,
            progress=progress,
        )
    return sync(
        folder,
        writer.index,
        writer.source,
        allow_gaps=options.allow_gaps,
        reapply=options.reapply,
        publish_each=options.publish_each,
        progress=progress,
    )


def _bar(console: Console | None) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[files]}"),
        TimeElapsedColumn(),
        console=console,
        disable=console is None,
    )


def _open(settings: Settings, place: str | Path | None) -> Index | None:
    try:
        return Index.open(index_place(settings, place))
    except IndexMissing:
        return None


def _plan(folder: Path, index: Index | None, options: SyncOptions) -> Plan:
    files = files_of(folder)
    if options.rebuild:
        return plan_rebuild(files, allow_gaps=options.allow_gaps)
    known = () if index is None else applied_files(index.connection, index.uri)
    with readable(folder):
        return plan(
            files,
            {file.name: file for file in known},
            checksums.md5,
            allow_gaps=options.allow_gaps,
            reapply=options.reapply,
        )
