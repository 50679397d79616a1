"""A second search: the passages that follow those of the first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.testing.models.embedder import HashEmbedder
from posology.types import EncodedQuery, Filters, Mode, Passage, Retrieval

if TYPE_CHECKING:
    from tests.unit.index.conftest import MakeRows

pytestmark = pytest.mark.anyio

QUERY = make_query("Does aspirin thin the blood?")


def articles(number: int) -> list[Passage]:
    words = ("aspirin", "blood", "thin", "statins", "insulin")
    return [
        Passage(
            id=f"p:{i}",
            title=words[i % 5],
            text=f"{words[(i * i) % 5]} in {i}. It was given.",
            year=2000 + i % 3,
            retracted=i % 7 == 0,
        )
        for i in range(number)
    ]


@pytest.fixture
def retriever(index: Index, make_rows: MakeRows) -> Retriever:
    index.upsert(make_rows(articles(40)))
    index.finish()
    return Retriever(index, HashEmbedder(dim=index.meta.dim))


def ids(found: Retrieval) -> list[str]:
    return [one.passage.id for one in found.passages]


@pytest.mark.parametrize("mode", ["fused", "dense", "bm25"])
async def test_what_follows_is_of_the_fused_ranking(retriever: Retriever, mode: Mode) -> None:
    first = await retriever.retrieve(QUERY, 4, mode)
    wider = await retriever.further(first, 3)
    ranked = ids(await retriever.retrieve(QUERY, 20, "fused"))
    assert ids(wider) == ids(first) + [one for one in ranked if one not in ids(first)][:3]
    assert (wider.order, wider.index_version) == (first.order, first.index_version)
    for one in (wider.dense, wider.fused):
        assert len(one.hits) == 7


async def test_filters_and_retractions_hold_in_a_second_search(retriever: Retriever) -> None:
    only = Filters(since=2001, until=2001)
    first = await retriever.retrieve(QUERY, 4, filters=only)
    wider = await retriever.further(first, 30)
    assert {one.passage.year for one in wider.passages} == {2001}
    assert not any(one.passage.retracted for one in wider.passages)
    assert wider.filters == only
    again = await retriever.further(first, 30, retracted=True)
    assert any(one.passage.retracted for one in again.passages)


async def test_a_question_without_a_vector_is_searched_by_words_again(retriever: Retriever) -> None:
    blind = EncodedQuery(vector=np.zeros(retriever.embedder.dim, np.float32))
    first = await retriever.retrieve(QUERY, 4, "bm25", encoded=blind)
    wider = await retriever.further(first, 3)
    assert ids(wider) == ids(await retriever.retrieve(QUERY, 7, "bm25"))


async def test_an_index_without_more_adds_nothing(retriever: Retriever) -> None:
    first = await retriever.retrieve(QUERY, 40, retracted=True)
    assert ids(await retriever.further(first, 8, retracted=True)) == ids(first)


async def test_a_record_of_a_work_that_was_read_is_not_read_again(
    index: Index, make_rows: MakeRows
) -> None:
    own = [
        Passage(
            id=f"pmid:{i}", title=f"Aspirin trial {i}", text=f"Aspirin thins blood in {i}. " * 9
        )
        for i in range(12)
    ]
    copies = [replace(one, id=f"{one.id}/b", title=one.title.upper()) for one in own]
    index.upsert(make_rows([*own, *copies]))
    index.finish()
    retriever = Retriever(index, HashEmbedder(dim=index.meta.dim))
    first = await retriever.retrieve(QUERY, 4)
    wider = await retriever.further(first, 8)
    assert len({one.split("/")[0] for one in ids(wider)}) == len(wider.passages) == 12
    assert {one.into for one in wider.folded} <= set(ids(wider))
    assert not {one.id for one in wider.folded} & set(ids(wider))


@pytest.mark.parametrize("mode", ["fused", "dense", "bm25"])
async def test_retracted_articles_that_were_left_out_are_known(
    retriever: Retriever, mode: Mode
) -> None:
    found = await retriever.retrieve(QUERY, 10, mode)
    shown = (await retriever.retrieve(QUERY, 10, mode, retracted=True)).passages
    retracted = tuple(one.passage.id for one in shown if one.passage.retracted)
    assert retracted
    assert await retriever.withdrawn(found, 10, mode) == retracted


async def test_an_article_is_named_once_and_an_index_without_retractions_has_none(
    index: Index, make_rows: MakeRows
) -> None:
    sections = [
        Passage(id=f"a#{i}", parent="a", text=f"Aspirin {i} thins blood.", retracted=True)
        for i in range(2)
    ]
    index.upsert(make_rows([Passage(id="b", text="Aspirin.")]))
    index.finish()
    retriever = Retriever(index, HashEmbedder(dim=index.meta.dim))
    assert await retriever.withdrawn(await retriever.retrieve(QUERY, 5), 5) == ()
    index.upsert(make_rows(sections))
    index.finish()
    assert await retriever.withdrawn(await retriever.retrieve(QUERY, 5), 5) == ("a",)
