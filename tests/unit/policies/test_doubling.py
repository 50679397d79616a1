from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.doubling import Doubling

FACTORS = st.one_of(
    st.integers(2, 6), st.floats(1.05, 6.0, allow_nan=False).map(lambda f: round(f, 3))
)
PASSAGES = st.integers(0, 300)


@st.composite
def ladders(draw: st.DrawFn, *, overlapping: bool) -> Doubling:
    return Doubling(
        start=draw(st.integers(1, 20)),
        factor=draw(FACTORS),
        rounds=draw(st.none() | st.integers(1, 6)),
        overlapping=overlapping,
    )


@pytest.mark.parametrize(
    ("passages", "rungs"),
    [
        (0, ()),
        (1, (1,)),
        (2, (2,)),
        (3, (2, 3)),
        (5, (2, 5)),
        (9, (2, 4, 9)),
        (10, (2, 4, 10)),
        (14, (2, 4, 8, 14)),
        (16, (2, 4, 8, 16)),
    ],
)
def test_it_doubles_until_all_are_shown(passages: int, rungs: tuple[int, ...]) -> None:
    assert Doubling().rungs(passages) == rungs


@pytest.mark.parametrize(
    ("passages", "rungs"), [(0, ()), (1, (1,)), (6, (2, 4)), (7, (2, 4, 1)), (16, (2, 4, 8, 2))]
)
def test_apart_it_shows_what_comes_next(passages: int, rungs: tuple[int, ...]) -> None:
    assert Doubling(overlapping=False).rungs(passages) == rungs


def test_rounds_end_it_before_all_are_shown() -> None:
    assert Doubling(rounds=2).rungs(16) == (2, 4)
    assert Doubling(rounds=2, overlapping=False).rungs(16) == (2, 4)
    assert Doubling(rounds=9).rungs(16) == Doubling().rungs(16)


def test_a_factor_is_what_is_written() -> None:
    assert Doubling(start=10, factor=1.1).rungs(1_000)[:3] == (10, 11, 13)


@given(ladders(overlapping=True), PASSAGES)
def test_all_rungs_together_read_little_more_than_the_last(ladder: Doubling, passages: int) -> None:
    rungs = ladder.rungs(passages)
    if rungs:
        factor = Fraction(str(ladder.factor))
        assert sum(rungs) <= rungs[-1] * factor / (factor - 1)


@given(PASSAGES)
def test_doubling_reads_at_most_twice_what_its_last_rung_reads(passages: int) -> None:
    rungs = Doubling().rungs(passages)
    assert sum(rungs) <= 2 * max(rungs, default=0)


@given(ladders(overlapping=True), PASSAGES)
def test_overlapping_rungs_grow_and_the_last_shows_all(ladder: Doubling, passages: int) -> None:
    rungs = ladder.rungs(passages)
    assert all(a < b for a, b in pairwise(rungs))
    assert bool(rungs) == bool(passages)
    if rungs and (ladder.rounds is None or len(rungs) < ladder.rounds):
        assert rungs[-1] == passages
    assert max(rungs, default=0) <= passages


@given(ladders(overlapping=False), PASSAGES)
def test_apart_every_passage_is_shown_at_most_once(ladder: Doubling, passages: int) -> None:
    rungs = ladder.rungs(passages)
    assert all(rung >= 1 for rung in rungs)
    assert sum(rungs) <= passages
    if ladder.rounds is None:
        assert sum(rungs) == passages


@given(ladders(overlapping=True), ladders(overlapping=False), PASSAGES)
def test_rounds_are_the_most_that_there_are(a: Doubling, b: Doubling, passages: int) -> None:
    for ladder in (a, b):
        if ladder.rounds is not None:
            assert len(ladder.rungs(passages)) <= ladder.rounds


@given(ladders(overlapping=True), ladders(overlapping=True), PASSAGES)
def test_equal_versions_make_equal_rungs(a: Doubling, b: Doubling, passages: int) -> None:
    assert (a.version == b.version) == (a == b)
    if a.version == b.version:
        assert a.rungs(passages) == b.rungs(passages)


def test_a_whole_factor_is_the_same_written_either_way() -> None:
    assert Doubling(factor=2).version == Doubling(factor=2.0).version
    assert Doubling().version != Doubling(overlapping=False).version
    assert Doubling().version != Doubling(rounds=4).version


@pytest.mark.parametrize("start", [0, -1])
def test_a_start_without_passages_is_refused(start: int) -> None:
    with pytest.raises(ValueError, match="start"):
        Doubling(start=start)


@pytest.mark.parametrize("factor", [1, 0.5, -2, float("inf"), float("nan")])
def test_a_factor_that_does_not_grow_is_refused(factor: float) -> None:
    with pytest.raises(ValueError, match="factor"):
        Doubling(factor=factor)


def test_no_rungs_and_fewer_passages_than_none_are_refused() -> None:
    with pytest.raises(ValueError, match="rounds"):
        Doubling(rounds=0)
    with pytest.raises(ValueError, match="-1"):
        Doubling().rungs(-1)
