"""What commands share that pay for many calls: what is said before, and what is said when they are interrupted."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.text import Text

from orchestrator.cli.common import INTERRUPTED, fail

RunCostOption = Annotated[
    str | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        help="What all calls may cost together, those before an interruption included.",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Tell what it will cost, and ask nothing.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether to go on.")]


def somebody_watches() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def buying(calls: int, path: Path, *, check: bool) -> Iterator[Callable[[int], None]]:
    """Ask whether to go on, show how far it is, and say what is kept where it breaks off.

    Args:
        calls: that are to be made, or conversations.
        path: where replies are kept.
        check: whether somebody is asked first.

    Yields:
        What is told how many more have ended.

    Raises:
        typer.Exit: somebody said no, or interrupted it.
    """
    if check and calls and not typer.confirm("Ask?", err=True):
        raise typer.Exit
    try:
        with progress(calls) as tick:
            yield tick
    except BaseException as error:
        fail(f"what was replied is kept in {path}: run this command again to go on")
        if isinstance(error, KeyboardInterrupt):
            raise typer.Exit(INTERRUPTED) from None
        raise


#: seconds between lines where there is no terminal to draw a bar on
_LINE = 30.0


@contextmanager
def progress(calls: int) -> Iterator[Callable[[int], None]]:
    """What is told how many calls more have ended: a bar, or a line now and then where there is no terminal.

    Args:
        calls: that there are.
    """
    console = Console(stderr=True)
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    done, told = 0, time.monotonic()

    def tell(more: int) -> None:
        nonlocal done, told
        done += more
        bar.update(task, completed=done)
        if not console.is_terminal and time.monotonic() - told > _LINE:
            told = time.monotonic()
            console.print(Text(f"{done:,} of {calls:,} calls have ended"), soft_wrap=True)

    with bar:
        task = bar.add_task("", total=calls)
        yield tell
