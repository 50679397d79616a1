from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posology.index.search import ann
from posology.index.search.ann import Built, Search, begin, overlap, plan, settle

ROWS = st.integers(0, 50_000_000)
DIMS = st.integers(1, 4_096)


def made(**changes: object) -> Built:
    values = {
        "kind": "IvfPq", "rows": 1_000_000, "partitions": 1_000, "probes": 40, "candidates": 160,
        "recall": 0.96, "queries": 200, "measured": 1_000_000,
    }  # fmt: skip
    return Built(**{**values, **changes})  # type: ignore[arg-type]


@given(rows=ROWS, dim=DIMS)
@settings(deadline=None)
def test_any_table_has_a_plan_that_lancedb_can_build(rows: int, dim: int) -> None:
    planned = plan(rows, dim)
    if planned is None:
        assert rows < ann.EXACT_FROM
        return
    assert 1 <= planned.partitions <= rows
    assert (planned.kind == "IvfPq") == (rows >= ann.APPROXIMATE_FROM)
    if planned.kind == "IvfPq":
        assert planned.sub_vectors is not None
        assert dim % planned.sub_vectors == 0
        assert planned.bits in (4, 8)
        assert planned.bits == 8 or planned.sub_vectors % 2 == 0
        assert 2**planned.bits <= rows
        # finding the nearest partition costs about what reading one does
        assert 0.5 <= planned.partitions / (rows / planned.partitions) <= 2


@given(rows=st.integers(2_000, 40_000_000), more=st.integers(0, 1_000_000))
@settings(deadline=None)
def test_more_rows_have_no_fewer_partitions(rows: int, more: int) -> None:
    small, large = plan(rows, 384), plan(rows + more, 384)
    assert small is not None
    assert large is not None
    assert small.partitions <= large.partitions


def test_codes_are_a_thirty_second_of_the_vectors() -> None:
    planned = plan(1_000_000, 384)
    assert planned is not None
    assert (planned.sub_vectors, planned.bits) == (96, 4)
    assert 96 * 4 / 8 == 384 * 4 / 32


@pytest.mark.parametrize("rows", [0, 1, 255])
def test_too_few_vectors_to_learn_codes_from_are_searched_exactly(rows: int) -> None:
    planned = plan(rows, 384, exact_from=0, approximate_from=0)
    assert planned is not None
    assert planned.kind == "IvfFlat"


@given(
    k=st.integers(1, 1_000),
    matching=st.none() | st.integers(0, 1_000_000),
    probes=st.integers(1, 1_000),
)
@settings(deadline=None)
def test_a_search_compares_enough_and_looks_further_the_fewer_match(
    k: int, matching: int | None, probes: int
) -> None:
    built = made(probes=probes)
    found = built.search(k, matching)
    if matching is not None and matching <= ann.MATCHES:
        assert found.probes is None
        return
    assert found.probes is not None
    assert built.search(k).probes == probes <= found.probes <= built.partitions
    assert found.refine * k >= max(built.candidates, ann.REFINE * k)
    assert found.refine * k < max(built.candidates, ann.REFINE * k) + k
    assert built.widest(k) == Search(probes=0, refine=found.refine)


def test_half_as_many_matches_never_mean_fewer_probes() -> None:
    probes = [made().search(16, 1_000_000 >> n).probes for n in range(6)]
    assert probes == sorted(probes, key=lambda one: one or 0)
    assert probes[0] == 40
    assert probes[4] == 160


@given(enough=st.integers(1, 2_000), floor=st.floats(0.1, 1.0))
@settings(deadline=None)
def test_what_finds_too_little_looks_further_until_it_finds_enough(
    enough: int, floor: float
) -> None:
    """Where ``enough`` probes find all, and recall grows up to there."""
    asked: list[Search] = []

    def recall(search: Search) -> float:
        asked.append(search)
        assert search.probes is not None
        return min(1.0, search.probes / enough)

    planned = plan(1_000_000, 384)
    assert planned is not None
    found = settle(begin(planned, 1_000_000), recall, floor=floor)
    assert found.recall == recall(found.search(16))
    if enough <= planned.partitions:
        assert found.recall >= floor
    else:
        assert found.recall >= floor or found.probes == planned.partitions
    widths = [search.probes or 0 for search in asked[:-1]]
    assert widths == sorted(widths)
    # no search but the last was enough: what is kept is no wider than it must be
    assert all(min(1.0, width / enough) < floor for width in widths[:-1])


def test_codes_that_are_too_coarse_have_more_true_vectors_compared() -> None:
    planned = plan(1_000_000, 384)
    assert planned is not None
    found = settle(begin(planned, 1_000_000), lambda search: min(1.0, search.refine / 40))
    assert found.candidates >= 0.95 * 40 * 16
    assert found.recall is not None
    assert found.recall >= 0.95


def test_what_no_search_reaches_ends() -> None:
    planned = plan(1_000_000, 384)
    assert planned is not None
    found = settle(begin(planned, 1_000_000), lambda search: 0.5)
    assert (found.recall, found.probes) == (0.5, planned.partitions)


def test_what_is_kept_with_the_column_is_read_again() -> None:
    kept = made().dump()
    assert kept["path"] == "vector"
    field = pa.field("vector", pa.list_(pa.float32(), 8), metadata=kept["metadata"])
    assert Built.read(pa.schema([field])) == made()


@pytest.mark.parametrize(
    "metadata", [None, {"posology.ann": "no json"}, {"posology.ann": '{"x": 1}'}]
)
def test_what_is_not_understood_is_nothing(metadata: dict[str, str] | None) -> None:
    field = pa.field("vector", pa.list_(pa.float32(), 8), metadata=metadata)
    assert Built.read(pa.schema([field])) is None


def test_overlap_is_the_share_of_the_nearest() -> None:
    assert overlap([1, 2, 9, 8], [1, 2, 3, 4]) == 0.5
    assert overlap([3], []) == 1.0
    assert math.isclose(overlap([1], [1, 2, 3]), 1 / 3)
