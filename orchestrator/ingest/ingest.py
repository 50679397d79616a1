"""Ingest as the command runs it: with the configured models, and its progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Task as Bar
from rich.text import Text

from orchestrator.ingest.writer import Target, open_writer
from orchestrator.settings import Settings
from posology.corpus.files import count_rows
from posology.corpus.folders import expand
from posology.corpus.references.columns import GUESSED, Columns
from posology.index.build.ingest import ingest
from posology.index.build.report import IngestProgress, IngestReport

#: seconds between two lines of progress without a terminal
_LINE = 20.0
#: seconds over which the rate is measured
_WINDOW = 60.0


def run_ingest(
    paths: Sequence[Path],
    settings: Settings,
    target: Target | None = None,
    *,
    vectors: Path | None = None,
    columns: Columns = GUESSED,
    console: Console | None = None,
    quick: bool = False,
) -> IngestReport:
    """Ingest files, creating the index if there is none. Blocking.

    Args:
        paths: files and folders.
        settings: the configuration.
        target: the index, and who computes and pays for its vectors; ``None``: as configured.
        vectors: see :func:`posology.index.build.ingest.ingest`.
        columns: names of columns of tables.
        console: shows the progress, as a bar or, without a terminal, in lines; ``None``: none is shown.
        quick: whether to make all passages searchable before sentences and token codes are encoded. A killed run is
            finished by the next, with or without it.

    Raises:
        PosologyError: nothing can be ingested; faults of single records are in the report.
    """
    target = target or Target()
    target = replace(target, payer=replace(target.payer, given=vectors is not None))
    with _shown(console) as shown:
        shown.phase("loading the encoder")
        with open_writer(settings, target) as writer:
            shown.phase("counting records")
            # reads the files once more, at about a hundredth of the cost of encoding them
            total = sum(_rows(path, columns) for path in paths)
            shown.start(total)
            if quick:
                ingest(
                    paths,
                    writer.index,
                    writer.source,
                    vectors=vectors,
                    columns=columns,
                    progress=shown.committed,
                    total=total,
                    row=shown.row,
                    phase=shown.phase,
                    quick=True,
                )
                shown.say(
                    f"{writer.index.count():,} passages are searchable; sentences and token codes follow"
                )
                shown.start(total)
            return ingest(
                paths,
                writer.index,
                writer.source,
                vectors=vectors,
                columns=columns,
                progress=shown.committed,
                total=None if quick else total,
                row=shown.row,
                phase=shown.phase,
            )


class Shown:
    """Progress of an ingest for a user: phase, records, rate and time left.

    Args:
        bar: a bar for a terminal.
        say: prints one line; ``None``: the bar shows it.
        clock: seconds, growing.
    """

    def __init__(
        self,
        bar: Progress,
        say: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None)
        self._say = say
        self._clock = clock
        self._name = ""
        self._done = 0
        self._total = 0
        self._began = self._said = clock()

    def phase(self, name: str) -> None:
        """Show what is being done."""
        self._name = name
        self._bar.update(self._task, description=name)
        if self._say is not None and name:
            self._say(f"{name} …")
            self._said = self._clock()

    def say(self, line: str) -> None:
        """Print a line."""
        if self._say is not None:
            self._say(line)
        elif not self._bar.disable:
            self._bar.console.print(Text(line))

    def start(self, total: int) -> None:
        """Show a number of records of which none is done."""
        self._total, self._done = total, 0
        self._began = self._clock()
        self._bar.reset(self._task, total=total, description=self._name)

    def row(self) -> None:
        """Count one record."""
        self._update(self._done + 1)

    def committed(self, now: IngestProgress) -> None:
        """Show the records that are committed."""
        self._update(now.written + now.unchanged + now.replaced + now.bad)

    def _update(self, done: int) -> None:
        self._done = done
        self._bar.update(self._task, completed=done)
        now = self._clock()
        if self._say is not None and now - self._said >= _LINE:
            self._said = now
            rate = done / max(now - self._began, 1e-9)
            left = max(self._total - done, 0) / rate if rate else 0.0
            self._say(
                f"{self._name}: {done:,} of {self._total:,} records, {rate:.1f} a second, {_time(left)} left"
            )


class _Rate(ProgressColumn):
    """Records a second."""

    def render(self, task: Bar) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.1f}/s", style="dim")


@contextmanager
def _shown(console: Console | None) -> Iterator[Shown]:
    terminal = console is not None and console.is_terminal
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        console=console,
        disable=not terminal,
        speed_estimate_period=_WINDOW,
    ) as bar:
        say = None
        if console is not None and not terminal:

            def say(line: str) -> None:
                console.print(Text(line), soft_wrap=True)

        yield Shown(bar, say)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _rows(path: Path, columns: Columns) -> int:
    return sum(
        count_rows(file, columns=columns) for file in expand([path]) if isinstance(file, Path)
    )
