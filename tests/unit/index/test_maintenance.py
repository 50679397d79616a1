"""Indices by the number of rows, on small tables with the thresholds lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.index import maintenance
from posology.index.schema import Row, digest
from posology.index.search import ann
from posology.index.search.ann import Built
from posology.index.search.recall import Sample, nearest
from posology.index.store import Index
from posology.index.view import View
from posology.testing.models.embedder import HashEmbedder
from posology.types import Encoded, Filters, Passage

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIM = 64
JOURNALS = ("Heart", "Lung", "Rare Journal")


def vectors(n: int, seed: int = 0) -> NDArray[np.float32]:
    """Clusters, as texts make them: unit vectors around one of 40 centres."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(40, DIM))
    found = centres[rng.integers(0, 40, n)] + rng.normal(size=(n, DIM))
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


def rows(n: int, *, start: int = 0, sentences: int = 2) -> Iterator[Row]:
    for i, vector in enumerate(vectors(n, seed=start), start=start):
        passage = Passage(
            id=f"p:{i}",
            text=f"Finding number {i}.",
            title=f"Study {i}",
            pmid=str(i),
            journal=JOURNALS[2] if i % 500 == 0 else JOURNALS[i % 2],
            year=1990 + i % 30,
            retracted=i % 400 == 1,
        )
        encoded = Encoded(vector=vector, sentence_vectors=np.tile(vector, (sentences, 1)))
        yield Row(passage=passage, sentences=(), encoded=encoded, digest=digest(passage))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """3,000 passages, indexed approximately."""
    embedder = HashEmbedder(dim=DIM)
    index = Index.create(tmp_path_factory.mktemp("large") / "index", embedder.name, DIM)
    index.upsert(list(rows(3_000)))
    index.finish(exact_from=1_000, approximate_from=1_000)
    return index


def exact(
    query: NDArray[np.float32], k: int, keep: Callable[[int], bool] = lambda i: True
) -> list[str]:
    """The ids of the k best that are kept."""
    order = np.argsort(-(vectors(3_000) @ query), kind="stable").tolist()
    return [f"p:{i}" for i in order if keep(i)][:k]


def best(
    found: Sequence[str], query: NDArray[np.float32], k: int, keep: Callable[[int], bool] = lambda i: True
) -> None:  # fmt: skip
    """See that the k best that are kept were found, in order; of equal ones, to the last bits, any."""
    scores = vectors(3_000) @ query
    places = [int(name[2:]) for name in found]
    assert len(set(places)) == len(places)
    assert all(map(keep, places))
    wanted = [int(name[2:]) for name in exact(query, k, keep)]
    np.testing.assert_allclose(scores[places], scores[wanted], atol=1e-5)


def test_what_an_index_finds_is_measured_and_told(large: Index) -> None:
    info = large.info()
    assert info.vector_index == "IvfPq"
    assert info.recall is not None
    assert info.recall >= ann.FLOOR
    assert info.partitions == 55
    assert info.probes is not None
    assert 1 <= info.probes <= 55
    # anybody who opens it reads the same
    again = Index.open(large.uri).info()
    assert (again.recall, again.probes) == (info.recall, info.probes)


def test_what_was_measured_is_what_a_reader_finds(large: Index) -> None:
    queries = vectors(100, seed=5)
    found = [
        ann.overlap(
            [int(i[2:]) for i in large.dense(query, 16, retracted=True).ids],
            [int(i[2:]) for i in exact(query, 16)],
        )
        for query in queries
    ]
    assert np.mean(found) >= ann.FLOOR - 0.03


def test_the_nearest_are_those_of_every_vector(large: Index) -> None:
    table = large._table
    queries = vectors(20, seed=6)
    found = nearest(table, queries)
    names = large.view().names(str(row) for row in found.flatten().tolist())
    for query, line in zip(queries, found.tolist(), strict=True):
        best([names[str(row)] for row in line], query, 16)


