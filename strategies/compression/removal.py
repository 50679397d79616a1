"""How far a sentence's vector moves when a word is removed: by encoding it anew, or by one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

import numpy as np

from posology.seams import Embedder, TokenEncoder, Unnormalised

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.types import TokenVectors

#: the words of a sentence, in order
Sequences: TypeAlias = Sequence[tuple[str, ...]]
#: A longer run of words is read in pieces: a model would cut it, and what it does not read moves nothing.
MOST_WORDS = 100
#: texts that the embedder is given at one time: it sorts them by length
_AT_ONCE = 4_096


class Distances(Protocol):
    """Of each sentence, what each of its words weighs."""

    def __call__(
        self, embedder: Embedder, sentences: Sequences, /
    ) -> list[NDArray[np.float32]]: ...


def exact(embedder: Embedder, sentences: Sequences) -> list[NDArray[np.float32]]:
    """Euclidean distances between each sentence's vector and its vector without a word (TCRA-LLM, 4.2.2).

    All variants of many sentences are encoded in one run, sorted by length, in which a word of a sentence
    of n costs a sentence of n - 1.

    Args:
        embedder: any; vectors that are not of unit length are made so, since what a text is about is their direction.
        sentences: the words of each.

    Returns:
        Of each sentence one distance a word, float32.
    """
    return _joined(sentences, lambda pieces: _exact(embedder, pieces))


def approximate(embedder: Embedder, sentences: Sequences) -> list[NDArray[np.float32]]:
    """The same distances for words removed from the mean of the token vectors, which stay as they are.

    So each sentence is encoded once. What the other words' vectors owe to the removed one is left out: on
    sentences of abstracts the order of words is nearly that of :func:`exact` (rank correlation .85).

    Args:
        embedder: one whose tokens' vectors, and their lengths, can be had; of any other the distances are exact.
        sentences: the words of each.
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
    """How far the direction of the tokens' mean moves without each word."""
    vectors = tokens.vectors
    if tokens.lengths is not None:
        vectors = vectors * tokens.lengths[:, None]
    n = len(vectors)
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    at = np.minimum(np.searchsorted(ends, tokens.ends, side="left"), len(words) - 1)
    own = np.zeros((len(words), vectors.shape[1]), np.float32)
    np.add.at(own, at, vectors)
    total = vectors.sum(axis=0)
    # without its only word a sentence has no direction left: that is as far as any
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
    """Read sentences in pieces, the pieces of one of about one length, and put the answers together."""
    pieces: list[tuple[str, ...]] = []
    counts = []
    for words in sentences:
        parts = max(-(-len(words) // MOST_WORDS), 1)
        bounds = np.linspace(0, len(words), parts + 1).astype(int).tolist()
        pieces += [words[a:b] for a, b in pairwise(bounds)]
        counts.append(parts)
    found = iter(read(pieces))
    return [np.concatenate([next(found) for _ in range(parts)]) for parts in counts]
