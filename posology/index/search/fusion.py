"""Reciprocal rank fusion: several rankings into one, without comparing their scores.

Cormack, Clarke and Büttcher, *Reciprocal rank fusion outperforms Condorcet and individual rank
learning methods*, SIGIR 2009: a passage scores the sum of ``1 / (k + rank)`` over the rankings.
"""

from __future__ import annotations

from collections.abc import Sequence

from posology.types import Hit, Ranking

#: the paper's constant
K = 60


def fuse(
    rankings: Sequence[Ranking], *, k: float = K, weights: Sequence[float] | None = None
) -> Ranking:
    """One ranking of all passages that are in any of ``rankings``.

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
