"""Records of one work take one place in what is retrieved, and the others are named with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from posology.index.search.folding import Fold
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.testing.models.embedder import HashEmbedder
from posology.types import Folded, Passage, SameAs

if TYPE_CHECKING:
    from tests.unit.index.conftest import MakeRows

pytestmark = pytest.mark.anyio

QUERY = make_query("Does aspirin thin the blood?")


def passages(number: int) -> list[Passage]:
    words = "Aspirin was given to thin the blood of adults in a trial of some months. " * 4
    return [
        Passage(id=f"pmid:{i}", title=f"Trial {i}", text=f"{words} {i}.") for i in range(number)
    ]


async def test_everything_that_is_there_thrice_comes_once(
    index: Index, embedder: HashEmbedder, make_rows: MakeRows
) -> None:
    own = passages(20)
    copies = [replace(p, id=f"{p.id}/{n}", title=p.title.upper()) for n in "bc" for p in own]
    index.upsert(make_rows([*own, *copies]))
    index.finish()
    found = await Retriever(index, embedder).retrieve(QUERY, 20)
    ids = [one.passage.id for one in found.passages]
    assert len(ids) == len({i.split("/")[0] for i in ids}) == 20
    assert {one.into for one in found.folded} == set(ids)
    assert len(found.folded) == 40
    assert {one.why for one in found.folded} == {SameAs.COPY}
    for ranking in (found.dense, found.bm25, found.fused, found.bm25_rerank):
        assert sorted(ranking.ids) == sorted(ids)
    everything = await Retriever(index, embedder, fold=Fold.OFF).retrieve(QUERY, 20)
    assert everything.folded == ()
    assert len({one.passage.id.split("/")[0] for one in everything.passages}) < 20


async def test_only_what_stands_for_something_shown_is_named(
    index: Index, embedder: HashEmbedder, make_rows: MakeRows
) -> None:
    article, *others = passages(12)
    preprint = replace(
        article,
        id="pmid:900",
        text="Aspirin thins the blood.",
        publication_types=("Preprint",),
        same_work=(article.id,),
    )
    index.upsert(make_rows([article, preprint, *others]))
    found = await Retriever(index, embedder).retrieve(make_query("Aspirin thins the blood."), 1)
    assert [one.passage.id for one in found.passages] == [article.id]
    assert found.folded == (Folded(id="pmid:900", into=article.id, why=SameAs.VERSION),)
    other = await Retriever(index, embedder).retrieve(make_query(others[3].text), 1, "bm25")
    assert {one.into for one in other.folded} <= {one.passage.id for one in other.passages}
