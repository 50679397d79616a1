"""The pruner: sentences and passages are scored at once by the token vectors that the index keeps.

Provence's idea (Chirkova et al. 2025: prune and re-rank in one pass, a threshold rather than a share, zero to
all sentences kept) without its encoder: nothing is encoded at question time but the question. What was
trained, on what, and how good it is: ``strategies/compression/models/MODEL_CARD.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from posology.errors import IndexMismatch
from posology.seams import Compressor
from posology.types import Compressed, Retrieval, Retrieved, TokenVectors
from strategies.compression.late.codec import LateCodec
from strategies.compression.late.features import Asked, Coded, kind, observe
from strategies.compression.late.head import Head
from strategies.compression.leancontext import LeanContext
from strategies.compression.results import of_sentences, rounded_up, share_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NAME = "pruner"
#: seconds for a question, and for a token of the passages, on two cores
_SECONDS, _SECONDS_A_TOKEN = 1e-3, 1.5e-6


class Pruner:
    """A :class:`~posology.seams.Compressor` that keeps the sentences that bear on the question, maybe none.

    Args:
        threshold: probability from which on a sentence is kept where no share is asked for; ``None``: the one
            that it was calibrated to.
        fallback: compresses retrievals without token codes of its codec; ``None``: LeanContext without a
            reducer.
        codec: ``None``: the one that is installed with Posology; so with ``head``.

    Raises:
        ValueError: ``threshold`` is not 0 to 1, or the head was trained on another codec.
    """

    def __init__(
        self,
        *,
        threshold: float | None = None,
        fallback: Compressor | None = None,
        codec: LateCodec | None = None,
        head: Head | None = None,
    ) -> None:
        if threshold is not None and not 0 <= threshold <= 1:
            raise ValueError(f"a probability is 0 to 1, not {threshold}")
        self._codec = LateCodec.packaged() if codec is None else codec
        self._head = Head.packaged() if head is None else head
        if self._head.codec != self._codec.name:
            raise ValueError(f"the head is for codes of {self._head.codec}, not {self._codec.name}")
        self._threshold = self._head.threshold if threshold is None else threshold
        self._fallback = LeanContext.top() if fallback is None else fallback

    @property
    def name(self) -> str:
        """Which it is, for the record."""
        return NAME

    @property
    def version(self) -> str:
        """Identity of what it has learned."""
        return self._head.version

    @property
    def extractive(self) -> bool:
        """It shows the sources' own words."""
        return True

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages with their token codes, and the query's token vectors. Where one of them has
                none, or they are of another codec, the fallback compresses them all.
            keep: share of all sentences, rounded up to whole ones, that are left; ``None``: those whose
                probability reaches the threshold, which may be none of them.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
        """
        share = share_of(keep, 0.0)
        if not self.reads(retrieval):
            return self._fallback(retrieval, keep)
        scores, _ = self.scores(retrieval)
        flat = np.concatenate(scores) if scores else np.zeros(0, np.float32)
        if keep is None:
            kept = flat >= self._threshold
        else:
            kept = np.zeros(len(flat), np.bool_)
            kept[np.argsort(-flat, kind="stable")[: rounded_up(share, len(flat))]] = True
        return of_sentences(retrieval, kept, compressor=NAME)

    def expected_ratio(self, keep: float | None) -> float:
        """The kept share; without one, what its threshold left where it was measured."""
        return share_of(keep, self._head.left)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """Grows with the tokens."""
        if not self.reads(retrieval):
            return self._fallback.seconds(retrieval, keep)
        tokens = sum(len(p.tokens.codes) for p in retrieval.passages if p.tokens is not None)
        return _SECONDS + _SECONDS_A_TOKEN * tokens

    def reads(self, retrieval: Retrieval) -> bool:
        """Whether it can score the passages; else the fallback compresses them."""
        return _readable(retrieval, self._codec)

    def scores(self, retrieval: Retrieval) -> tuple[list[NDArray[np.float32]], NDArray[np.float32]]:
        """Scores of all sentences and passages.

        Returns:
            One array a passage, with the probability that a sentence of it bears on the question, shape
            ``(sentences,)``; and one score a passage, shape ``(passages,)``, the larger the better: the log
            odds that it does, as trained; ``-inf`` for a passage without sentences.

        Raises:
            IndexMismatch: it cannot read the retrieval.
        """
        asked = retrieval.query_tokens
        if asked is None or not self.reads(retrieval):
            raise IndexMismatch(
                f"the index has no token codes of {self._codec.name}; ingest with that codec",
                index=retrieval.index_version,
            )
        places = [i for i, p in enumerate(retrieval.passages) if p.sentences]
        found = [np.zeros(0, np.float32) for _ in retrieval.passages]
        of_passages = np.full(len(retrieval.passages), -np.inf, np.float32)
        if places:
            coded = _coded([retrieval.passages[i] for i in places], retrieval.query_vector)
            features = observe(_asked(asked, retrieval), coded, self._codec, self._head.weights)
            flat, of_passages[places] = self._head(features, coded.sizes)
            ends = np.cumsum(coded.sizes)
            for i, scores in zip(places, np.split(flat, ends[:-1]), strict=True):
                found[i] = scores
        return found, of_passages


class LateReranker:
    """A :class:`~posology.seams.Reranker` by the pruner's passage scores.

    Args:
        pruner: ``None``: the one that is installed with Posology.
    """

    def __init__(self, pruner: Pruner | None = None) -> None:
        self._pruner = Pruner() if pruner is None else pruner

    @property
    def name(self) -> str:
        """With the digest of what it has learned."""
        return f"late-{self._pruner.version}"

    def __call__(self, retrieval: Retrieval) -> NDArray[np.float32]:
        """One score a passage, shape ``(len(retrieval.passages),)``; the larger the better.

        Raises:
            IndexMismatch: the index has no token codes of the pruner's codec.
        """
        return self._pruner.scores(retrieval)[1]


def _readable(retrieval: Retrieval, codec: LateCodec) -> bool:
    asked = retrieval.query_tokens
    return (
        retrieval.codec == codec.name
        and asked is not None
        and len(asked.ids) > 0
        and all(p.tokens is not None for p in retrieval.passages)
    )


def _asked(tokens: TokenVectors, retrieval: Retrieval) -> Asked:
    return Asked(vectors=tokens.vectors, ids=tokens.ids, kind=kind(retrieval.query.text))


def _coded(passages: Sequence[Retrieved], query: NDArray[np.float32]) -> Coded:
    tokens = [p.tokens for p in passages if p.tokens is not None]
    vectors = np.concatenate([p.sentence_vectors for p in passages]).astype(np.float32)
    return Coded(
        codes=np.concatenate([t.codes for t in tokens]),
        counts=np.concatenate([t.counts for t in tokens]),
        sizes=np.array([len(p.sentences) for p in passages]),
        cosines=vectors @ query / np.float32(127),
        of_passages=np.stack([p.vector for p in passages]) @ query,
    )
