"""How work grows with what it is given."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

#: by which the larger work is larger: in proportion it takes as many times the steps, as its square the square
TIMES = 4
#: between the two, and nearer to neither
MOST = 8.0
#: variable of a file to which seconds are written as well, see ``python -m evals.growth``
FILE = "GROWTH_FILE"


def growth(work: Callable[[int], object], small: int) -> float:
    """How many times as many steps the work takes with :data:`TIMES` as much.

    A step is a line of Python that is run: the same on every machine. What regular expressions and other parts in C do is no
    step; ``evals.growth`` measures their time.

    Args:
        work: is given how much it is to do.
        small: enough for a millisecond or more.
    """
    if path := os.environ.get(FILE):
        least, most = (min(_seconds(work, n) for _ in range(3)) for n in (small, TIMES * small))
        row = {"test": os.environ["PYTEST_CURRENT_TEST"].rpartition(" (")[0], "times": most / least}
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    # imports are none of it, and neither text is kept from before
    work(small + 1)
    return _steps(work, TIMES * small) / _steps(work, small)


def _steps(work: Callable[[int], object], n: int) -> int:
    count = 0

    def step(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        work(n)
    finally:
        sys.settrace(before)
    return count


def _seconds(work: Callable[[int], object], n: int) -> float:
    begun = time.thread_time()
    work(n)
    return time.thread_time() - begun
