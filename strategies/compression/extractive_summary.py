"""Extractive summary: keep the most central sentences of the context, regardless of the question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from posology.hub import require
from posology.types import Compressed, Retrieval
from strategies.compression.results import of_sentences, rounded_up, share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME = "extractive_summary"
#: Default number of sentences, as in LeanContext's tables ("SBert").
SENTENCES = 3
#: Starts of k-means; the best one is used.
_STARTS = 4
#: Approximate share of the words of three sentences in 16 passages with a hundred sentences.
_LEFT = 0.03
#: Seconds a call and seconds a sentence on one core; a tenth more for each centroid.
_SECONDS, _SENTENCE_SECONDS = 1e-2, 6e-5


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractiveSummary:
    """Compressor that clusters sentence vectors by k-means and keeps the one nearest to each centroid (Miller 2019).

    The paper embeds sentences with BERT when it summarises. This one uses the vectors of the index, so nothing is
    embedded at question time. It is deterministic.
    """

    name: str = NAME

    @property
    def extractive(self) -> bool:
        """Return True: it shows the sources' own words."""
        return True

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages with their sentences' vectors.
            keep: share of all sentences, rounded up to whole ones; ``None``: :data:`SENTENCES` of them.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
        """
        count = sum(len(one.sentences) for one in retrieval.passages)
        wanted = min(SENTENCES, count)
        if keep is not None:
            wanted = rounded_up(share_of(keep, 0), count)
        kept = np.full(count, wanted == count)
        if 0 < wanted < count:
            vectors = np.concatenate([one.sentence_vectors for one in retrieval.passages])
            kept[_central(vectors.astype(np.float32) / np.float32(127), wanted)] = True
        return of_sentences(retrieval, kept, compressor=self.name)

    def expected_ratio(self, keep: float | None) -> float:
        """Return the share itself."""
        return share_of(keep, _LEFT)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """Return seconds that grow with the sentences and, by a tenth each, with the kept ones."""
        count = sum(len(one.sentences) for one in retrieval.passages)
        wanted = min(SENTENCES, count) if keep is None else rounded_up(share_of(keep, 0), count)
        return _SECONDS + _SENTENCE_SECONDS * count * (1 + wanted / 10)


def _central(vectors: NDArray[np.float32], wanted: int) -> NDArray[np.intp]:
    """Return the rows nearest to each of ``wanted`` centroids.

    If fewer rows differ than are wanted, the next nearest rows of each cluster follow.

    Args:
        vectors: shape ``(n, dim)``.
        wanted: 1 to n - 1.

    Returns:
        Shape ``(wanted,)``.
    """
    require("train", NAME)
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    clusters = min(wanted, len(np.unique(vectors, axis=0)))
    means = KMeans(n_clusters=clusters, n_init=_STARTS, random_state=0)
    # the order in which threads finish would change the last digits
    with threadpool_limits(1):
        labels = means.fit_predict(vectors)
    far = np.linalg.norm(vectors - means.cluster_centers_[labels], axis=1)
    # the nearest of each cluster first, then the second of each, and so on
    order = np.lexsort((far, labels))
    first = np.flatnonzero(np.diff(labels[order], prepend=-1))
    sizes = np.diff(first, append=len(order))
    place = np.arange(len(order)) - np.repeat(first, sizes)
    ranked: NDArray[np.intp] = order[np.lexsort((far[order], place))]
    return ranked[:wanted]
