"""Tasks over a few passages, for tests of strategies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posology.text.sentences import split
from posology.types import Hit, Passage, Query, QuoteForm, Ranking, Retrieval, Retrieved, Task


def retrieval_of(query: Query, passages: Sequence[Passage]) -> Retrieval:
    """The passages in their order, whatever the ranking."""
    ranking = Ranking(method="dense", hits=tuple(Hit(passage_id=p.id, score=1.0) for p in passages))
    return Retrieval(
        query=query,
        passages=tuple(
            Retrieved(
                passage=p,
                sentences=split(p.text),
                vector=np.zeros(2, np.float32),
                sentence_vectors=np.zeros((len(split(p.text)), 2), np.int8),
            )
            for p in passages
        ),
        query_vector=np.zeros(2, np.float32),
        dense=ranking,
        bm25_rerank=ranking,
        bm25=ranking,
        fused=ranking,
        index_version="test@1",
    )


def task_of(
    query: Query,
    passages: Sequence[Passage],
    *,
    model: str = "openai:test",
    quotes: QuoteForm = "copied",
) -> Task:
    """Answer the query from the passages."""
    return Task(
        query=query,
        retrieval=retrieval_of(query, passages),
        model=model,
        max_tokens=300,
        quotes=quotes,
    )
