"""Counts of n-grams in bounded memory, regardless of the corpus's size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Maximum distinct keys of a table; beyond it, the rarest are dropped.
MOST_KEYS = 8_000_000
#: Keys that are buffered before they are merged into the table.
BUFFER = 4_000_000


class Counts:
    """Keys and their counts, as two sorted arrays: 16 bytes a key.

    With more than ``most`` keys, those counted once are dropped, then those counted twice, as in lossy counting
    (Manku and Motwani, *Approximate frequency counts over data streams*, 2002): frequent keys keep their counts.
    """

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._most = most
        self._keys: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._counts: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._waiting: list[NDArray[np.int64]] = []
        self._size = 0

    def add(self, keys: NDArray[np.int64]) -> None:
        """Count each of ``keys`` once."""
        self._waiting.append(keys)
        self._size += len(keys)
        if self._size >= BUFFER:
            self._merge()

    def table(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the keys, sorted, and their counts."""
        self._merge()
        return self._keys, self._counts

    def _merge(self) -> None:
        if not self._waiting:
            return
        new, counts = np.unique(np.concatenate(self._waiting), return_counts=True)
        self._waiting, self._size = [], 0
        self._keys, self._counts = add_up(
            np.concatenate([self._keys, new]), np.concatenate([self._counts, counts])
        )
        least = 1
        while len(self._keys) > self._most:
            least += 1
            kept = self._counts >= least
            self._keys, self._counts = self._keys[kept], self._counts[kept]


def add_up(
    keys: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct keys, sorted, and the sums of their counts."""
    if not len(keys):
        return keys, counts
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return keys[firsts], np.add.reduceat(counts, firsts)
