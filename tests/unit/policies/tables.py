"""Q-tables and retrievals for tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.qtable import ACTIONS, QTable
from posology.query import make_query
from posology.types import Passage, Ranking, Retrieval, Retrieved

CREATED = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)


def table(
    *, states: int = 3, dim: int = 4, visits: int | NDArray[np.int64] = 6, **other: Any
) -> QTable:
    """A table whose values are drawn, the same ones each time."""
    random = np.random.default_rng(7)
    actions = other.pop("actions", ACTIONS)
    shape = (states, len(actions))
    counts = np.broadcast_to(visits, shape) if isinstance(visits, int) else visits
    given: dict[str, Any] = {
        "kind": "difference",
        "centroids": random.normal(size=(states, dim)),
        "actions": actions,
        "q": np.where(counts > 0, random.uniform(-1, 1, shape), np.nan),
        "visits": counts,
        "alpha": 0.5,
        "embedder": "hash-4",
        "compressor": "leancontext",
        "model": "offline:extractive",
        "k": 16,
        "prompts": {"answer": "0a" * 8},
        "data": "ab" * 32,
        "least_visits": 5,
        "fallback": 1.0,
        "created": CREATED,
    }
    return QTable(**(given | other))


def retrieval(query: Sequence[float], *passages: Sequence[float]) -> Retrieval:
    """What an index might give: passages of these vectors."""
    asked = make_query("Does it help?")
    none = Ranking(method="dense", hits=())
    return Retrieval(
        query=asked,
        passages=tuple(
            Retrieved(
                passage=Passage(id=f"p{place}", text="It helps."),
                sentences=(),
                vector=unit(vector),
                sentence_vectors=np.zeros((0, len(vector)), np.int8),
            )
            for place, vector in enumerate(passages)
        ),
        query_vector=unit(query),
        dense=none,
        bm25_rerank=none,
        bm25=none,
        fused=none,
        index_version="index@1",
    )


def unit(vector: Sequence[float]) -> NDArray[np.float32]:
    """Of unit length."""
    array = np.asarray(vector, np.float32)
    return (array / np.linalg.norm(array)).astype(np.float32)
