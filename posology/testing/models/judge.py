"""A judge of support whose verdicts are written beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from posology.types import Stance

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ScriptedJudge:
    """A :class:`~posology.seams.SupportJudge` that follows a function, and keeps the pairs.

    Args:
        script: probabilities that a text supports and contradicts a claim, from claim and text.
        name: for the record.
    """

    def __init__(
        self, script: Callable[[str, str], tuple[float, float]], *, name: str = "scripted"
    ) -> None:
        self._script = script
        self._name = name
        #: every pair so far, in order
        self.pairs: list[tuple[str, str]] = []

    @property
    def name(self) -> str:
        """Return its name."""
        return self._name

    def judge(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Judge pairs, see :class:`~posology.seams.SupportJudge`."""
        self.pairs += pairs
        found = np.zeros((len(pairs), len(Stance)), np.float32)
        for row, (claim, text) in zip(found, pairs, strict=True):
            row[:2] = self._script(claim, text)
            row[2] = 1 - row[0] - row[1]
        return found