@pytest.mark.parametrize("sentences", [0, 2])
def test_questions_are_near_their_passages_and_none_of_their_vectors(
    index: Index, sentences: int
) -> None:
    made = list(rows(300, sentences=sentences))
    index.upsert(made)
    drawn = Sample.of(index._table, queries=50)
    assert drawn.queries.shape == (50, DIM)
    assert drawn.nearest.shape == (50, 16)
    np.testing.assert_allclose(np.linalg.norm(drawn.queries, axis=1), 1, rtol=1e-5)
    stored = np.stack([row.encoded.vector for row in made])
    best = (drawn.queries @ stored.T).max(axis=1)
    assert best.min() > (0.6 if sentences == 0 else 0.99)
    if sentences == 0:
        assert best.max() < 0.9
    assert Sample.of(index._table, queries=50).nearest.tolist() == drawn.nearest.tolist()


def kept(filters: Filters) -> Callable[[int], bool]:
    """Which of the passages of :func:`rows` may be found."""

    def keep(i: int) -> bool:
        journal = JOURNALS[2] if i % 500 == 0 else JOURNALS[i % 2]
        wanted = {name.casefold() for name in filters.journals}
        return (
            i % 400 != 1
            and (not wanted or journal.casefold() in wanted)
            and (filters.since or 0) <= 1990 + i % 30 <= (filters.until or 9999)
        )

    return keep


FEW = st.sampled_from(
    [
        Filters(journals=("Rare Journal",)),
        Filters(since=1995, until=1995),
        Filters(journals=("Rare Journal",), until=1993),
    ]
)
MANY = st.sampled_from(
    [Filters(), Filters(journals=("heart",)), Filters(since=2010), Filters(since=2005, until=2015)]
)


@given(seed=st.integers(0, 10_000), k=st.sampled_from([1, 16, 100]), filters=FEW)
def test_few_matches_are_all_compared(large: Index, seed: int, k: int, filters: Filters) -> None:
    query = vectors(1, seed=seed)[0]
    best(large.view().dense(query, k, filters=filters).ids, query, k, kept(filters))


@given(seed=st.integers(0, 10_000), k=st.sampled_from([1, 16, 100, 1_000]), filters=MANY)
def test_however_few_of_them_are_near_as_many_come(
    large: Index, seed: int, k: int, filters: Filters
) -> None:
    """Of an index that is searched too narrowly to find that many."""
    table = large.connection.open_table("passages")
    built = maintenance.built(table)
    assert built is not None
    narrow = View(table, uri=large.uri, name="narrow", built=replace(built, probes=1))
    query = vectors(1, seed=seed)[0]
    found = narrow.dense(query, k, filters=filters).ids
    assert len(found) == len(exact(query, k, kept(filters)))
    assert all(kept(filters)(int(i[2:])) for i in found)


def test_columns_that_are_filtered_by_are_indexed(large: Index) -> None:
    table = large._table
    kinds = {index.columns[0]: index.index_type for index in table.list_indices()}
    assert kinds == {"id": "BTree", "document": "FTS", "vector": "IvfPq", **maintenance.SCALAR}


def test_a_small_table_has_no_more_indices_than_it_needs(index: Index) -> None:
    index.upsert(list(rows(50)))
    index.finish()
    assert {i.columns[0] for i in index._table.list_indices()} == {"id", "document"}
    assert index.info().vector_index is None


def test_between_them_the_search_is_exact(index: Index) -> None:
    index.upsert(list(rows(1_200)))
    index.finish(exact_from=1_000)
    info = index.info()
    assert (info.vector_index, info.recall, info.probes) == ("IvfFlat", None, None)
    query = vectors(1, seed=3)[0]
    ranked = np.argsort(-(vectors(1_200) @ query), kind="stable")[:16]
    assert list(index.dense(query, 16, retracted=True).ids) == [f"p:{i}" for i in ranked]


