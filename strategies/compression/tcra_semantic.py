"""TCRA-LLM's semantic compression: drop the words that move a sentence's vector least, regardless of the question.

A word's weight is the Euclidean distance between its sentence's vectors with and without it (Liu et al. 2023,
section 4.2.2, equation 2). The paper takes a percentile of one text of its database at a time; here the share counts
the words of all passages together. Two things differ from the paper. No clause is shown without its negations, its
numbers with their units, and its drug names, which count against the share
(:mod:`strategies.compression.wording.words`). Words stay in runs, because each gap is marked and counts as two words
(:mod:`strategies.compression.wording.runs`): with a mark at each gap, the paper's 70 % of the words would be more tokens
than all of them. :data:`BARE_NAME` does neither: it is the paper's filter.

Distances do not depend on the question: each sentence's are computed once and cached.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from posology.errors import ConfigurationError
from posology.seams import Embedder, Memory, PaidEmbedder
from posology.store.memory import ProcessMemory
from posology.types import Compressed, Retrieval
from strategies.compression.parts import Parts
from strategies.compression.removal import Distances, approximate, exact
from strategies.compression.results import of_spans, share_of
from strategies.compression.wording.runs import choose_runs
from strategies.compression.wording.words import Words, choose, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NAME = "tcra_semantic"
FAST_NAME = "tcra_semantic_fast"
#: the paper's filter: the words above the percentile, without protection and regardless of gaps
BARE_NAME = "tcra_semantic:guard=off"
#: Default share of the words that stays: the mildest of the paper's 30, 50 and 70 % (5.1).
DEFAULT_KEEP = 0.7
#: Seconds a sentence on two cores: not yet cached, and cached.
_SECONDS = {NAME: 0.07, FAST_NAME: 0.007}
_KNOWN_SECONDS = 2e-3


class TcraSemantic:
    """Compressor that filters words by how far their removal moves their sentence's vector.

    Args:
        embedder: loads the encoder for distances, once.
        memory: opens the cache of distances, once.
        distances: computes distances.
        name: name in records; must differ for other distances.
        guard: whether numbers, negations and drug names are protected and gaps counted; ``False`` gives the
            paper's filter.
    """

    extractive = True

    def __init__(
        self,
        embedder: Callable[[], Embedder],
        memory: Callable[[], Memory] = ProcessMemory,
        *,
        distances: Distances = exact,
        name: str = NAME,
        guard: bool = True,
    ) -> None:
        self.name = name
        #: distances do not depend on the filter: both share the cache
        self._measured = name.partition(":")[0]
        self._load, self._open = embedder, memory
        self._embedder: Embedder | None = None
        self._memory: Memory | None = None
        self._lock = threading.Lock()
        self._distances = distances
        self._words = Words.of if guard else Words.bare
        self._choose = choose_runs if guard else choose

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages.
            keep: maximum share of their words that stays, 0 to 1, marks of omission included; ``None``:
                :data:`DEFAULT_KEEP`.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
            EmbedderUnavailable: the encoder does not load.
            ConfigurationError: the encoder's vectors are paid for.
        """
        share = share_of(keep, DEFAULT_KEEP)
        passages = retrieval.passages
        if share in (0, 1):
            whole = [one.sentences if share else () for one in passages]
            return of_spans(retrieval, whole, compressor=self.name)
        texts = [one.passage.text for one in passages]
        words = [
            [self._words(text, sentence) for sentence in one.sentences]
            for text, one in zip(texts, passages, strict=True)
        ]
        every = list(chain.from_iterable(words))
        found = self.weights(
            [
                tuple(text[a:b] for a, b in zip(each.starts, each.ends, strict=True))
                for text, own in zip(texts, words, strict=True)
                for each in own
            ]
        )
        kept = iter(self._choose(every, found, share))
        left = [
            list(chain.from_iterable(spans(text, each, next(kept)) for each in own))
            for text, own in zip(texts, words, strict=True)
        ]
        return of_spans(retrieval, left, compressor=self.name)

    def weights(self, sentences: Sequence[tuple[str, ...]]) -> list[NDArray[np.float32]]:
        """Return how far each sentence's vector moves without each of its words; compute what is not cached.

        Args:
            sentences: the words of each sentence, in order.

        Raises:
            EmbedderUnavailable: the encoder does not load.
            ConfigurationError: the encoder's vectors are paid for.
        """
        # of several concurrent first questions, one loads
        with self._lock:
            if self._embedder is None or self._memory is None:
                self._embedder, self._memory = self._load(), self._open()
            embedder, memory = self._embedder, self._memory
        if isinstance(embedder, PaidEmbedder):
            raise ConfigurationError(
                f"{self.name} embeds each sentence once for each of its words, and vectors of {embedder.name} are "
                "paid for. Set POSOLOGY_COMPRESSOR to choose another compressor."
            )
        keys = [self._key(embedder.name, words) for words in sentences]
        known = memory.get(list(dict.fromkeys(keys)))
        new = {key: words for key, words in zip(keys, sentences, strict=True) if key not in known}
        if new:
            computed = self._distances(embedder, list(new.values()))
            fresh = {
                key: one.astype(np.float16).tobytes()
                for key, one in zip(new, computed, strict=True)
            }
            memory.put(fresh)
            known = {**known, **fresh}
        return [np.frombuffer(known[key], np.float16).astype(np.float32) for key in keys]

    def expected_ratio(self, keep: float | None) -> float:
        """Return the share itself."""
        return share_of(keep, DEFAULT_KEEP)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """Return the seconds if no sentence is cached; 0 if all or nothing stays."""
        if share_of(keep, DEFAULT_KEEP) in (0, 1):
            return 0.0
        sentences = sum(len(one.sentences) for one in retrieval.passages)
        return (_SECONDS[self._measured] + _KNOWN_SECONDS) * sentences

    def _key(self, embedder: str, words: tuple[str, ...]) -> bytes:
        digest = blake2b(digest_size=20, key=self._measured.encode())
        for part in (embedder, *words):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(4, "big") + data)
        return digest.digest()


def make_exact(parts: Parts) -> TcraSemantic:
    """Return the paper's compressor, which encodes a sentence once for each of its words.

    Raises:
        ConfigurationError: no embedder is available.
    """
    return _make(parts, NAME, exact)


def make_fast(parts: Parts) -> TcraSemantic:
    """Return the approximation, which encodes a sentence once.

    Raises:
        ConfigurationError: no embedder is available.
    """
    return _make(parts, FAST_NAME, approximate)


def make_bare(parts: Parts) -> TcraSemantic:
    """Return the paper's compressor with the paper's filter.

    Raises:
        ConfigurationError: no embedder is available.
    """
    return _make(parts, BARE_NAME, exact, guard=False)


def _make(parts: Parts, name: str, distances: Distances, *, guard: bool = True) -> TcraSemantic:
    if parts.embedder is None:
        raise ConfigurationError(
            f"{name} needs an embedder, and none is available. Set POSOLOGY_COMPRESSOR to choose another compressor."
        )
    return TcraSemantic(
        parts.embedder,
        parts.memory or ProcessMemory,
        distances=distances,
        name=name,
        guard=guard,
    )
