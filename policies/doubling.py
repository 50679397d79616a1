"""Doubling: a ladder of calls, each of which shows more passages than the one before.

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
    """How a ladder grows.

    Source: Adaptive RAG (Pathway), "How to expand the prompt?" and "How subsequent prompts relate?".

    Raises:
        ValueError: a setting with which no ladder can grow.
    """

    #: passages that the first call shows
    start: int = 2
    #: by how much each call shows more than the one before; a fraction is rounded up to whole passages
    factor: float = 2
    #: calls at most; ``None``: as many as there are passages for
    rounds: int | None = None
    #: whether a call shows what the calls before it showed, too; else only the passages that come next
    overlapping: bool = True

    def __post_init__(self) -> None:
        if self.start < 1:
            raise ValueError(f"a ladder starts with at least one passage, not {self.start}")
        if not (self.factor > 1 and math.isfinite(self.factor)):
            raise ValueError(f"a ladder grows by a factor above 1, not {self.factor}")
        if self.rounds is not None and self.rounds < 1:
            raise ValueError(f"a ladder has at least one rung, not {self.rounds}")

    @property
    def version(self) -> str:
        """Its settings: equal versions make equal rungs."""
        rounds = "all" if self.rounds is None else self.rounds
        kind = "overlapping" if self.overlapping else "apart"
        return f"1:{self.start}x{float(self.factor)!r}:{rounds}:{kind}"

    def rungs(self, passages: int) -> tuple[int, ...]:
        """How many passages each call shows, where so many are at hand.

        Overlapping, the last rung shows all: 2, 4, 8, 16 of 16. A rung so near to the last that the
        bound would not hold with it is left out: 2, 4, 9 of 9, not 2, 4, 8, 9. Apart, every passage is
        shown once, and the last rung what is left: 2, 4, 8, 2 of 16. Where ``rounds`` ends the ladder
        earlier, passages remain that no rung shows.

        Raises:
            ValueError: ``passages`` is negative.
        """
        if passages < 0:
            raise ValueError(f"there cannot be {passages} passages")
        rungs = self._overlapping(passages) if self.overlapping else self._apart(passages)
        return rungs[: self.rounds]

    def _overlapping(self, passages: int) -> tuple[int, ...]:
        if not passages:
            return ()
        # of the number as it is written: 1.1 times 10 is to be 11, not a hair more
        factor = Fraction(str(self.factor))
        rungs: list[int] = []
        rung = self.start
        while rung < passages and (sum(rungs) + rung) * (factor - 1) <= passages:
            rungs.append(rung)
            rung = math.ceil(rung * factor)
        return (*rungs, passages)

    def _apart(self, passages: int) -> tuple[int, ...]:
        factor = Fraction(str(self.factor))
        rungs: list[int] = []
        rung, left = self.start, passages
        while left:
            rungs.append(min(rung, left))
            left -= rungs[-1]
            rung = math.ceil(rung * factor)
        return tuple(rungs)
