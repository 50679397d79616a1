"""Cheap choice of the text that a cross-encoder reads for a question: windows of sentences that share its rare words.

No model runs. Reading everything would cost seconds for long articles; what is left out of a call is not quoted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from posology.llm.offline.scores import MAX_WEIGHT
from posology.llm.offline.weights import PROBE, TokenWeights
from posology.text.tokens import Pieces
from posology.types import Excerpt, Sentence

#: Maximum tokens of a window: with question and title it fits one input of the packaged cross-encoder.
WINDOW = 240


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """Consecutive shown sentences of one excerpt."""

    #: position of the excerpt among those of the call, from 0
    excerpt: int
    sentences: tuple[Sentence, ...]
    tokens: int
    #: share of the question's weight that the window and its title have, plus that of its best sentence, 0 to 2
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """The windows to read, and the others; both best first."""

    read: tuple[Window, ...]
    unread: tuple[Window, ...]


class Candidates:
    """Chooses windows by shared word pieces, weighted by their rarity.

    Args:
        pieces: vocabulary ids of texts.
        budget: maximum tokens that are read for a question; the best window is read in any case.
    """

    def __init__(self, pieces: Pieces, budget: int) -> None:
        self._pieces = pieces
        self._weigh = TokenWeights(pieces([PROBE])[0])
        self._budget = budget

    def __call__(self, question: str, excerpts: Sequence[Excerpt]) -> Chosen:
        """Choose windows; ties keep the order in which they are shown."""
        windows = sorted(self._windows(question, excerpts), key=lambda one: -one.score)
        read: list[Window] = []
        unread: list[Window] = []
        left = self._budget
        for one in windows:
            fits = one.tokens <= left or not read
            (read if fits else unread).append(one)
            left -= one.tokens * fits
        return Chosen(read=tuple(read), unread=tuple(unread))

    def _windows(self, question: str, excerpts: Sequence[Excerpt]) -> Iterator[Window]:
        asked = set(self._pieces([question])[0])
        order = np.array(sorted(asked), dtype=np.int64)
        known = np.minimum(self._weigh(order), np.float32(MAX_WEIGHT)).tolist()
        weights: dict[int, float] = dict(zip(order.tolist(), known, strict=True))
        total = sum(weights.values()) or 1.0

        def share(ids: frozenset[int]) -> float:
            return sum(weights[one] for one in ids) / total

        for number, excerpt in enumerate(excerpts):
            texts = [one.of(excerpt.passage.text) for one in excerpt.sentences]
            title, *own = self._pieces([excerpt.passage.title, *texts])
            has = [frozenset(asked.intersection(ids)) for ids in own]
            named = frozenset(asked.intersection(title))
            for first, end in spans([len(ids) for ids in own]):
                together = named.union(*has[first:end])
                best = max(share(ids | named) for ids in has[first:end])
                yield Window(
                    excerpt=number,
                    sentences=excerpt.sentences[first:end],
                    tokens=sum(map(len, own[first:end])),
                    score=share(together) + best,
                )


def spans(tokens: Sequence[int], most: int = WINDOW) -> Iterator[tuple[int, int]]:
    """Yield windows over sentences as ``(first, end)``, about equally long; a longer sentence is one of its own."""
    total = sum(tokens)
    wanted = total / max(1, -(-total // most))
    first, length = 0, 0
    for i, count in enumerate(tokens):
        if i > first and (length + count > most or length + count / 2 > wanted):
            yield first, i
            first, length = i, 0
        length += count
    if first < len(tokens):
        yield first, len(tokens)
