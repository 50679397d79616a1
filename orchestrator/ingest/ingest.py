"""Ingest as the command runs it: with the configured embedder, and a progress bar."""

from __future__ import annotations

from collections.abc import Sequence
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

from orchestrator.ingest.embedding import Payer
from orchestrator.ingest.shards.processes import Spread
from orchestrator.ingest.writer import writing
from orchestrator.settings import Settings
from posology.corpus.files import count_rows, expand
from posology.index.build.ingest import ingest
from posology.index.build.report import IngestProgress, IngestReport


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
        settings: see :func:`orchestrator.ingest.writer.writing`.
        place: the index.
        embedder: as :func:`posology.index.embedders.load` takes it.
        vectors: see :func:`posology.index.build.ingest.ingest`.
        payer: pays for vectors that are bought; ``None``: the configured tenant.
        spread: workers that encode; ``None``: this process does.
        console: draws a progress bar; ``None``: none.

    Raises:
        PosologyError: nothing can be ingested; what is wrong with single records is in the report.
    """
    who = replace(payer or Payer(), given=vectors is not None)
    with (
        writing(settings, place=place, embedder=embedder, payer=who, spread=spread) as ready,
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
            ready.index,
            ready.embedder,
            annotator=ready.annotator,
            codec=ready.codec,
            vectors=vectors,
            progress=advance,
            batch=ready.batch,
            making=ready.making,
        )


def _rows(path: Path) -> int:
    return sum(count_rows(file) for file in expand([path]) if isinstance(file, Path))
