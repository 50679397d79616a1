"""Ingest as the command runs it: with the configured models, and a progress bar."""

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

from orchestrator.ingest.writer import Target, open_writer
from orchestrator.settings import Settings
from posology.corpus.files import count_rows, expand
from posology.index.build.ingest import ingest
from posology.index.build.report import IngestProgress, IngestReport


def run_ingest(
    paths: Sequence[Path],
    settings: Settings,
    target: Target | None = None,
    *,
    vectors: Path | None = None,
    console: Console | None = None,
) -> IngestReport:
    """Ingest files, creating the index if there is none. Blocking.

    Args:
        paths: files and folders.
        settings: the configuration.
        target: the index, and who computes and pays for its vectors; ``None``: as configured.
        vectors: see :func:`posology.index.build.ingest.ingest`.
        console: shows a progress bar; ``None``: no bar.

    Raises:
        PosologyError: nothing can be ingested; faults of single records are in the report.
    """
    target = target or Target()
    target = replace(target, payer=replace(target.payer, given=vectors is not None))
    with open_writer(settings, target) as writer, _bar(console) as bar:
        # counting reads the files once more, at about a hundredth of the cost of encoding them
        total = 0 if console is None else sum(_rows(path) for path in paths)
        task = bar.add_task("ingest", total=total)

        def advance(now: IngestProgress) -> None:
            bar.update(
                task,
                completed=now.written + now.unchanged + now.bad,
                description=Path(now.path).name,
            )

        return ingest(paths, writer.index, writer.source, vectors=vectors, progress=advance)


def _bar(console: Console | None) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=console is None,
    )


def _rows(path: Path) -> int:
    return sum(count_rows(file) for file in expand([path]) if isinstance(file, Path))
