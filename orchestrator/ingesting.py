"""Ingest as the command runs it: with the configured embedder, and a progress bar."""

from __future__ import annotations

from collections.abc import Sequence
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

from orchestrator.service import index_place
from orchestrator.settings import Settings
from posology.corpus.jsonl import count_rows, expand
from posology.index.embedders import load as load_embedder
from posology.index.ingest import ingest
from posology.index.report import IngestProgress, IngestReport
from posology.index.store import Index


def run_ingest(
    paths: Sequence[Path],
    settings: Settings,
    *,
    place: str | None = None,
    embedder: str | None = None,
    vectors: Path | None = None,
    console: Console | None = None,
) -> IngestReport:
    """Ingest files, making the index if there is none. Blocking.

    Args:
        paths: files and folders.
        settings: say where the index is, and which embedder, where the arguments do not.
        place: the index.
        embedder: a sentence-transformers name or folder.
        vectors: see :func:`posology.index.ingest.ingest`.
        console: draws a progress bar; ``None``: none.

    Raises:
        PosologyError: nothing can be ingested; what is wrong with single records is in the report.
    """
    where = index_place(settings, place)
    encoder = load_embedder(embedder or settings.embedder)
    index = Index.open_or_create(where, encoder.name, encoder.dim)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=console is None,
    ) as bar:
        # counting reads the files once more, which takes about a hundredth of encoding them
        total = 0 if console is None else sum(_rows(path) for path in paths)
        task = bar.add_task("ingest", total=total)

        def advance(now: IngestProgress) -> None:
            bar.update(
                task,
                completed=now.written + now.unchanged + now.bad,
                description=Path(now.path).name,
            )

        return ingest(paths, index, encoder, vectors=vectors, progress=advance)


def _rows(path: Path) -> int:
    return sum(count_rows(file) for file in expand([path]) if isinstance(file, Path))
