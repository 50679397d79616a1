"""What a re-ranker changes of a retrieval, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.index.search.retriever import Retriever, reorder
from posology.index.store import Index
from posology.query import make_query
from posology.testing.models.embedder import HashEmbedder
from posology.types import Hit, Mode, Passage, Ranking, Retrieval, Retrieved

if TYPE_CHECKING:
    from tests.unit.index.conftest import MakeRows

pytestmark = pytest.mark.anyio

QUERY = make_query("Does aspirin thin the blood?")
RANKINGS = ("dense", "bm25", "fused", "bm25_rerank")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """Scores passages by a function of the retrieval, and remembers how many it was shown."""

    scores: Callable[[Retrieval], list[float]]
    shown: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Always the same."""
        return "scored"

    def __call__(self, retrieval: Retrieval) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        """Whatever the function says."""
        self.shown.append(tuple(one.passage.id for one in retrieval.passages))
        return np.array(self.scores(retrieval), dtype=np.float32)


def _by_number(retrieval: Retrieval) -> list[float]:
    return [float(one.passage.id.removeprefix("p:")) for one in retrieval.passages]


@pytest.fixture
def filled(index: Index, make_rows: MakeRows) -> Index:
    words = ("aspirin", "blood", "thin", "statins", "insulin")
    passages = [
        Passage(id=f"p:{i}", title=words[i % 5], text=f"{words[(i * i) % 5]} in {i}. It was given.")
        for i in range(40)
    ]
    index.upsert(make_rows(passages))
    index.finish()
    return index


@pytest.mark.parametrize("mode", ["dense", "bm25", "fused"])
async def test_the_best_of_the_first_stage_are_handed_out_in_the_new_order(
    filled: Index, embedder: HashEmbedder, mode: Mode
) -> None:
    plain = await Retriever(filled, embedder).retrieve(QUERY, 12, mode)
    reranker = Scored(scores=_by_number)
    found = await Retriever(filled, embedder, reranker, 12).retrieve(QUERY, 4, mode)
    pool = tuple(one.passage.id for one in plain.passages)
    assert reranker.shown == [pool]
    expected = sorted(pool, key=lambda i: -int(i.removeprefix("p:")))[:4]
    assert [one.passage.id for one in found.passages] == expected
    assert found.reranked == Ranking(
        method="reranked",
        hits=tuple(Hit(passage_id=i, score=float(i.removeprefix("p:"))) for i in expected),
    )


@pytest.mark.parametrize("mode", ["dense", "bm25", "fused"])
async def test_the_other_rankings_stay_what_they_are(
    filled: Index, embedder: HashEmbedder, mode: Mode
) -> None:
    plain = await Retriever(filled, embedder).retrieve(QUERY, 5, mode)
    assert plain.reranked is None
    found = await Retriever(filled, embedder, Scored(scores=_by_number), 20).retrieve(
        QUERY, 5, mode
    )
    assert {name: getattr(found, name) for name in RANKINGS} == {
        name: getattr(plain, name) for name in RANKINGS
    }
    assert {len(getattr(found, name).hits) for name in RANKINGS} == {5}


async def test_as_many_are_scored_as_are_asked_for(filled: Index, embedder: HashEmbedder) -> None:
    reranker = Scored(scores=_by_number)
    found = await Retriever(filled, embedder, reranker, 3).retrieve(QUERY, 9, "dense", depth=5)
    assert len(reranker.shown[0]) == len(found.passages) == 9
    assert {one.passage.id for one in found.passages} == set(found.dense.ids)


async def test_an_index_of_nothing_has_nothing_to_score(
    index: Index, embedder: HashEmbedder
) -> None:
    found = await Retriever(index, embedder, Scored(scores=_by_number)).retrieve(QUERY, 3)
    assert found.passages == ()
    assert found.reranked == Ranking(method="reranked", hits=())


@pytest.mark.parametrize("scores", [[1.0], [[1.0]] * 6, [float("nan")] * 6])
async def test_scores_that_are_none_are_refused(
    filled: Index, embedder: HashEmbedder, scores: list[float]
) -> None:
    retriever = Retriever(filled, embedder, Scored(scores=lambda _: scores), 6)
    with pytest.raises(ValueError, match="scored must return"):
        await retriever.retrieve(QUERY, 2)


def test_a_depth_below_one_is_refused(filled: Index, embedder: HashEmbedder) -> None:
    with pytest.raises(ValueError, match="rerank_depth"):
        Retriever(filled, embedder, Scored(scores=_by_number), 0)


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=12), st.integers(1, 14))
def test_of_equal_scores_the_earlier_comes_first(scores: list[int], k: int) -> None:
    empty = Ranking(method="dense", hits=())
    zero = np.zeros(1, dtype=np.float32)
    passages = tuple(
        Retrieved(
            passage=Passage(id=str(i), text="x"),
            sentences=(),
            vector=zero,
            sentence_vectors=np.zeros((0, 1), dtype=np.int8),
        )
        for i in range(len(scores))
    )
    retrieval = Retrieval(
        query=QUERY,
        passages=passages,
        query_vector=zero,
        dense=empty,
        bm25_rerank=replace(empty, method="bm25_rerank"),
        bm25=replace(empty, method="bm25"),
        fused=replace(empty, method="fused"),
        index_version="index@1",
    )
    found = reorder(retrieval, Scored(scores=lambda _: [float(s) for s in scores]), k)
    expected = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]
    assert [one.passage.id for one in found.passages] == [str(i) for i in expected]
    assert found.reranked is not None
    assert found.reranked.ids == tuple(str(i) for i in expected)
