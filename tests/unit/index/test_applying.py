"""What several items of literature, one after the other, leave to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from posology.corpus.items import Deletion, Parts, Record, part_id
from posology.index.applying import apply, changes
from posology.index.batches import Batch
from posology.index.making import RowMaker
from posology.index.report import Tally
from posology.index.store import Index
from posology.testing.embedder import HashEmbedder
from posology.types import Passage

HERE = Path("a.jsonl")
ARTICLE = "pmcid:PMC2"


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
    tmp_path: Path, items: Sequence[Record | Deletion | Parts], left: set[int]
) -> None:
    embedder = HashEmbedder(dim=8)
    maker = RowMaker(embedder=embedder, annotator=None, codec=None)
    for name, batches in {"together": [items], "apart": [[item] for item in items]}.items():
        index = Index.create(tmp_path / name, embedder.name, 8)
        for batch in ([part(1), part(2), part(3)], *batches):
            apply(Batch(items=tuple(batch)), index, maker, None, Tally())
        assert set(index.parts(ARTICLE)) == {part_id(ARTICLE, number) for number in left}, name


def test_of_two_counts_of_parts_the_smaller_holds() -> None:
    assert changes([whole(1), whole(2)]).parts[ARTICLE].count == 1
