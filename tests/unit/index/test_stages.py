"""Retrieval in two stages, and that it leaves the rankings as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from posology.errors import InvalidQuery
from posology.index.search.bm25 import rerank
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.testing.models.embedder import HashEmbedder
from posology.types import MODES, Mode, Passage

if TYPE_CHECKING:
    from tests.unit.index.conftest import MakeRows

pytestmark = pytest.mark.anyio

QUERY = make_query("Does aspirin thin the blood?")
STAGED: tuple[Mode, ...] = ("dense>bm25", "bm25>dense")


@pytest.fixture
def retriever(index: Index, make_rows: MakeRows) -> Retriever:
    words = ("aspirin", "blood", "thin", "statins", "insulin")
    passages = [
        Passage(id=f"p:{i}", title=words[i % 5], text=f"{words[(i * i) % 5]} in {i}. It was given.")
        for i in range(40)
    ]
    index.upsert(make_rows(passages))
    index.finish()
    return Retriever(index, HashEmbedder(dim=index.meta.dim))


async def test_the_best_by_meaning_are_ordered_by_words(retriever: Retriever) -> None:
    first = await retriever.retrieve(QUERY, 12, "dense", depth=12)
    second = await retriever.retrieve(QUERY, 5, "dense>bm25", depth=12)
    by_words = rerank(QUERY.text, [one.passage for one in first.passages])
    assert tuple(one.passage.id for one in second.passages) == by_words.ids[:5]


async def test_the_best_by_words_are_ordered_by_meaning(retriever: Retriever) -> None:
    first = await retriever.retrieve(QUERY, 12, "bm25", depth=12)
    second = await retriever.retrieve(QUERY, 5, "bm25>dense", depth=12)
    likeness = {one.passage.id: one.vector @ first.query_vector for one in first.passages}
    found = [one.passage.id for one in second.passages]
    assert set(found) <= set(likeness)
    assert [likeness[i] for i in found] == sorted(likeness.values(), reverse=True)[:5]


@pytest.mark.parametrize("mode", STAGED)
async def test_a_first_stage_of_k_gives_the_same_passages_in_another_order(
    retriever: Retriever, mode: Mode
) -> None:
    stage: Mode = "dense" if mode == "dense>bm25" else "bm25"
    first = await retriever.retrieve(QUERY, 6, stage, depth=6)
    second = await retriever.retrieve(QUERY, 6, mode, depth=6)
    assert {one.passage.id for one in first.passages} == {one.passage.id for one in second.passages}


@pytest.mark.parametrize("mode", MODES)
async def test_the_rankings_are_the_same_in_every_mode(retriever: Retriever, mode: Mode) -> None:
    plain = await retriever.retrieve(QUERY, 7)
    found = await retriever.retrieve(QUERY, 7, mode)
    assert (found.dense, found.bm25, found.bm25_rerank, found.fused) == (
        plain.dense,
        plain.bm25,
        plain.bm25_rerank,
        plain.fused,
    )
    assert np.array_equal(found.query_vector, plain.query_vector)


@pytest.mark.parametrize("mode", STAGED)
async def test_no_word_of_the_question_is_anywhere(retriever: Retriever, mode: Mode) -> None:
    found = await retriever.retrieve(make_query("Qqq zzz?"), 3, mode)
    assert len(found.passages) == (3 if mode == "dense>bm25" else 0)


async def test_another_mode_is_refused(retriever: Retriever) -> None:
    with pytest.raises(InvalidQuery, match="bm25>dense"):
        await retriever.retrieve(QUERY, 3, "dense>fused")  # type: ignore[arg-type]
