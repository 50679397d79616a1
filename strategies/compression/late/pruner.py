"""Pruner: score sentences and passages in one pass by the token vectors that the index stores.

This is Provence's idea (Chirkova et al. 2025: prune and re-rank in one pass, a threshold rather than a share, zero to
all sentences kept) without its encoder: only the question is encoded at question time. Training data and figures:
``strategies/compression/models/MODEL_CARD.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from posology.errors import IndexMismatch
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
#: Seconds a question and seconds a token of the passages, on two cores.
_SECONDS, _SECONDS_A_TOKEN = 1e-3, 1.5e-6


class Pruner:
    """:class:`~posology.seams.Compressor` that keeps the sentences relevant to the question, possibly none.

    Args:
        threshold: minimum probability of a kept sentence when no share is given; ``None``: the calibrated one.
        head: trained scorer; ``None``: the packaged one.

    Raises:
        ValueError: ``threshold`` is not 0 to 1, or the head was trained on another codec.
    """

    def __init__(
        self,
        *,
        threshold: float | None = None,
        head: Head | None = None,
    ) -> None:
        if threshold is not None and not 0 <= threshold <= 1:
            raise ValueError(f"threshold must be 0 to 1 (got {threshold})")
        self._codec = LateCodec.packaged()
        self._head = Head.packaged() if head is None else head
        if self._head.codec != self._codec.name:
            raise ValueError(
                f"head must be trained on codec {self._codec.name} (got {self._head.codec})"
            )
        self._threshold = self._head.threshold if threshold is None else threshold
        #: compresses retrievals without token codes of the codec
        self._fallback = LeanContext.top()

    @property
    def name(self) -> str:
        """Return its name for records."""
        return NAME

    @property
    def version(self) -> str:
        """Return the digest of its head."""
        return self._head.version

    @property
    def extractive(self) -> bool:
        """Return True: it shows the sources' own words."""
        return True

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages with their token codes, and the query's token vectors. If any are missing, or of
                another codec, the fallback compresses all passages.
            keep: share of all sentences that stays, rounded up to whole ones; ``None``: those whose probability
                reaches the threshold, possibly none.

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
        """Return the share; without one, the measured share that the threshold leaves."""
        return share_of(keep, self._head.left)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """Return seconds proportional to the tokens."""
        if not self.reads(retrieval):
            return self._fallback.seconds(retrieval, keep)
        tokens = sum(len(p.tokens.codes) for p in retrieval.passages if p.tokens is not None)
        return _SECONDS + _SECONDS_A_TOKEN * tokens

    def reads(self, retrieval: Retrieval) -> bool:
        """Return whether it can score the passages; if not, the fallback compresses them."""
        return _readable(retrieval, self._codec)

    def scores(self, retrieval: Retrieval) -> tuple[list[NDArray[np.float32]], NDArray[np.float32]]:
        """Score all sentences and passages.

        Returns:
            For each passage, the probability that each sentence is relevant, shape ``(sentences,)``; and one score
            a passage, shape ``(passages,)``, higher is better: its log odds as trained, ``-inf`` for a passage
            without sentences.

        Raises:
            IndexMismatch: the retrieval has no token codes of its codec.
        """
        asked = retrieval.query_tokens
        if asked is None or not self.reads(retrieval):
            raise IndexMismatch(
                f"The index has no token codes of {self._codec.name}. Ingest again with that codec.",
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
    """:class:`~posology.seams.Reranker` by the pruner's passage scores.

    Args:
        pruner: scorer of passages; ``None``: the packaged one.
    """

    def __init__(self, pruner: Pruner | None = None) -> None:
        self._pruner = Pruner() if pruner is None else pruner

    @property
    def name(self) -> str:
        """Return its name, with the digest of the pruner's head."""
        return f"late-{self._pruner.version}"

    def __call__(self, retrieval: Retrieval) -> NDArray[np.float32]:
        """Return one score a passage, shape ``(len(retrieval.passages),)``; higher is better.

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
