"""Curves of taking in and of refusing, with few parameters, fitted to published figures."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """Probability that a model takes in a key passage, by its place and by the length of the context.

    With B passages before the key passage and A after it, the probability is ``(1 + A + B) ** -dilution`` times
    ``1 - depth * (1 - max(exp(-B / primacy), recency * exp(-A / fading)))``: it falls with length, dips behind the
    beginning, and recovers towards the end. A passage that is shown in part counts as that part.
    """

    #: how fast it falls with length, 0: not at all
    dilution: float
    #: how far it falls in the middle, 0 to 1
    depth: float
    #: passages in which the advantage of the beginning fades
    primacy: float
    #: share of the dip that the last place is spared, 0 to 1
    recency: float
    #: passages in which the advantage of the end fades
    fading: float

    def __call__(self, before: float, after: float) -> float:
        """Return the probability, 0 to 1.

        Args:
            before: passages before the key passage.
            after: passages after it.
        """
        spared = max(
            math.exp(-before / self.primacy), self.recency * math.exp(-after / self.fading)
        )
        length = (1 + before + after) ** -self.dilution
        return float(length * (1 - self.depth * (1 - spared)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusals:
    """Probability that a model that took nothing in refuses, and does not answer from another passage.

    Logistic in the binary logarithm of the passages shown.
    """

    #: log odds with one passage
    one: float
    #: what each doubling of the passages adds to the log odds
    doubling: float

    def __call__(self, passages: float) -> float:
        """Return the probability, 0 to 1, with so many passages (at least 1) shown."""
        odds = self.one + self.doubling * math.log2(max(passages, 1.0))
        return 1 / (1 + math.exp(-odds))
