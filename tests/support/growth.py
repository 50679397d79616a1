"""How the time of work grows with what it is given."""

from __future__ import annotations

import time
from collections.abc import Callable

#: by which the larger work is larger: in proportion it takes as many times as long, as its square the square
TIMES = 4
#: between the two, and nearer to neither
MOST = 8.0


def growth(work: Callable[[int], object], small: int) -> float:
    """How many times as long the work takes with :data:`TIMES` as much.

    The least of three of this thread's seconds on a processor: a machine that is slow, or busy with others, is as slow
    with both.

    Args:
        work: is given how much it is to do.
        small: enough for a millisecond or more.
    """
    least, most = (min(_seconds(work, n) for _ in range(3)) for n in (small, TIMES * small))
    return most / least


def _seconds(work: Callable[[int], object], n: int) -> float:
    begun = time.thread_time()
    work(n)
    return time.thread_time() - begun
