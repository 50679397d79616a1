"""Seams of reading: which sentence answers a question, and whether a text supports a claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from posology.types import Excerpt, Reading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PassageReader(Protocol):
    """Finds the sentences that answer a question. Blocking, thread-safe."""

    @property
    def name(self) -> str:
        """Identity of its method and weights, for the record."""
        ...

    def read(self, question: str, excerpts: Sequence[Excerpt]) -> list[Reading]:
        """Read the shown sentences of each excerpt, with its title, for a question."""
        ...


class SupportJudge(Protocol):
    """Judges whether texts support claims. Blocking, thread-safe."""

    @property
    def name(self) -> str:
        """Identity of its method and weights, for the record."""
        ...

    def judge(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Judge pairs of a claim and a text.

        Returns:
            Calibrated probabilities, shape ``(len(pairs), 3)``, rows with sum 1, columns in the order of
            :class:`~posology.types.Stance`.
        """
        ...
