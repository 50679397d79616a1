"""How far a run is, as a person follows it in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.text import Text

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
