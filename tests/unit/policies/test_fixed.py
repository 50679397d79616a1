from __future__ import annotations

import numpy as np

from policies.fixed import Fixed
from posology.query import make_query
from posology.types import Dose, Ranking, Retrieval, Situation
from strategies import STRATEGIES


def situation() -> Situation:
    query = make_query("Why?")
    empty = Ranking(method="dense", hits=())
    return Situation(
        query=query,
        retrieval=Retrieval(
            query=query,
            passages=(),
            query_vector=np.zeros(2, np.float32),
            dense=empty,
            bm25_rerank=empty,
            bm25=empty,
            fused=empty,
            index_version="index@7",
        ),
        remaining=None,
    )


def test_it_names_what_was_asked_for_and_says_so() -> None:
    decision = Fixed(dose=Dose(strategy="direct"))(situation())
    assert decision.strategy == "direct"
    assert decision.policy == "fixed"
    assert "direct" in decision.reason
    assert decision.features["passages"] == 0


def test_its_default_exists() -> None:
    assert Fixed().dose.strategy in STRATEGIES
