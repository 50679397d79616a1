from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

from posology.query import make_query
from posology.text.sentences import split
from posology.types import Hit, Passage, Query, Ranking, Retrieval, Retrieved, Task

MakeTask: TypeAlias = Callable[..., Task]


def _make_task(*passages: Passage, query: Query | None = None) -> Task:
    asked = query or make_query("Does aspirin lower mortality?")
    ranking = Ranking(method="dense", hits=tuple(Hit(passage_id=p.id, score=1.0) for p in passages))
    retrieval = Retrieval(
        query=asked,
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
    return Task(query=asked, retrieval=retrieval, model="openai:test", max_tokens=300)


@pytest.fixture
def make_task() -> MakeTask:
    return _make_task
