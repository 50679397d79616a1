"""An embedder without a model: words hashed into a vector."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from posology.types import Encoded, EncodedQuery, Passage, Sentence, TokenCodes, TokenVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.seams import TokenCodec

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
                code = _code(word)
                row[code % self._dim] += 1.0 if code >> 31 else -1.0
            if not row.any():
                row[0] = 1.0
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def encode_query(self, text: str) -> EncodedQuery:
        """As :meth:`embed_queries`, with a vector for each word."""
        return EncodedQuery(vector=self.embed_queries([text])[0], tokens=self._words(text))

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: TokenCodec | None = None,
    ) -> list[Encoded]:
        """One :class:`~posology.types.Encoded` a passage; words before the first sentence are the heading's."""
        time.sleep(self._delay)
        self.embedded += len(passages)
        encoded = []
        for passage, spans in zip(passages, sentences, strict=True):
            texts = [f"{passage.title} {passage.text}", *(s.of(passage.text) for s in spans)]
            vectors = self.embed_queries(texts)
            tokens = None
            if codec is not None:
                words = self._words(texts[0])
                starts = np.array([len(passage.title) + 1 + s.start for s in spans], dtype=np.int64)
                first = np.searchsorted(words.starts, starts)
                counts = np.diff(first, prepend=0, append=len(words.ids))
                # a codec is never asked for nothing
                none = np.zeros((0, codec.width), dtype=np.uint8)
                codes = codec(words) if len(words.ids) else none
                tokens = TokenCodes(codes=codes, counts=counts.astype(np.int32))
            encoded.append(Encoded(vector=vectors[0], sentence_vectors=vectors[1:], tokens=tokens))
        return encoded

    def _words(self, text: str) -> TokenVectors:
        """A word's vector has one component that is not 0; the same word's is the same everywhere."""
        words = list(_WORD.finditer(text))
        ids = np.array([_code(word[0].lower()) for word in words], dtype=np.int64)
        vectors = np.zeros((len(words), self._dim), dtype=np.float32)
        vectors[np.arange(len(words)), ids % self._dim] = np.where(ids >> 31, 1.0, -1.0)
        return TokenVectors(
            vectors=vectors,
            ids=ids,
            starts=np.array([word.start() for word in words], dtype=np.int64),
            ends=np.array([word.end() for word in words], dtype=np.int64),
        )


def _code(word: str) -> int:
    return zlib.crc32(word.encode(errors="replace"))
