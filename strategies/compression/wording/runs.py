"""Choice of words in runs, because each gap costs a mark of omission.

A mark costs about two words. By their scores alone, 70 % of the words would be so scattered that more tokens are sent
than for the whole text. So gaps have a price. Among all choices that keep each opened clause's protected words,
dynamic programming over each sentence finds the largest sum of scores at one price for words and gaps; bisection finds
the price at which the share is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from strategies.compression.wording.words import Words

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Cost of a mark of omission in words: it is three tokens.
MARK = 2.0
_STEPS = 24
#: States of a word: kept, dropped from an opened clause, dropped with its clause.
_KEPT, _DROPPED, _CLOSED = range(3)
_STATES = np.arange(3)
_NEVER = np.float64(-1e18)


def choose_runs(
    words: Sequence[Words], scores: Sequence[NDArray[np.float32]], share: float
) -> list[NDArray[np.bool_]]:
    """Choose the words that stay, in runs. A larger share keeps more words with fewer gaps.

    Args:
        words: words of each sentence.
        scores: score of each word of each sentence, at least 0; higher scores stay.
        share: maximum share of all words that stays, 0 to 1; each gap counts as :data:`MARK` words.

    Returns:
        Which words of each sentence stay: whole bonds, with all protected words of a clause or none of its words.

    Raises:
        ValueError: ``share`` is not 0 to 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be 0 to 1 (got {share})")
    total = sum(map(len, words))
    if share in (0, 1) or not total:
        return [np.full(len(one), share == 1) for one in words]
    table = Table(words, scores)
    budget = share * total + 1e-9
    low, high = 0.0, float(max(one.max() for one in scores if len(one))) + 1e-6
    best = np.zeros(table.shape, np.bool_)
    for _ in range(_STEPS):
        price = (low + high) / 2
        kept = table.best(price)
        if table.cost(kept) <= budget:
            high, best = price, kept
        else:
            low = price
    left = [best[i, : len(one)] for i, one in enumerate(words)]
    _fill(words, scores, left, budget - table.cost(best))
    return left


class Table:
    """All m sentences, padded to the longest of n words.

    Args:
        words: words of each sentence.
        scores: score of each word of each sentence.
    """

    def __init__(self, words: Sequence[Words], scores: Sequence[NDArray[np.float32]]) -> None:
        self.shape = (len(words), max(map(len, words)))
        self._scores = np.zeros(self.shape)
        self._there = np.zeros(self.shape, np.bool_)
        self._protected = np.zeros(self.shape, np.bool_)
        # whether each word has the same bond or clause as the one before it
        self._bound = np.zeros(self.shape, np.bool_)
        self._within = np.zeros(self.shape, np.bool_)
        for i, (one, own) in enumerate(zip(words, scores, strict=True)):
            n = len(one)
            self._scores[i, :n] = own
            self._there[i, :n] = True
            self._protected[i, :n] = one.protected
            self._bound[i, 1:n] = one.bond[1:] == one.bond[:-1]
            self._within[i, 1:n] = one.clause[1:] == one.clause[:-1]

    def cost(self, kept: NDArray[np.bool_]) -> float:
        """Return the cost in words: kept words, and :data:`MARK` for each gap between them and between sentences."""
        flat = kept[self._there]
        gaps = np.count_nonzero(np.diff(np.concatenate(([True], flat)).astype(np.int8)) < 0)
        return float(np.count_nonzero(flat)) + MARK * float(gaps)

    def best(self, price: float) -> NDArray[np.bool_]:
        """Return the best choice at a price of a word, shape ``(m, n)``: scores minus the price of words and gaps.

        A gap counts if words are dropped after a kept one of the same sentence.
        """
        m, n = self.shape
        came = np.zeros((n, m, 3), np.int8)
        worth = np.zeros((m, 3))
        worth[:, _DROPPED] = _NEVER
        # reward of each change of state; 0 unless set below
        move = np.zeros((m, 3, 3))
        mark = -price * MARK
        parted = np.where(self._bound, _NEVER, 0.0)
        turned = np.where(self._within, _NEVER, 0.0)
        left = np.where(self._bound, _NEVER, mark)
        shut = np.where(self._within, _NEVER, mark)
        gain = self._scores - price
        for j in range(n):
            move[:, _DROPPED, _KEPT] = parted[:, j]
            move[:, _KEPT, _DROPPED] = left[:, j]
            move[:, _KEPT, _CLOSED] = shut[:, j]
            move[:, _DROPPED, _CLOSED] = turned[:, j]
            move[:, _CLOSED, :_CLOSED] = turned[:, j, None]
            total = worth[:, :, None] + move
            best = total.max(axis=1)
            best[:, _KEPT] += gain[:, j]
            best[self._protected[:, j], _DROPPED] = _NEVER
            # beyond the end of its sentence a row keeps its values
            there = self._there[:, j, None]
            worth = np.where(there, best, worth)
            came[j] = np.where(there, total.argmax(axis=1), _STATES)
        state = worth.argmax(axis=1)
        kept = np.zeros(self.shape, np.bool_)
        rows = np.arange(m)
        for j in range(n - 1, -1, -1):
            kept[:, j] = state == _KEPT
            state = came[j, rows, state]
        return kept & self._there


def _fill(
    words: Sequence[Words],
    scores: Sequence[NDArray[np.float32]],
    chosen: list[NDArray[np.bool_]],
    left: float,
) -> None:
    """Spend the remaining words on the best bonds beside kept words of opened clauses, in place: no new marks."""
    while True:
        best: tuple[float, int, NDArray[np.intp]] | None = None
        for i, (one, own) in enumerate(zip(words, scores, strict=True)):
            beside = ~chosen[i] & (_shifted(chosen[i], 1) | _shifted(chosen[i], -1))
            for bond in np.unique(one.bond[beside]).tolist():
                places = np.flatnonzero(one.bond == bond)
                opened = chosen[i][one.clause == one.clause[places[0]]].any()
                if opened and len(places) <= left:
                    worth = float(own[places].mean())
                    if best is None or worth > best[0]:
                        best = worth, i, places
        if best is None:
            return
        chosen[best[1]][best[2]] = True
        left -= len(best[2])


def _shifted(kept: NDArray[np.bool_], by: int) -> NDArray[np.bool_]:
    other = np.zeros_like(kept)
    if by > 0:
        other[by:] = kept[:-by]
    else:
        other[:by] = kept[-by:]
    return other
