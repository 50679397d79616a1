"""Spelling model: the bits of the letters of words that the n-gram model does not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Maximum words whose spelling is learned.
MOST_WORDS = 300_000
#: Extra bits of a character outside ``_ALPHABET``; all of these count as one character.
OTHER_BITS = 6.0

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0-'/.,+%()=<>:&"
_EDGE, _OTHER = 0, 1
_CLASSES = 2 + len(_ALPHABET)
_OF_BYTE = np.full(256, _OTHER, dtype=np.int64)
_OF_BYTE[0] = _EDGE
for _place, _character in enumerate(_ALPHABET):
    _OF_BYTE[ord(_character)] = 2 + _place
#: Weight of the shorter context, in occurrences.
_PRIOR = 4.0


class Spelling:
    """Interpolated trigram model of characters, with a Dirichlet prior from the shorter context.

    The prior is from MacKay and Peto (*A hierarchical Dirichlet language model*, 1995). A word's end counts as a
    character, so that the probabilities of all words sum to 1.
    """

    def __init__(self, counts: NDArray[np.uint32] | None = None) -> None:
        """Compute the bits of trigrams from counts.

        Args:
            counts: counts of trigrams, shape ``(c, c, c)`` for c characters; ``None``: zeros.
        """
        shape = (_CLASSES,) * 3
        #: counts of trigrams
        self.counts = np.zeros(shape, dtype=np.uint32) if counts is None else counts.reshape(shape)
        three = self.counts.astype(np.float64)
        two, one = three.sum(axis=0), three.sum(axis=(0, 1))
        flat = np.full(_CLASSES, 1 / _CLASSES)
        p1 = (one + _PRIOR * flat) / (one.sum() + _PRIOR)
        p2 = (two + _PRIOR * p1) / (two.sum(axis=1, keepdims=True) + _PRIOR)
        p3 = (three + _PRIOR * p2) / (three.sum(axis=2, keepdims=True) + _PRIOR)
        bits = -np.log2(p3)
        bits[:, :, _OTHER] += OTHER_BITS
        self._bits = bits.astype(np.float32).reshape(-1)

    @classmethod
    def learn(cls, words: Sequence[str]) -> Spelling:
        """Train on the characters of words."""
        keys, _ = _keys(words[:MOST_WORDS])
        return cls(np.bincount(keys, minlength=_CLASSES**3).astype(np.uint32))

    def bits(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the bits of each word, shape ``(len(words),)``."""
        if not words:
            return np.zeros(0, dtype=np.float32)
        keys, firsts = _keys(words)
        return np.add.reduceat(self._bits[keys], firsts)


def _keys(words: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the trigrams of all words as numbers, and the first one of each word."""
    # each word stands between edges: two before it, one after
    joined = "".join(f"\0\0{word}\0" for word in words)
    classes = _OF_BYTE[np.frombuffer(joined.encode("latin-1", errors="replace"), dtype=np.uint8)]
    lengths = np.fromiter((len(word) + 1 for word in words), dtype=np.int64, count=len(words))
    firsts = np.cumsum(lengths) - lengths
    # the third character of each trigram: all but the two edges before each word
    thirds = np.arange(int(lengths.sum())) + np.repeat(2 * np.arange(1, len(words) + 1), lengths)
    keys = (classes[thirds - 2] * _CLASSES + classes[thirds - 1]) * _CLASSES + classes[thirds]
    return keys, firsts
