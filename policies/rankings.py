"""Agreement of two rankings: measures from 0 to 1, or −1 to 1, defined for every pair of rankings."""

from __future__ import annotations

from collections.abc import Sequence

#: weight of each place relative to the one before, in :func:`overlap`: the first five places have 4/5 of the weight
PERSISTENCE = 0.8


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
