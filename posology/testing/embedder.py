"""An embedder without a model: words hashed into a vector."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from posology.types import Encoded, Passage, Sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = re.compile(r"\w+")


class HashEmbedder:
    """Texts that share words are near each other; the same text has the same vector everywhere."""

    def __init__(self, *, dim: int = 256, delay: float = 0.0) -> None:
        """Say how long vectors are and how slow embedding is.

        Args:
            dim: length of the vectors.
            delay: seconds that each call of :meth:`embed_passages` sleeps, to be interrupted.
        """
        self._dim = dim
        self._delay = delay
        #: passages embedded so far
        self.embedded = 0

    @property
    def name(self) -> str:
        """``hash-`` and the dimension."""
        return f"hash-{self._dim}"

    @property
    def dim(self) -> int:
        """Length of every vector."""
        return self._dim

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape ``(len(texts), dim)``; a text without words gets the first unit vector."""
        vectors = np.zeros((len(texts), self._dim), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in _WORD.findall(text.lower()):
                code = zlib.crc32(word.encode(errors="replace"))
                row[code % self._dim] += 1.0 if code >> 31 else -1.0
            if not row.any():
                row[0] = 1.0
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def embed_passages(
        self, passages: Sequence[Passage], sentences: Sequence[Sequence[Sentence]]
    ) -> list[Encoded]:
        """One :class:`~posology.types.Encoded` a passage."""
        time.sleep(self._delay)
        self.embedded += len(passages)
        encoded = []
        for passage, spans in zip(passages, sentences, strict=True):
            texts = [f"{passage.title} {passage.text}", *(s.of(passage.text) for s in spans)]
            vectors = self.embed_queries(texts)
            encoded.append(Encoded(vector=vectors[0], sentence_vectors=vectors[1:]))
        return encoded
