"""Distances: how far a sentence's vector moves when a word is removed, exactly or by one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

import numpy as np

from posology.cancellation import checkpoint
from posology.seams import Embedder, TokenEncoder, Unnormalised

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.types import TokenVectors

#: The words of each sentence, in order.
Sequences: TypeAlias = Sequence[tuple[str, ...]]
#: Maximum words a piece; longer sentences are read in pieces, because a model would truncate them.
MOST_WORDS = 100
#: Texts a call of the embedder, which sorts them by length; a cancellation waits for one call.
_AT_ONCE = 1_024


class Distances(Protocol):
    """Computes the weight of each word of each sentence."""

    def __call__(
        self, embedder: Embedder, sentences: Sequences, /
    ) -> list[NDArray[np.float32]]: ...


def exact(embedder: Embedder, sentences: Sequences) -> list[NDArray[np.float32]]:
    """Return Euclidean distances between each sentence's vector and its vector without a word (TCRA-LLM, 4.2.2).

    All variants of many sentences are encoded in one run, sorted by length. Each word of a sentence of n words costs
    the encoding of a sentence of n - 1.

    Args:
        embedder: any embedder; vectors that are not of unit length are normalised, because meaning is in direction.
        sentences: the words of each sentence.

    Returns:
        One distance a word of each sentence, float32.
    """
    return _joined(sentences, lambda pieces: _exact(embedder, pieces))


def approximate(embedder: Embedder, sentences: Sequences) -> list[NDArray[np.float32]]:
    """Return approximate distances, by removing each word's token vectors from the sentence's mean.

    Each sentence is encoded once. The removed word's effect on the other words' vectors is ignored; on
    sentences of abstracts the order of words is nearly that of :func:`exact` (rank correlation .85).

    Args:
        embedder: an embedder with token vectors and their lengths; with any other the distances are exact.
        sentences: the words of each sentence.
    """
    if not hasattr(embedder, "token_vectors"):
        return exact(embedder, sentences)
    encoder = cast("TokenEncoder", embedder)
    return _joined(sentences, lambda pieces: _approximate(encoder, pieces))


def _exact(embedder: Embedder, pieces: Sequences) -> Iterator[NDArray[np.float32]]:
    first = 0
    while first < len(pieces):
        texts: list[str] = []
        last = first
        while last < len(pieces) and (last == first or len(texts) < _AT_ONCE):
            words = pieces[last]
            texts.append(" ".join(words))
            texts.extend(" ".join(words[:i] + words[i + 1 :]) for i in range(len(words)))
            last += 1
        checkpoint()
        vectors = embedder.embed_queries(texts)
        if isinstance(embedder, Unnormalised):
            vectors = _unit(vectors)
        begin = 0
        for words in pieces[first:last]:
            own = vectors[begin : begin + 1 + len(words)]
            yield np.linalg.norm(own[1:] - own[0], axis=1).astype(np.float32)
            begin += len(own)
        first = last


def _approximate(encoder: TokenEncoder, pieces: Sequences) -> Iterator[NDArray[np.float32]]:
    read = encoder.token_vectors([" ".join(words) for words in pieces])
    for words, tokens in zip(pieces, read, strict=True):
        yield _without(words, tokens)


def _without(words: Sequence[str], tokens: TokenVectors) -> NDArray[np.float32]:
    """Return how far the direction of the tokens' mean moves without each word."""
    vectors = tokens.vectors
    if tokens.lengths is not None:
        vectors = vectors * tokens.lengths[:, None]
    n = len(vectors)
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    at = np.minimum(np.searchsorted(ends, tokens.ends, side="left"), len(words) - 1)
    own = np.zeros((len(words), vectors.shape[1]), np.float32)
    np.add.at(own, at, vectors)
    total = vectors.sum(axis=0)
    # without its only word a sentence has no direction: the maximum distance
    left = _unit(total - own)
    moved = np.linalg.norm(left - _unit(total), axis=1)
    counts = np.bincount(at, minlength=len(words))
    return np.where(counts == n, np.float32(2 if n else 0), moved).astype(np.float32)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-9))
    return unit


class _Read(Protocol):
    def __call__(self, pieces: Sequences, /) -> Iterator[NDArray[np.float32]]: ...


def _joined(sentences: Sequences, read: _Read) -> list[NDArray[np.float32]]:
    """Read sentences in pieces of about equal length, and join the results."""
    pieces: list[tuple[str, ...]] = []
    counts = []
    for words in sentences:
        parts = max(-(-len(words) // MOST_WORDS), 1)
        bounds = np.linspace(0, len(words), parts + 1).astype(int).tolist()
        pieces += [words[a:b] for a, b in pairwise(bounds)]
        counts.append(parts)
    found = iter(read(pieces))
    return [np.concatenate([next(found) for _ in range(parts)]) for parts in counts]
