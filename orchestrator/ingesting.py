"""Ingest as the command runs it: with the configured embedder, and a progress bar."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from orchestrator.embedding.literature import Payer, paying
from orchestrator.models import Models
from orchestrator.service import index_place
from orchestrator.settings import Settings
from orchestrator.sharding.running import SHARD, Spread, spreading
from posology.corpus.files import count_rows, expand
from posology.index.embedders import load as load_embedder
from posology.index.ingest import BATCH, ingest
from posology.index.making import Making
from posology.index.places import Place
from posology.index.report import IngestProgress, IngestReport
from posology.index.store import Index
from posology.llm.embedding.embedder import OpenAIEmbedder
from posology.seams import Embedder
from strategies.compression.late.codec import LateCodec
from strategies.compression.self_information import make_annotator


def run_ingest(
    paths: Sequence[Path],
    settings: Settings,
    *,
    place: str | None = None,
    embedder: str | None = None,
    vectors: Path | None = None,
    payer: Payer | None = None,
    spread: Spread | None = None,
    console: Console | None = None,
) -> IngestReport:
    """Ingest files, making the index if there is none. Blocking.

    Args:
        paths: files and folders.
        settings: say where the index is, and which embedder, where the arguments do not; by which language
            model the passages are annotated, and whether token codes are kept: they are where the packaged
            codec is for this embedder.
        place: the index.
        embedder: as :func:`posology.index.embedders.load` takes it.
        vectors: see :func:`posology.index.ingest.ingest`.
        payer: pays for vectors that are bought; ``None``: the configured tenant.
        spread: workers that encode; ``None``: this process does.
        console: draws a progress bar; ``None``: none.

    Raises:
        PosologyError: nothing can be ingested; what is wrong with single records is in the report.
    """
    where, name = index_place(settings, place), embedder or settings.embedder
    encoder = load_embedder(name, options=settings.embedding)
    if isinstance(encoder, OpenAIEmbedder):
        who = replace(payer or Payer(), given=vectors is not None)
        with paying(encoder, settings, Models(name, settings.embedding), who) as bought:
            return _run(paths, settings, where, bought, vectors, console, spread, name)
    return _run(paths, settings, where, encoder, vectors, console, spread, name)


def _run(
    paths: Sequence[Path],
    settings: Settings,
    where: Place,
    encoder: Embedder,
    vectors: Path | None,
    console: Console | None,
    spread: Spread | None,
    name: str | None,
) -> IngestReport:
    annotator = make_annotator(settings.self_information)
    codec = LateCodec.packaged() if settings.token_codes else None
    index = Index.open_or_create(
        where, encoder.name, encoder.dim, annotator=annotator.name, codec=codec
    )
    index.keep = settings.kept_versions
    encoding: AbstractContextManager[Making | None] = (
        nullcontext() if spread is None else spreading(spread, settings, index, embedder=name)
    )
    with (
        encoding as making,
        Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=console is None,
        ) as bar,
    ):
        # counting reads the files once more, which takes about a hundredth of encoding them
        total = 0 if console is None else sum(_rows(path) for path in paths)
        task = bar.add_task("ingest", total=total)

        def advance(now: IngestProgress) -> None:
            bar.update(
                task,
                completed=now.written + now.unchanged + now.bad,
                description=Path(now.path).name,
            )

        return ingest(
            paths,
            index,
            encoder,
            annotator=annotator,
            codec=codec,
            vectors=vectors,
            progress=advance,
            batch=BATCH if spread is None else SHARD,
            making=making,
        )


def _rows(path: Path) -> int:
    return sum(count_rows(file) for file in expand([path]) if isinstance(file, Path))
