"""A sync as the command runs it: with the configured embedder, and a progress bar."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from orchestrator.embedding.literature import Payer, paying
from orchestrator.models import Models
from orchestrator.service import index_place
from orchestrator.settings import Settings
from orchestrator.sharding.running import SHARD, Spread, spreading
from posology.index.arriving import files_of
from posology.index.embedders import load as load_embedder
from posology.index.ingest import BATCH
from posology.index.making import Making
from posology.index.store import Index
from posology.index.sync_report import SyncProgress, SyncReport
from posology.index.syncing import sync
from posology.llm.embedding.embedder import OpenAIEmbedder
from posology.seams import Embedder
from strategies.compression.late.codec import LateCodec
from strategies.compression.self_information import make_annotator


def run_sync(
    folder: Path,
    settings: Settings,
    *,
    place: str | None = None,
    embedder: str | None = None,
    allow_gaps: bool = False,
    reapply: bool = False,
    publish_each: bool = False,
    payer: Payer | None = None,
    spread: Spread | None = None,
    console: Console | None = None,
) -> SyncReport:
    """Apply a folder's files, making the index if there is none. Blocking.

    Args:
        folder: the files.
        settings: say what the arguments do not, and for how long old versions are kept.
        place: the index.
        embedder: as :func:`posology.index.embedders.load` takes it.
        allow_gaps: see :func:`posology.index.syncing.sync`.
        reapply: see there.
        publish_each: see there.
        payer: pays for vectors that are bought; ``None``: the configured tenant.
        spread: workers that encode; ``None``: this process does.
        console: draws a progress bar; ``None``: none.

    Raises:
        PosologyError: nothing can be applied; what is wrong with single records is in the report.
    """
    # before an index is made for nothing
    files_of(folder)
    name = embedder or settings.embedder
    encoder = load_embedder(name, options=settings.embedding)
    paid: AbstractContextManager[Embedder] = nullcontext(encoder)
    if isinstance(encoder, OpenAIEmbedder):
        paid = paying(encoder, settings, Models(name, settings.embedding), payer or Payer())
    annotator = make_annotator(settings.self_information)
    codec = LateCodec.packaged() if settings.token_codes else None
    index = Index.open_or_create(
        index_place(settings, place),
        encoder.name,
        encoder.dim,
        annotator=annotator.name,
        codec=codec,
    )
    index.keep = settings.kept_versions
    encoding: AbstractContextManager[Making | None] = (
        nullcontext() if spread is None else spreading(spread, settings, index, embedder=name)
    )
    with (
        paid as ready,
        encoding as making,
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
            said = f"{Path(now.ingest.path).name} ({done:,} records)"
            files = f"{now.applied}/{now.files} files"
            bar.update(task, total=now.files, completed=now.applied, description=said, files=files)

        report = sync(
            folder,
            index,
            ready,
            annotator=annotator,
            codec=codec,
            making=making,
            batch=BATCH if spread is None else SHARD,
            allow_gaps=allow_gaps,
            reapply=reapply,
            publish_each=publish_each,
            progress=advance,
        )
        if report.applied:
            done = len(report.applied)
            bar.update(task, total=done, completed=done, files=f"{done}/{done} files")
        return report
