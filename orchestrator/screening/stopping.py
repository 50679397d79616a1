"""Lower bound of recall while records are read in order of relevance, by a hypergeometric test.

Callaghan and Müller-Hansen (*Statistical stopping criteria for automated screening in systematic reviews*, Systematic
Reviews 9:273, 2020, equations 8 to 12): the records read since some place are taken for a random sample of those that were unread
there. An order that is no worse than chance makes the test conservative. As in their *ranked quasi-sampling*, the bound is
the best over several starts of the sample. Starts and looks are limited to :data:`LOOKS` places of the list, which keeps
the rate of wrong stops below the stated one in simulations, also where the order is chance (``tests/unit/screening``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

#: places of the list at which the bound is computed, and at which its samples begin
LOOKS = 20
#: fewest records between two of them
LEAST_STEP = 25
#: probability that the bound holds
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class Recall:
    """Recall of the records that were read, among all of the list."""

    #: relevant records that were read
    found: int
    #: upper bound of the relevant ones in the whole list
    at_most: int
    #: records read when the bound was computed; the rest of the list when it was read whole
    looked_at: int

    @property
    def at_least(self) -> float | None:
        """Lower bound, 0 to 1; ``None``: nothing relevant was found or can be left."""
        return self.found / self.at_most if self.at_most else None

    def reached(self, target: float) -> bool:
        """Return whether recall is at least ``target`` by the bound; never where nothing relevant was found."""
        return self.at_least is not None and self.at_least >= target


def step(size: int) -> int:
    """Return the number of records between two looks at a list of ``size`` records."""
    return max(LEAST_STEP, math.ceil(size / LOOKS))


def recall(relevant: Sequence[bool], size: int, *, confidence: float = CONFIDENCE) -> Recall:
    """Return the recall of the records that were read.

    Args:
        relevant: whether each read record is relevant, in the order of reading.
        size: number of records of the list, those that were not read included.
        confidence: probability that the bound holds, 0 to 1.
    """
    counts = [0, *accumulate(map(int, relevant))]
    read, total = len(relevant), counts[-1]
    between = step(size)
    look = read if read == size else read // between * between
    most = total + size - read
    for start in range(0, look, between):
        inside = counts[look] - counts[start]
        bound = _upper(inside, size=size - start, drawn=look - start, level=1 - confidence)
        most = min(most, counts[start] + bound)
    # records after the last look may hold more than the bound then was
    return Recall(found=total, at_most=max(most, total), looked_at=look)


def _upper(inside: int, *, size: int, drawn: int, level: float) -> int:
    """Return the largest number of relevant records in ``size`` that a sample with ``inside`` does not reject."""
    low, high = inside, size - drawn + inside
    while low < high:
        middle = (low + high + 1) // 2
        if _at_most(inside, size=size, relevant=middle, drawn=drawn) > level:
            low = middle
        else:
            high = middle - 1
    return low


def _at_most(inside: int, *, size: int, relevant: int, drawn: int) -> float:
    """Return the hypergeometric probability of at most ``inside`` relevant records in a sample."""
    least = max(0, drawn + relevant - size)
    whole = _ways(size, drawn)
    terms = (
        math.exp(_ways(relevant, n) + _ways(size - relevant, drawn - n) - whole)
        for n in range(least, min(inside, relevant, drawn) + 1)
    )
    return math.fsum(terms)


def _ways(n: int, k: int) -> float:
    """Return the logarithm of the binomial coefficient."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
