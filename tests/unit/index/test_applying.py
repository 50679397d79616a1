"""What several items of literature, one after the other, leave to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from posology.corpus.items import Deletion, Notice, NoticeKind, Parts, Record, part_id
from posology.errors import BadRecord
from posology.index.build.batches import Batch
from posology.index.build.report import Tally
from posology.index.build.rows import LocalRowBuilder
from posology.index.build.vectors import GivenVectors
from posology.index.schema import Row
from posology.index.store import Index
from posology.index.sync.changes import apply, changes
from posology.testing.models.embedder import HashEmbedder
from posology.types import Passage

Thing = Record | Deletion | Notice | Parts
HERE = Path("a.jsonl")
ARTICLE = "pmcid:PMC2"
EMBEDDER = HashEmbedder(dim=8)
MAKER = LocalRowBuilder(embedder=EMBEDDER, annotator=None, codec=None)


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.create(tmp_path / "index", EMBEDDER.name, EMBEDDER.dim)


def do(index: Index, *items: Thing) -> Tally:
    tally = Tally()
    apply(Batch(items=items), index, MAKER, None, tally)
    return tally


def record(name: str, *, parent: str | None = None, doi: str | None = None) -> Record:
    passage = Passage(id=name, text="A whole.", parent=parent, doi=doi)
    return Record(passage=passage, path=HERE, line=1, row=0)


def retracts(target: str, *, by: str) -> Notice:
    return Notice(target=target, kind=NoticeKind.RETRACTION, by=by, path=HERE, line=1)


def retracted(index: Index) -> set[str]:
    return {row.passage.id for row in index.fetch(index.ids()) if row.passage.retracted}


def part(number: int) -> Record:
    passage = Passage(id=part_id(ARTICLE, number), text=f"Part {number}.", parent=ARTICLE)
    return Record(passage=passage, path=HERE, line=1, row=0)


def whole(count: int) -> Parts:
    return Parts(id=ARTICLE, count=count, path=HERE, line=1)


GONE = Deletion(id=ARTICLE, path=HERE, line=1)


@pytest.mark.parametrize(
    ("items", "left"),
    [
        ([whole(1)], {1}),
        ([whole(1), whole(2)], {1}),
        ([whole(2), whole(1)], {1}),
        ([whole(1), part(2), whole(3)], {1, 2}),
        ([whole(1), part(2), whole(1)], {1}),
        ([part(3), whole(2)], {1, 2}),
        ([GONE, whole(3)], set()),
        ([whole(1), GONE, part(3), whole(3)], {3}),
        ([GONE, part(2)], {2}),
    ],
)
def test_items_of_one_batch_do_what_they_do_one_after_the_other(
    tmp_path: Path, items: Sequence[Thing], left: set[int]
) -> None:
    ways: dict[str, list[Sequence[Thing]]] = {"together": [items], "apart": [[i] for i in items]}
    for name, batches in ways.items():
        index = Index.create(tmp_path / name, EMBEDDER.name, EMBEDDER.dim)
        for batch in ([part(1), part(2), part(3)], *batches):
            do(index, *batch)
        assert set(index.parts(ARTICLE)) == {part_id(ARTICLE, number) for number in left}, name


def test_of_two_counts_of_parts_the_smaller_holds() -> None:
    assert changes([whole(1), whole(2)]).parts[ARTICLE].count == 1


@pytest.mark.parametrize("end", [GONE, whole(1)])
@pytest.mark.parametrize("before", [None, "pmcid:PMC3"])
def test_a_passage_that_comes_to_an_article_goes_with_it(
    index: Index, before: str | None, end: Deletion | Parts
) -> None:
    do(index, record("a", parent=before))
    assert do(index, record("a", parent=ARTICLE), end).removed == 1
    assert index.ids() == []


def test_a_part_goes_without_what_calls_it_its_article(index: Index) -> None:
    do(index, part(1), part(2), record("a", parent=part_id(ARTICLE, 2)))
    do(index, whole(1))
    assert sorted(index.ids()) == ["a", part_id(ARTICLE, 1)]


@pytest.mark.parametrize("apart", [False, True])
def test_an_article_that_is_deleted_takes_back_what_it_said(index: Index, *, apart: bool) -> None:
    do(index, record("pmid:7"))
    speaks: list[Thing] = [retracts("pmid:7", by=part_id(ARTICLE, 1)), part(1)]
    gone = Deletion(id=ARTICLE, path=HERE, line=2)
    do(index, *speaks)
    assert retracted(index) == {"pmid:7"}
    if apart:
        do(index, gone)
    else:
        do(index, *speaks, gone)
    assert retracted(index) == set()


@pytest.mark.parametrize(
    ("source", "left"), [("ris", {"pmid:7"}), (None, {"pmid:7"}), ("pubmed", set())]
)
def test_an_export_that_knows_of_no_retraction_withdraws_none(
    index: Index, source: str | None, left: set[str]
) -> None:
    do(index, retracts("pmid:7", by="pmid:7"), record("pmid:7"))
    assert retracted(index) == {"pmid:7"}
    passage = Passage(id="pmid:7", text="A whole.", source=source)
    do(index, Record(passage=passage, path=HERE, line=2, row=0))
    assert retracted(index) == left


@pytest.mark.parametrize("first", ["notice", "passages"])
@pytest.mark.parametrize(
    ("target", "reached", "others"),
    [
        ("doi:10.1/abc", ["doi:10.1/ABC", "DOI:10.1/aBc"], ["doi:10.1/abcd", "doi:10.1/ab"]),
        ("DOI:10.1/Abc", ["doi:10.1/ABC", "doi:10.1/abc"], ["10.1/abc"]),
        ("pmcid:PMC12", ["pmcid:PMC12", "PMCID:pmc12"], ["pmcid:PMC1", "pmcid:PMC123", "pmcid:12"]),
        ("PMCID:pmc12", ["pmcid:pmc12", "PMCID:PMC12"], ["pmid:12"]),
        ("pmid:12", ["pmid:12", "PMID:12"], ["pmcid:12", "pmid:123"]),
        ("PMID:12", ["pmid:12", "PMID:12"], ["pmid:1"]),
    ],
)
def test_a_notice_reaches_ids_in_any_letters_whichever_comes_first(
    index: Index, target: str, reached: list[str], others: list[str], first: str
) -> None:
    passages = [*map(record, reached + others), record("part", parent=reached[1])]
    passages.append(record("copy", doi="10.1/abc"))
    if first == "passages":
        do(index, *passages)
    do(index, retracts(target, by="pmid:2"))
    if first == "notice":
        do(index, *passages)
    copies = {"copy"} if "10.1" in target else set()
    assert retracted(index) == {*reached, "part"} | copies


class Unable:
    """Makes no rows."""

    window = 1

    def __init__(self) -> None:
        self._refused: list[BadRecord] = []

    def begin(self, records: Sequence[Record]) -> None:
        pass

    def rows(
        self, records: Sequence[tuple[Record, str]], given: GivenVectors | None
    ) -> Iterator[Row]:
        for one, _ in records:
            self._refused.append(BadRecord("no", path=str(one.path), line=one.line))
        return iter(())

    def refused(self) -> tuple[BadRecord, ...]:
        return tuple(self._refused)


@pytest.mark.parametrize(("items", "left"), [([GONE], set()), ([], {"a"})])
def test_what_is_deleted_goes_though_its_new_record_has_no_row(
    index: Index, items: Sequence[Deletion], left: set[str]
) -> None:
    do(index, record("a", parent=ARTICLE))
    tally = Tally()
    again = record("a", parent=ARTICLE, doi="10.1/new")
    assert apply(Batch(items=(*items, again)), index, Unable(), None, tally) == 1
    assert (set(index.ids()), tally.written, tally.bad) == (left, 0, 1)
