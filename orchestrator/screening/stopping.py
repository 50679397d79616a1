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
        """Return the lower bound, 0 to 1; ``None``: nothing relevant was found."""
        return self.found / self.at_most if self.found else None

    def reached(self, target: float) -> bool:
        """Return whether recall is at least ``target`` by the bound; never where nothing relevant was found."""
        return self.at_least is not None and self.at_least >= target


def step(size: int) -> int:
    """Return the number of records between two looks at a list of ``size`` records."""
    return max(LEAST_STEP, math.ceil(size / LOOKS))


def recall(
    relevant: Sequence[bool], size: int, *, since: int = 0, confidence: float = CONFIDENCE
) -> Recall:
    """Return the recall of the records that were read.

    Args:
        relevant: whether each read record is relevant, in the order of reading.
        size: number of records of the list, those that were not read included.
        since: number of records that had been read when the last one joined the list: no sample begins before.
        confidence: probability that the bound holds, 0 to 1.
    """
    counts = [0, *accumulate(map(int, relevant))]
    read, total = len(relevant), counts[-1]
    between = step(size)
    look = read if read == size else read // between * between
    most = total + size - read
    for start in range(-(-since // between) * between, look, between):
        inside = counts[look] - counts[start]
        # no larger bound is looked for than there is
        bound = _upper(
            inside,
            most - counts[start],
            size=size - start,
            drawn=look - start,
            level=1 - confidence,
        )
        most = min(most, counts[start] + bound)
    # records after the last look may hold more than the bound then was
    return Recall(found=total, at_most=max(most, total), looked_at=look)


def _upper(inside: int, most: int, *, size: int, drawn: int, level: float) -> int:
    """Return the largest number of relevant records in ``size``, up to ``most``, that a sample with ``inside`` does not reject."""
    low, high = inside, min(most, size - drawn + inside)
    if _at_most(inside, size=size, relevant=high, drawn=drawn) > level:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if _at_most(inside, size=size, relevant=middle, drawn=drawn) > level:
            low = middle
        else:
            high = middle - 1
    return low


def _at_most(inside: int, *, size: int, relevant: int, drawn: int) -> float:
    """Return the hypergeometric probability of at most ``inside`` relevant records in a sample."""
    least, most = max(0, drawn + relevant - size), min(inside, relevant, drawn)
    if most < least:
        return 0.0
    # from the largest term, so that none is lost as too small
    top = max(least, min(most, (drawn + 1) * (relevant + 1) // (size + 2)))
    others = size - relevant - drawn
    largest = math.exp(
        _ways(relevant, top) + _ways(size - relevant, drawn - top) - _ways(size, drawn)
    )
    terms = [largest]
    for n in range(top, least, -1):
        terms.append(terms[-1] * n * (others + n) / ((relevant - n + 1) * (drawn - n + 1)))
    term = largest
    for n in range(top, most):
        term *= (relevant - n) * (drawn - n) / ((n + 1) * (others + n + 1))
        terms.append(term)
    return math.fsum(terms)


def _ways(n: int, k: int) -> float:
    """Return the logarithm of the binomial coefficient."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
