"""Doubling: a ladder of calls, each with more passages than the one before.

Adaptive RAG takes the model's refusal as its word that the context was not enough: ask with two passages,
and while the reply is a refusal, with four, eight, sixteen. What such a ladder costs is bounded: with a
factor f all of its calls together read at most f/(f−1) times as many passages as the last of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubling:
    """Growth of a ladder.

    Source: Adaptive RAG (Pathway), "How to expand the prompt?" and "How subsequent prompts relate?".

    Raises:
        ValueError: a setting is out of range.
    """

    #: passages that the first call shows
    start: int = 2
    #: factor from one call to the next, over 1; the product is rounded up to whole passages
    factor: float = 2
    #: most calls; ``None``: as many as there are passages for
    rounds: int | None = None
    #: whether a call also shows what the calls before it showed; else only the next passages
    overlapping: bool = True

    def __post_init__(self) -> None:
        if self.start < 1:
            raise ValueError(f"start must be at least 1 (got {self.start})")
        if not (self.factor > 1 and math.isfinite(self.factor)):
            raise ValueError(f"factor must be finite and > 1 (got {self.factor})")
        if self.rounds is not None and self.rounds < 1:
            raise ValueError(f"rounds must be at least 1 (got {self.rounds})")

    @property
    def version(self) -> str:
        """Its settings: equal versions make equal steps."""
        rounds = "all" if self.rounds is None else self.rounds
        kind = "overlapping" if self.overlapping else "apart"
        return f"1:{self.start}x{float(self.factor)!r}:{rounds}:{kind}"

    def rungs(self, passages: int) -> tuple[int, ...]:
        """Return the number of passages that each call shows, of so many in all.

        Overlapping, the last step shows all: 2, 4, 8, 16 of 16. A step too near to the last one for the bound is left
        out: 2, 4, 9 of 9, not 2, 4, 8, 9. Otherwise every passage is shown once, the rest by the last step: 2, 4, 8, 2
        of 16. If ``rounds`` ends the ladder earlier, some passages are not shown.

        Raises:
            ValueError: ``passages`` is negative.
        """
        if passages < 0:
            raise ValueError(f"passages must be at least 0 (got {passages})")
        steps = self._overlapping(passages) if self.overlapping else self._apart(passages)
        return steps[: self.rounds]

    def _overlapping(self, passages: int) -> tuple[int, ...]:
        if not passages:
            return ()
        # exact: 1.1 times 10 must be 11, without a rounding error
        factor = Fraction(str(self.factor))
        steps: list[int] = []
        step = self.start
        while step < passages and (sum(steps) + step) * (factor - 1) <= passages:
            steps.append(step)
            step = math.ceil(step * factor)
        return (*steps, passages)

    def _apart(self, passages: int) -> tuple[int, ...]:
        factor = Fraction(str(self.factor))
        steps: list[int] = []
        step, left = self.start, passages
        while left:
            steps.append(min(step, left))
            left -= steps[-1]
            step = math.ceil(step * factor)
        return tuple(steps)