def test_an_exact_index_stays_exact_however_often_it_is_added_to(index: Index) -> None:
    """LanceDB splits its partition, and would look into 20 of the parts."""
    many = np.random.default_rng(3).normal(size=(40_000, DIM)).astype(np.float32)
    made = pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(many.ravel()), DIM)})
    plain = index.connection.create_table("plain", made)
    planned = ann.plan(len(many), DIM)
    assert planned is not None
    plain.create_index("vector", config=ann.config(planned))
    plain.add(made.slice(0, 10))
    maintenance.compact(plain)
    query = vectors(1, seed=4)[0]
    search = plain.search(query, vector_column_name="vector").distance_type("dot")
    found = ann.EXACT.apply(search).limit(100).select(["_distance"]).to_arrow()
    best = np.sort(np.concatenate([many, many[:10]]) @ query)[::-1][:100]
    np.testing.assert_allclose(1 - found["_distance"].to_numpy(), best, rtol=1e-4)


@pytest.mark.slow
def test_new_rows_are_found_at_once_and_many_train_the_index_anew(index: Index) -> None:
    index.upsert(list(rows(600)))
    index.finish(exact_from=500, approximate_from=500)
    first = Built.read(index._table.schema)
    assert first is not None
    index.upsert(list(rows(30, start=10_000)))
    query = vectors(30, seed=10_000)[7]
    assert index.dense(query, 1).ids == ("p:10007",)
    index.finish(exact_from=500, approximate_from=500)
    patched = Built.read(index._table.schema)
    # 5 % more change neither the training nor what was measured
    assert patched == replace(first, written=30)
    assert index.dense(query, 1).ids == ("p:10007",)
    index.upsert(list(rows(60, start=20_000)))
    index.finish(exact_from=500, approximate_from=500)
    measured = Built.read(index._table.schema)
    assert measured is not None
    assert (measured.rows, measured.measured) == (600, 690)
    index.upsert(list(rows(100, start=30_000)))
    index.finish(exact_from=500, approximate_from=500)
    trained = Built.read(index._table.schema)
    assert trained is not None
    assert (trained.rows, trained.measured) == (790, 790)
    assert index.dense(query, 1).ids == ("p:10007",)


@pytest.mark.slow
def test_rows_that_are_revised_count_as_new_ones(index: Index) -> None:
    index.upsert(list(rows(600)))
    index.finish(exact_from=500, approximate_from=500)
    found = []
    for start in (10_000, 20_000, 30_000, 40_000):
        # other passages under the same ids: the table does not grow
        revised = zip(rows(40), rows(40, start=start), strict=True)
        index.upsert([replace(new, passage=old.passage) for old, new in revised])
        if start == 20_000:
            index.compact()
        index.finish(exact_from=500, approximate_from=500)
        built = Built.read(index._table.schema)
        assert built is not None
        assert (built.rows, built.measured) == (600, 600)
        found.append((built.written, built.seen))
    assert index.count() == 600
    # measured anew above a twentieth, trained anew above a fifth
    assert found == [(40, 40), (80, 80), (120, 120), (0, 0)]


@pytest.mark.slow
def test_too_little_is_told_as_it_is(index: Index) -> None:
    index.upsert(list(rows(600)))
    with index.lock:
        found = maintenance.tune(index._table, exact_from=500, approximate_from=500, floor=1.1)
    assert found is not None
    assert found.probes == found.partitions
    assert found.recall is not None
    assert found.recall <= 1


def test_an_index_whose_measure_is_lost_is_searched_all_the_same(index: Index) -> None:
    index.upsert(list(rows(600)))
    index.finish(exact_from=500, approximate_from=500)
    table = index.connection.open_table("passages")
    table.update_field_metadata({"path": "vector", "metadata": {"posology.ann": None}})
    found = maintenance.built(table)
    assert found is not None
    assert found.recall is None
    assert 1 <= found.probes <= found.partitions == 25
