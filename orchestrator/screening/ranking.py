"""Reading order of records: by the question first, then by a linear model of the decisions made so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from posology.index.search.bm25 import rerank
from posology.index.search.rankings import fuse
from posology.types import Hit, Passage, Ranking

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: weight of the question's ranking beside that of the decisions
QUESTION = 0.3
#: strength of the model's regularisation, in records of a balanced sample
RIDGE = 1.0
_STEPS, _PRECISION = 25, 1e-4


class Order:
    """Orders the records of one question.

    Args:
        ids: ids of the records.
        vectors: one for each, shape ``(len(ids), dim)``.
        question: vector of the question, shape ``(dim,)``.
        words: ranking of the same ids by words.
    """

    def __init__(
        self,
        ids: Sequence[str],
        vectors: NDArray[np.float32],
        question: NDArray[np.float32],
        words: Ranking,
    ) -> None:
        self._row = {one: row for row, one in enumerate(ids)}
        #: with a constant, so that the model has an intercept
        self._vectors = np.column_stack([vectors, np.ones(len(ids))]).astype(np.float64)
        self.first = fuse([_ranked(ids, vectors @ question), words])

    def unread(self, read: Mapping[str, bool]) -> tuple[str, ...]:
        """Return the ids of the records that were not read, most relevant first.

        The question's order alone is used until there is a relevant and an irrelevant record.

        Args:
            read: whether each read record is relevant.
        """
        left = [one for one in self.first.ids if one not in read]
        by_question = Ranking(
            method="fused", hits=tuple(Hit(passage_id=i, score=0.0) for i in left)
        )
        if len(set(read.values())) < 2:
            return by_question.ids
        rows = [self._row[one] for one in read]
        weights = fit(self._vectors[rows], np.array(list(read.values())))
        scores = self._vectors[[self._row[one] for one in left]] @ weights
        return fuse([_ranked(left, scores), by_question], weights=[1.0, QUESTION]).ids


def by_words(question: str, passages: Sequence[Passage]) -> Ranking:
    """Return passages ranked by BM25 among themselves, without those that share no word with the question."""
    ranked = rerank(question, passages)
    least = min((hit.score for hit in ranked.hits), default=0.0)
    return Ranking(method="bm25", hits=tuple(hit for hit in ranked.hits if hit.score > least))


def fit(vectors: NDArray[np.float64], relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the weights of a logistic regression with an L2 penalty, both classes of equal weight; by Newton's method.

    Args:
        vectors: shape ``(n, dim)``.
        relevant: shape ``(n,)``, of both classes.
    """
    share = relevant.mean()
    importance = np.where(relevant, 0.5 / share, 0.5 / (1 - share))
    weights = np.zeros(vectors.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-vectors @ weights))
        gradient = vectors.T @ (importance * (chance - relevant)) + RIDGE * weights
        curvature = (vectors.T * (importance * chance * (1 - chance))) @ vectors
        change = np.linalg.solve(curvature + RIDGE * np.eye(len(weights)), gradient)
        weights -= change
        if np.abs(change).max() < _PRECISION:
            break
    return weights


def _ranked(ids: Sequence[str], scores: NDArray[np.floating]) -> Ranking:
    order = np.argsort(-scores, kind="stable")
    hits = tuple(Hit(passage_id=ids[row], score=float(scores[row])) for row in order)
    return Ranking(method="dense", hits=hits)
