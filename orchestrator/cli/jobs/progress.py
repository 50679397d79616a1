"""Progress of a batch in the terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from orchestrator.rendering.forms.jobs import spent
from posology.published.jobs import BatchOutput
from posology.types import JobState

#: seconds between lines where there is no terminal to draw a bar on
_LINE = 30.0


def over(batch: BatchOutput) -> int:
    """How many rows have ended."""
    return batch.rejected + sum(n for state, n in batch.states.items() if state.over)


def bad(batch: BatchOutput) -> int:
    """How many rows have ended without an answer or a refusal."""
    return over(batch) - batch.states.get(JobState.SUCCEEDED, 0)


def summary(batch: BatchOutput, failed: int, where: str) -> list[str]:
    """Return a summary of a batch, with advice on its failures.

    Args:
        batch: as it is now.
        failed: rows of the output that have an error; jobs may have been tried again since.
        where: the output.
    """
    first = (
        f"{batch.total:,} rows in {where}: {batch.total - failed:,} answered or refused, "
        f"{failed:,} failed; spent {spent(batch)}"
    )
    lines = [first]
    if batch.rejected:
        lines.append(f"{batch.rejected:,} rows were not valid requests: see their errors")
    again = "then move the output away and run this command again"
    if any(batch.states.get(one, 0) for one in (JobState.FAILED, JobState.EXPIRED)):
        lines.append(
            f"to try failed rows again: posology jobs retry --all-failed --tenant {batch.tenant}; {again}"
        )
    if cancelled := batch.states.get(JobState.CANCELLED, 0):
        lines.append(
            f"{cancelled:,} rows were cancelled; to try them again: posology jobs retry ID … --tenant {batch.tenant} "
            f"with the ids of their jobs; {again}"
        )
    return lines


class BatchProgress:
    """A bar with rate, spend and time left; a line now and then where there is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TextColumn("{task.fields[spent]}"),
            TextColumn("[red]{task.fields[bad]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            # a rate over minutes: one slow question must not change it much
            speed_estimate_period=120.0,
        )
        self._task = self._bar.add_task("", total=None, spent="", bad="")
        self._told = time.monotonic()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def show(self, batch: BatchOutput) -> None:
        """Show a batch as it is now."""
        failed = bad(batch)
        self._bar.update(
            self._task,
            completed=over(batch),
            total=batch.total,
            spent=spent(batch),
            bad=f"{failed} failed" if failed else "",
        )
        if not self._console.is_terminal and time.monotonic() - self._told > _LINE:
            self._told = time.monotonic()
            self.tell(
                f"{over(batch):,} of {batch.total:,} rows have ended, {failed:,} of them failed; "
                f"spent {spent(batch)}"
            )

    def tell(self, line: str) -> None:
        """Say a line above the bar."""
        self._console.print(Text(line), soft_wrap=True)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f}/s", style="dim")
