from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.conflicts.cases import FILES, healthver, ramdocs
from evals.conflicts.structure import evaluate
from posology.types import Level, Resolution, Side
from strategies.briefcontext.conflicts import CLEARLY_LATER, rule

sides = st.lists(
    st.builds(
        Side,
        passage_id=st.uuids().map(str),
        level=st.sampled_from(list(Level)),
        year=st.none() | st.integers(1950, 2030),
        retracted=st.booleans(),
        citations=st.just(()),
    ),
    min_size=1,
    max_size=4,
)
MIRROR = {
    Resolution.SUPPORTING: Resolution.OPPOSING,
    Resolution.OPPOSING: Resolution.SUPPORTING,
    Resolution.UNRESOLVED: Resolution.UNRESOLVED,
}


def side(
    name: str, level: Level = Level.TRIAL, year: int | None = 2010, *, retracted: bool = False
) -> Side:
    return Side(passage_id=name, level=level, year=year, retracted=retracted, citations=())


@given(sides, sides)
def test_the_sides_may_be_exchanged(one: list[Side], other: list[Side]) -> None:
    assert rule(one, other).resolution is MIRROR[rule(other, one).resolution]


@given(sides, sides)
def test_the_order_of_sources_changes_nothing(one: list[Side], other: list[Side]) -> None:
    assert rule(one, other) == rule(one[::-1], other[::-1])


@given(sides, sides)
def test_retracted_sources_change_nothing(one: list[Side], other: list[Side]) -> None:
    standing, against = ([s for s in x if not s.retracted] for x in (one, other))
    resolution = rule(one, other).resolution
    if standing and against:
        assert resolution is rule(standing, against).resolution
    elif standing:
        assert resolution is Resolution.SUPPORTING
    elif against:
        assert resolution is Resolution.OPPOSING
    else:
        assert resolution is Resolution.UNRESOLVED


@given(sides, sides)
def test_the_stronger_level_prevails_whatever_the_years(one: list[Side], other: list[Side]) -> None:
    best = [min((s.level.rank for s in x if not s.retracted), default=None) for x in (one, other)]
    if None not in best and best[0] != best[1]:
        wins = Resolution.SUPPORTING if best[0] < best[1] else Resolution.OPPOSING  # type: ignore[operator]
        assert rule(one, other).resolution is wins


@given(sides, sides, sides)
def test_weaker_sources_never_turn_a_ruling(
    one: list[Side], other: list[Side], more: list[Side]
) -> None:
    before = rule(one, other)
    if before.resolution is not Resolution.SUPPORTING:
        return
    top = min(s.level.rank for s in one if not s.retracted)
    weaker = [s for s in more if s.level.rank > top]
    assert rule(one, [*other, *weaker]).resolution is Resolution.SUPPORTING


@given(sides, sides)
def test_it_is_said_who_prevails_and_why(one: list[Side], other: list[Side]) -> None:
    ruling = rule(one, other)
    resolved = ruling.resolution is not Resolution.UNRESOLVED
    assert ruling.how.startswith("Resolved for the " if resolved else "Not resolved: ")
    assert any(s.passage_id in ruling.how for s in one)
    assert any(s.passage_id in ruling.how for s in other)
    assert ruling.how.endswith(".")


@pytest.mark.parametrize(
    ("one", "other", "resolution"),
    [
        ([side("a", year=2010 + CLEARLY_LATER)], [side("b")], Resolution.SUPPORTING),
        ([side("a", year=2009 + CLEARLY_LATER)], [side("b")], Resolution.UNRESOLVED),
        ([side("a")], [side("b", year=2030)], Resolution.OPPOSING),
        ([side("a")], [side("b", year=None)], Resolution.UNRESOLVED),
        # an undated source cannot be called outdated, but may stand on the later side
        ([side("a", year=2030)], [side("b"), side("c", year=None)], Resolution.UNRESOLVED),
        ([side("a", year=2030), side("c", year=None)], [side("b")], Resolution.SUPPORTING),
        # years count among the sources of the best level only
        (
            [side("a"), side("c", Level.CASE_REPORT, 2030)],
            [side("b", year=2011)],
            Resolution.UNRESOLVED,
        ),
        ([side("a", retracted=True)], [side("b", Level.OTHER, None)], Resolution.OPPOSING),
        ([side("a", retracted=True)], [side("b", retracted=True)], Resolution.UNRESOLVED),
    ],
)
def test_years_decide_between_equals(
    one: list[Side], other: list[Side], resolution: Resolution
) -> None:
    assert rule(one, other).resolution is resolution


def test_what_is_only_of_concern_does_not_prevail() -> None:
    review, trial = side("a", Level.SYSTEMATIC_REVIEW), side("b")
    assert rule([review], [trial]).resolution is Resolution.SUPPORTING
    doubted = replace(review, concern=True)
    ruling = rule([doubted], [trial])
    assert ruling.resolution is Resolution.UNRESOLVED
    assert "a (systematic review, 2010, expression of concern) would prevail" in ruling.how
    # one that nobody doubts carries it
    assert rule([doubted, replace(review, passage_id="c")], [trial]).resolution is (
        Resolution.SUPPORTING
    )
    # and what is doubted can lose
    assert rule([doubted], [replace(review, year=2030)]).resolution is Resolution.OPPOSING


def test_an_old_source_lends_no_weight_to_a_late_one_of_concern() -> None:
    doubted, old = replace(side("a", year=2020), concern=True), side("c", year=2005)
    ruling = rule([doubted, old], [side("b", year=2010)])
    assert ruling.resolution is Resolution.UNRESOLVED
    assert "a (trial, 2020, expression of concern) would prevail" in ruling.how
    late = replace(old, year=2016)
    assert rule([doubted, late], [side("b", year=2010)]).resolution is Resolution.SUPPORTING


def test_the_sentence_names_sources_levels_and_years() -> None:
    how = rule([side("a", Level.COHORT, 1990)], [side("b", year=None, retracted=False)]).how
    assert "b (trial, year unknown) over a (cohort, 1990)" in how


@pytest.mark.data
def test_reported_conflicts_are_those_of_the_gold_labels(shared_data: Path) -> None:
    if missing := [name for name in FILES if not (shared_data / name).exists()]:
        pytest.skip(f"no {missing[0]}")
    counts = anyio.run(evaluate, [*healthver(shared_data)[:60], *ramdocs(shared_data)[:40]])
    assert counts.conflicts > 20
    assert counts.perfect
