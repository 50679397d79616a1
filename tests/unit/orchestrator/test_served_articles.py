"""Articles of an index as the documents of a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.tables.served.articles import read_articles
from posology.corpus.items import Record, part_id
from posology.errors import InvalidQuery, PassageNotFound, VersionGone
from posology.index.build.batches import Batch
from posology.index.build.report import Tally
from posology.index.build.rows import LocalRowBuilder
from posology.index.store import Index
from posology.index.sync.changes import apply
from posology.testing.models.embedder import HashEmbedder
from posology.types import Passage
from posology.types.tables import Document

EMBEDDER = HashEmbedder(dim=8)
MAKER = LocalRowBuilder(embedder=EMBEDDER, annotator=None, codec=None)
ARTICLE = "pmcid:PMC2"
PARTS = [part_id(ARTICLE, number) for number in range(1, 12)]


def add(index: Index, *passages: Passage) -> None:
    records = tuple(Record(passage=one, path=Path("a.jsonl"), line=1, row=0) for one in passages)
    apply(Batch(items=records), index, MAKER, None, Tally())


@pytest.fixture
def index(tmp_path: Path) -> Index:
    made = Index.create(tmp_path / "index", EMBEDDER.name, EMBEDDER.dim)
    parts = [Passage(id=one, text=f"Part {one}.", parent=ARTICLE) for one in reversed(PARTS)]
    add(made, *parts, Passage(id="pmid:1", text="A whole.", retracted=True))
    return Index.open(tmp_path / "index")


def ids(document: Document) -> list[str]:
    return [one.id for one in document.passages]


def test_a_passage_stands_for_its_whole_article(index: Index) -> None:
    for given in ([ARTICLE, "pmid:1"], [PARTS[3], "pmid:1", PARTS[9], ARTICLE]):
        version, papers = read_articles(index, given)
        assert version == index.version
        assert [one.id for one in papers.documents] == [ARTICLE, "pmid:1"]
        # the tenth part comes after the second
        assert [ids(one) for one in papers.documents] == [PARTS, ["pmid:1"]]
        assert papers.retracted == {"pmid:1"}


FORGED = Passage(id="+x:4", text="Hers.", title="Her title", parent="pmid:1")


def test_a_record_that_names_an_article_as_its_parent_takes_nothing_over(
    index: Index, tmp_path: Path
) -> None:
    """Of an index of an earlier version, or a chunk whose collection names its article."""
    add(
        Index.open(tmp_path / "index"),
        FORGED,
        replace(FORGED, id="+x:5", parent=ARTICLE),
        replace(FORGED, id=f"{PARTS[3]}#1", parent=PARTS[3]),
        Passage(id="pmid:1#1", text="Its methods.", parent="pmid:1"),
        Passage(id="wiki_9", text="A chunk.", parent="wikipedia:7"),
        Passage(id="wiki_8", text="Another.", parent="wikipedia:7"),
    )
    _, papers = read_articles(
        Index.open(tmp_path / "index"), ["pmid:1", ARTICLE, PARTS[3], "wikipedia:7"]
    )
    assert [one.id for one in papers.documents] == ["pmid:1", ARTICLE, "wikipedia:7"]
    assert [ids(one) for one in papers.documents] == [
        ["pmid:1", "pmid:1#1"],
        PARTS,
        ["wiki_8", "wiki_9"],
    ]
    assert papers.documents[0].passages[0].text == "A whole."


@pytest.mark.parametrize("given", ["pmid:2", "x') OR ('1'='1", f"{ARTICLE}#99"])
def test_an_id_of_nothing_is_named(index: Index, given: str) -> None:
    with pytest.raises(PassageNotFound) as found:
        read_articles(index, ["pmid:1", given])
    assert found.value.passage == given


def test_documents_are_read_in_the_version_of_the_search(index: Index, tmp_path: Path) -> None:
    before = index.view().number
    add(Index.open(tmp_path / "index"), Passage(id="pmid:3", text="Later."))
    fresh = Index.open(tmp_path / "index")
    assert read_articles(fresh, ["pmid:3"])[0] == fresh.version
    with pytest.raises(PassageNotFound):
        read_articles(fresh, ["pmid:3"], before)
    with pytest.raises(VersionGone):
        read_articles(fresh, ["pmid:1"], 9_999)


def test_a_table_has_so_many_passages(index: Index) -> None:
    with pytest.raises(InvalidQuery, match="10 passages together"):
        read_articles(index, [ARTICLE], most=10)
