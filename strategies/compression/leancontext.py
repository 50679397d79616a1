"""LeanContext: keep the sentences nearest to the question whole and reduce the rest, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from posology.types import Compressed, Retrieval
from strategies.compression.reduction import Nothing, Reducer, SelfInformation
from strategies.compression.results import rounded_up, share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME = "leancontext"
#: Name of LeanContext without a reducer.
TOP_NAME = "leancontext_top"
#: Share of the words kept of sentences that are not whole: "we reduce less important sentences by 80 %".
SHARE = 0.2
#: Default share of the sentences kept whole; figures: ``python -m evals.compressors``.
DEFAULT_KEEP = 0.2
#: Seconds a sentence on one core, reducer included (measured once: 3 ms for 16 abstracts).
_SECONDS = 2e-5


@dataclass(frozen=True, kw_only=True, slots=True)
class LeanContext:
    """LeanContext's compressor (Arefeen et al. 2023, section *LeanContext*, figures 3 and 4).

    The sentences of all passages are ranked together by cosine to the question. The index stores their vectors, so
    nothing is embedded here, and compressing takes milliseconds.

    Unlike the paper's, the pieces stay spans of their passages, so that a quote is found in the source. A passage
    with no span left is omitted.
    """

    #: reduces the sentences between the whole ones
    reducer: Reducer = field(default_factory=SelfInformation)
    #: share of their words that stays, 0 to 1
    share: float = SHARE
    #: name in records
    name: str = NAME

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must be 0 to 1 (got {self.share})")

    @property
    def extractive(self) -> bool:
        """Return True: it shows the sources' own words."""
        return True

    @classmethod
    def top(cls) -> LeanContext:
        """Return the variant that keeps the nearest sentences and drops the rest."""
        return cls(reducer=Nothing(), name=TOP_NAME)

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages with their sentences' vectors, and the query's vector.
            keep: share of all sentences kept whole, rounded up to whole ones; 0 reduces all, 1 keeps all;
                ``None``: :data:`DEFAULT_KEEP`.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
        """
        keep = share_of(keep, DEFAULT_KEEP)
        passages = retrieval.passages
        count = sum(len(retrieved.sentences) for retrieved in passages)
        kept_count = rounded_up(keep, count)
        nearest = _nearest(retrieval, kept_count, count)
        between = self.reducer(passages, nearest, self.share)
        excerpts = []
        begin = 0
        for retrieved, spans in zip(passages, between, strict=True):
            end = begin + len(retrieved.sentences)
            whole = nearest[begin:end].tolist()
            left = [s for s, is_kept in zip(retrieved.sentences, whole, strict=True) if is_kept]
            left.extend(spans)
            if left:
                left.sort(key=lambda span: span.start)
                excerpts.append(retrieved.excerpt(left))
            begin = end
        return Compressed(
            excerpts=tuple(excerpts), kept=kept_count, sentences=count, compressor=self.name
        )

    def expected_ratio(self, keep: float | None) -> float:
        """Return the share kept whole plus what the reducer leaves of the rest."""
        keep = share_of(keep, DEFAULT_KEEP)
        return keep + (1 - keep) * (0.0 if isinstance(self.reducer, Nothing) else self.share)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:  # noqa: ARG002 - hardly matters
        """Return seconds proportional to the sentences."""
        return _SECONDS * sum(len(retrieved.sentences) for retrieved in retrieval.passages)


def _nearest(retrieval: Retrieval, kept: int, count: int) -> NDArray[np.bool_]:
    """Return which sentences are nearest to the query; ties go to the better passage."""
    nearest = np.zeros(count, np.bool_)
    if 0 < kept < count:
        vectors = np.concatenate([retrieved.sentence_vectors for retrieved in retrieval.passages])
        # rows are unit vectors times 127, all alike: the order is the cosine's
        likeness = vectors.astype(np.float32) @ retrieval.query_vector
        nearest[np.argsort(-likeness, kind="stable")[:kept]] = True
    elif kept:
        nearest[:] = True
    return nearest
