"""Retrieval in two stages: the best q of one method, put in order by the other (TCRA-LLM, 5.7, table 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from posology.index.search.bm25 import rerank
from posology.index.view import View
from posology.types import Hit, Passage, Ranking

if TYPE_CHECKING:
    from numpy.typing import NDArray


def by_words(view: View, question: str, first: Ranking) -> Ranking:
    """The passages of a first stage, ordered by BM25 among themselves; the first stage settles equal scores.

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
    """The passages of a first stage, ordered by their vectors' inner products with the question's.

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
