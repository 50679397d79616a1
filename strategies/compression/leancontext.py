"""LeanContext: the sentences nearest to the question whole, the rest reduced, all in their order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from posology.types import Compressed, Excerpt, Retrieval
from strategies.compression.reduction import Nothing, Reducer, SelfInformation
from strategies.compression.results import rounded_up, share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME = "leancontext"
#: LeanContext without a reducer
TOP_NAME = "leancontext_top"
#: Words that stay of what is not kept whole: "we reduce less important sentences by 80 %".
SHARE = 0.2
#: Share of the sentences that are kept where nobody says, see ``python -m evals.leancontext``.
DEFAULT_KEEP = 0.2
#: Seconds for each sentence on one core, the reducer's work included (``python -m evals.leancontext``: 3 ms for
#: 16 abstracts).
_SECONDS = 2e-5


@dataclass(frozen=True, kw_only=True, slots=True)
class LeanContext:
    """Compresses a context as LeanContext does (Arefeen et al. 2023, section *LeanContext*, figures 3 and 4).

    The sentences of all passages are ranked together, by the cosine of their vectors, which the index
    keeps, to the question's. So nothing is embedded here, and it takes milliseconds.

    Unlike the paper's, its pieces are not joined into a new text: they stay spans of their passages, so
    that a quote from them is found in the source; and a passage of which nothing is left is left out.
    """

    #: of the sentences between the kept ones
    reducer: Reducer = field(default_factory=SelfInformation)
    #: of their words, the share that stays, 0 to 1
    share: float = SHARE
    #: for the record
    name: str = NAME

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"a share of words is 0 to 1, not {self.share}")

    @property
    def extractive(self) -> bool:
        """It shows the sources' own words."""
        return True

    @classmethod
    def top(cls) -> LeanContext:
        """The one that keeps the nearest sentences and drops the rest."""
        return cls(reducer=Nothing(), name=TOP_NAME)

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages with their sentences' vectors, and the query's vector.
            keep: share of all sentences, rounded up to whole ones, that are left whole; 0: all are reduced,
                1: all are left; ``None``: :data:`DEFAULT_KEEP`.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
        """
        keep = share_of(keep, DEFAULT_KEEP)
        passages = retrieval.passages
        count = sum(len(retrieved.sentences) for retrieved in passages)
        kept = rounded_up(keep, count)
        nearest = _nearest(retrieval, kept, count)
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
                excerpts.append(Excerpt(passage=retrieved.passage, sentences=tuple(left)))
            begin = end
        return Compressed(
            excerpts=tuple(excerpts), kept=kept, sentences=count, compressor=self.name
        )

    def expected_ratio(self, keep: float | None) -> float:
        """The kept share, and of the rest what the reducer leaves."""
        keep = share_of(keep, DEFAULT_KEEP)
        return keep + (1 - keep) * (0.0 if isinstance(self.reducer, Nothing) else self.share)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:  # noqa: ARG002 - hardly matters
        """Grows with the sentences."""
        return _SECONDS * sum(len(retrieved.sentences) for retrieved in retrieval.passages)


def _nearest(retrieval: Retrieval, kept: int, count: int) -> NDArray[np.bool_]:
    """Which of all sentences are the nearest to the query, of equal ones those of the better passage."""
    nearest = np.zeros(count, np.bool_)
    if 0 < kept < count:
        vectors = np.concatenate([retrieved.sentence_vectors for retrieved in retrieval.passages])
        # rows are unit vectors times 127, all alike: the order is the cosine's
        likeness = vectors.astype(np.float32) @ retrieval.query_vector
        nearest[np.argsort(-likeness, kind="stable")[:kept]] = True
    elif kept:
        nearest[:] = True
    return nearest
