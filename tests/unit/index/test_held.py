from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from posology.index.schema import STORED, own_flags
from posology.index.search.folding import COLUMNS
from posology.index.search.held import LARGE, READS, SMALL
from posology.index.store import Index
from posology.testing.models.embedder import HashEmbedder
from posology.types import Passage, Ranking

if TYPE_CHECKING:
    from tests.unit.index.conftest import MakeRows

PASSAGES = [
    Passage(
        id=f"p:{i}",
        title=f"Trial {i}" * (i % 3),
        text=f"Aspirin was given to {i} patients. It helped.",
        year=1990 + i if i % 4 else None,
        mesh=("Aspirin", f"Heading {i}") if i % 2 else (),
        authors=("Sue Doe",) if i % 5 == 0 else (),
        retracted=i % 7 == 0,
    )
    for i in range(40)
]


def all_rows(index: Index, embedder: HashEmbedder) -> Ranking:
    vector = embedder.encode_query("aspirin").vector
    return index.view().dense_rows(vector, len(PASSAGES), retracted=True)


def test_every_column_is_either_held_or_read() -> None:
    assert set(SMALL) | LARGE == {*STORED, *COLUMNS}


def test_rows_are_the_same_from_memory(
    index: Index, embedder: HashEmbedder, make_rows: MakeRows
) -> None:
    index.upsert(make_rows(PASSAGES))
    rows, view = all_rows(index, embedder).ids, index.view()
    read, works = view.take(rows), view.works(rows)
    for _ in range(READS):
        view.names(rows)
    assert view.works(rows) == works
    assert view.names(rows) == {row: one.passage.id for row, one in read.items()}
    held = view.take(rows)
    assert held.keys() == read.keys()
    for row, one in held.items():
        assert (one.passage, one.sentences) == (read[row].passage, read[row].sentences)
        assert np.array_equal(one.vector, read[row].vector)
        assert np.array_equal(one.sentence_vectors, read[row].sentence_vectors)
    # in any order, and each row once
    some = [*rows[5:9], *rows[2:7]]
    assert set(view.names(some)) == set(some)


def test_a_new_version_reads_its_own_rows(
    index: Index, embedder: HashEmbedder, make_rows: MakeRows
) -> None:
    index.upsert(make_rows(PASSAGES))
    old = index.view()
    rows = all_rows(index, embedder).ids
    for _ in range(READS + 1):
        old.names(rows)
    index.upsert(make_rows([replace(PASSAGES[1], title="A correction", mesh=("Errata",))]))
    new = index.view()
    assert new.number > old.number
    for _ in range(READS + 1):
        found = new.take(all_rows(index, embedder).ids)
    titles = {one.passage.id: (one.passage.title, one.passage.mesh) for one in found.values()}
    assert titles["p:1"] == ("A correction", ("Errata",))
    assert {one.passage.id: one.passage for one in old.take(rows).values()} == {
        passage.id: replace(passage, flags=own_flags(passage)) for passage in PASSAGES
    }
