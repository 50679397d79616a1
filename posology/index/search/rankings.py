"""Rankings from rankings: reciprocal rank fusion, and retrieval in two stages.

Fusion combines rankings without comparing their scores (Cormack, Clarke and Büttcher, *Reciprocal rank fusion outperforms
Condorcet and individual rank learning methods*, SIGIR 2009): a passage scores the sum of ``1 / (k + rank)`` over the
rankings. In two stages, the best q of one method are ordered by the other (TCRA-LLM, 5.7, table 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from posology.index.search.bm25 import rerank
from posology.index.view import View
from posology.types import Hit, Passage, Ranking

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: the paper's constant
K = 60


def fuse(
    rankings: Sequence[Ranking], *, k: float = K, weights: Sequence[float] | None = None
) -> Ranking:
    """Return one ranking of all passages that are in any of ``rankings``.

    Args:
        rankings: each holds a passage at most once.
        k: the larger it is, the less the first places stand out.
        weights: one a ranking; all 1 when left out.

    Returns:
        Method ``fused``. Of equal scores, the passage that has the better place in any ranking
        comes first, then the one whose ranking was handed in first.
    """
    shares = [1.0] * len(rankings) if weights is None else list(weights)
    places: dict[str, tuple[int, int]] = {}
    scores: dict[str, float] = {}
    for order, (ranking, share) in enumerate(zip(rankings, shares, strict=True)):
        for rank, passage_id in enumerate(ranking.ids, start=1):
            scores[passage_id] = scores.get(passage_id, 0.0) + share / (k + rank)
            places[passage_id] = min(places.get(passage_id, (rank, order)), (rank, order))
    best = sorted(scores, key=lambda i: (-scores[i], places[i]))
    return Ranking(method="fused", hits=tuple(Hit(passage_id=i, score=scores[i]) for i in best))


def by_words(view: View, question: str, first: Ranking) -> Ranking:
    """Return the passages of a first stage, ordered by BM25 among themselves; the first stage settles equal scores.

    Args:
        view: of the index.
        question: any text.
        first: with row numbers for ids.

    Returns:
        The same passages, method ``dense>bm25``, row numbers for ids.
    """
    documents = view.documents(first.ids)
    ranked = rerank(question, [Passage(id=row, text=documents[row]) for row in first.ids])
    return Ranking(method="dense>bm25", hits=ranked.hits)


def by_meaning(view: View, vector: NDArray[np.float32], first: Ranking) -> Ranking:
    """Return the passages of a first stage, ordered by their vectors' inner products with the question's.

    Args:
        view: of the index.
        vector: shape ``(dim,)``, as the embedder gives it.
        first: with row numbers for ids.

    Returns:
        The same passages, method ``bm25>dense``, row numbers for ids.
    """
    vectors = view.vectors(first.ids)
    scores = {row: float(vectors[row] @ vector) for row in first.ids}
    best = sorted(first.ids, key=lambda row: -scores[row])
    hits = tuple(Hit(passage_id=row, score=scores[row]) for row in best)
    return Ranking(method="bm25>dense", hits=hits)
