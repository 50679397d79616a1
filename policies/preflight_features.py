"""Features of preflight: agreement of the rankings of one retrieval, and gaps between their scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

from posology.types import Ranking, Retrieval

#: weight of each place relative to the one before, in :func:`overlap`: the first five places have 4/5 of the weight
PERSISTENCE = 0.8
#: prefix of every feature's name
PREFIX = "preflight."
#: numbers of first places that are compared
PLACES = (1, 2, 3, 5, 8)
#: first places that a model reads well; beyond them a key document is buried (section 5.3)
SPOTLIGHT = 3
#: orders that are recognised in a retrieval that does not name its own; if two are equal, the earlier is named
ORDERS = ("fused", "dense", "bm25")
#: name of an unknown order
OTHER_ORDER = "other"
#: Weights of scores in the log odds that a passage is the key document. Rounded maximum likelihood over PubMedQA and SciFact with MiniLM's vectors (``policies/models/README.md``)
WEIGHTS: Mapping[str, float] = MappingProxyType({"dense": 20.0, "corpus": 0.2, "rerank": 0.2})

#: largest log odds; beyond it differences are ignored
_CERTAIN = 9.0


def observe(retrieval: Retrieval) -> dict[str, float | str | int]:
    """Return all features, flat: names to numbers, and the name of the order of showing.

    Every feature is present and finite for any retrieval. Rankings that are compared: ``dense``;
    ``bm25_rerank``, the same passages by BM25; ``bm25`` over the whole corpus; ``fused``; and ``shown``, the order of the
    passages themselves. Features of a re-ranker's scores are 0 without one.
    """
    dense, rerank = retrieval.dense, retrieval.bm25_rerank
    corpus, fused = retrieval.bm25, retrieval.fused
    seen: dict[str, float | str | int] = {
        "order": _order(retrieval),
        "passages": len(retrieval.passages),
        "words": len(retrieval.query.text.split()),
    }
    for n in PLACES:
        seen[f"iou_{n}"] = iou(dense.ids, rerank.ids, n)
    seen["overlap"] = overlap(dense.ids, rerank.ids)
    seen["correlation"] = correlation(dense.ids, rerank.ids)
    seen["corpus_iou_3"] = iou(dense.ids, corpus.ids, 3)
    seen["corpus_overlap"] = overlap(dense.ids, corpus.ids)
    seen["fused_iou_3"] = iou(dense.ids, fused.ids, 3)
    for name, ranking, other in (
        ("dense_first_in_rerank", rerank, dense),
        ("rerank_first_in_dense", dense, rerank),
        ("dense_first_in_corpus", corpus, dense),
        ("corpus_first_in_dense", dense, corpus),
        ("fused_first_in_dense", dense, fused),
        ("fused_first_in_rerank", rerank, fused),
        ("fused_first_in_corpus", corpus, fused),
    ):
        seen[name] = nearness(ranking.ids, other.ids)
    seen |= _beyond(retrieval)
    seen |= _gaps("dense", dense)
    seen |= _gaps("rerank", rerank)
    seen |= _gaps("corpus", corpus)
    seen |= _gaps("fused", fused)
    seen |= _reranked(retrieval)
    return {PREFIX + name: value for name, value in seen.items()}


def _order(retrieval: Retrieval) -> str:
    if retrieval.order is not None:
        return retrieval.order
    shown = tuple(one.passage.id for one in retrieval.passages)
    for name in ORDERS:
        ranking: Ranking = getattr(retrieval, name)
        if ranking.ids[: len(shown)] == shown:
            return name
    return OTHER_ORDER


def _beyond(retrieval: Retrieval) -> dict[str, float | str | int]:
    """Return the log odds that the key document, if retrieved, is beyond the first places shown.

    By both methods together, and by each alone.
    """
    shown = {one.passage.id for one in retrieval.passages[:SPOTLIGHT]}
    names, scores = candidates(retrieval)
    return {
        f"beyond{tag}": _log_odds(
            names,
            [math.fsum(WEIGHTS[by] * scores[by][i] for by in used) for i in range(len(names))],
            shown,
        )
        for tag, used in (
            ("", ("dense", "corpus", "rerank")),
            ("_by_meaning", ("dense",)),
            ("_by_words", ("corpus", "rerank")),
        )
    }


def _reranked(retrieval: Retrieval) -> dict[str, float | str | int]:
    """Return how far the shown order is from the fused one, and how certain a re-ranker is of its first passages.

    Scores of a re-ranker count as log odds; infinite ones are those of its last finite score.
    """
    shown = tuple(one.passage.id for one in retrieval.passages)
    ranking = retrieval.reranked or Ranking(method="reranked", hits=())
    scores = _scores(ranking, ranking.ids)
    return {
        "shown_iou_3": iou(shown, retrieval.fused.ids, 3),
        "shown_overlap": overlap(shown, retrieval.fused.ids),
        "shown_first_in_dense": nearness(retrieval.dense.ids, shown),
        "shown_first_in_corpus": nearness(retrieval.bm25.ids, shown),
        "reranked_beyond": _log_odds(ranking.ids, scores, set(shown[:SPOTLIGHT]))
        if scores
        else 0.0,
        "reranked_lead": scores[0] - scores[min(SPOTLIGHT, len(scores) - 1)] if scores else 0.0,
    }


def candidates(retrieval: Retrieval) -> tuple[list[str], dict[str, list[float]]]:
    """Return the ids that either method found or that are shown first, and their scores by each of :data:`WEIGHTS`."""
    rankings = {
        "dense": retrieval.dense,
        "corpus": retrieval.bm25,
        "rerank": retrieval.bm25_rerank,
    }
    shown = {one.passage.id for one in retrieval.passages[:SPOTLIGHT]}
    names = sorted({name for ranking in rankings.values() for name in ranking.ids} | shown)
    return names, {by: _scores(ranking, names) for by, ranking in rankings.items()}


def _scores(ranking: Ranking, names: Sequence[str]) -> list[float]:
    """Return the score of each id; ids that a ranking lacks score like its last one."""
    scores = {hit.passage_id: hit.score for hit in ranking.hits if math.isfinite(hit.score)}
    last = min(scores.values(), default=0.0)
    return [scores.get(name, last) for name in names]


def _log_odds(names: Sequence[str], utilities: Sequence[float], shown: Set[str]) -> float:
    most = max(utilities, default=0.0)
    shares = [math.exp(max(-700.0, utility - most)) for utility in utilities]
    inside = math.fsum(s for name, s in zip(names, shares, strict=True) if name in shown)
    outside = math.fsum(shares) - inside
    # beyond e^9, documents that were not retrieved matter more than the difference
    least = math.exp(-_CERTAIN) * (inside + outside)
    return math.log(max(outside, least) / max(inside, least)) if names else -_CERTAIN


def _gaps(name: str, ranking: Ranking) -> dict[str, float | str | int]:
    """Return the first score, and its lead over the others as shares of the first."""
    scores = [hit.score for hit in ranking.hits if math.isfinite(hit.score)]
    first = scores[0] if scores else 0.0
    size = max(abs(first), 1e-9)

    def gap(score: float) -> float:
        # scores of opposite signs could make the share arbitrarily large
        return max(-1.0, min(2.0, (first - score) / size))

    def to(place: int) -> float:
        return gap(scores[min(place, len(scores)) - 1]) if scores else 0.0

    mean = math.fsum(scores) / len(scores) if scores else 0.0
    return {
        f"{name}_first": first,
        f"{name}_gap_2": to(2),
        f"{name}_gap_3": to(3),
        f"{name}_gap_4": to(4),
        f"{name}_gap_mean": gap(mean),
    }


def iou(first: Sequence[str], second: Sequence[str], n: int) -> float:
    """Return the intersection over union of the first ``n`` ids of each, 0 to 1; 1 if both are empty.

    Source: Zhang et al. (BriefContext), equation 1.
    """
    one, other = set(first[:n]), set(second[:n])
    union = len(one | other)
    return len(one & other) / union if union else 1.0


def overlap(first: Sequence[str], second: Sequence[str], *, p: float = PERSISTENCE) -> float:
    """Return the rank-biased overlap, 0 to 1: agreement in which the first places count most.

    Extrapolated beyond the end of the shorter ranking; 1 if either is empty.

    Source: Webber, Moffat and Zobel, *A similarity measure for indefinite rankings*, TOIS 2010,
    equation 30.
    """
    depth = min(len(first), len(second))
    if not depth:
        return 1.0
    one: set[str] = set()
    other: set[str] = set()
    total, weight, common = 0.0, 1.0, 0
    for place in range(depth):
        one.add(first[place])
        other.add(second[place])
        common = len(one & other)
        weight *= p
        total += common / (place + 1) * weight
    return min(1.0, (1 - p) / p * total + common / depth * weight)


def correlation(first: Sequence[str], second: Sequence[str]) -> float:
    """Return Spearman's correlation of the places of common ids, −1 to 1; 1 for fewer than two."""
    at = {name: place for place, name in enumerate(second)}
    common = [at[name] for name in first if name in at]
    n = len(common)
    if n < 2:
        return 1.0
    rank = {place: i for i, place in enumerate(sorted(common))}
    squares = sum((i - rank[place]) ** 2 for i, place in enumerate(common))
    return 1 - 6 * squares / (n * (n * n - 1))


def nearness(ranking: Sequence[str], wanted: Sequence[str]) -> float:
    """Return the reciprocal place in ``ranking`` of the first id of ``wanted``; 0 if it is missing."""
    if not wanted or wanted[0] not in ranking:
        return 0.0
    return 1 / (ranking.index(wanted[0]) + 1)
