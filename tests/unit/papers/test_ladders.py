"""Adaptive RAG's suites on tiny data."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.papers.doubling.ladders import MOST, ByPassages, Curve, apart, doubling, linear
from evals.papers.suite import Given
from tests.unit.papers.test_briefcontext import measured
from tests.unit.papers.tiny_data import tiny


def test_ladders_grow_as_they_are_named() -> None:
    assert doubling(MOST)[1].rungs == (1, 2, 4, 8, 16, 32, 64)
    assert doubling(MOST, start=2)[1].rungs == (2, 4, 8, 16, 32, 64)
    assert apart(15)[1].rungs == (1, 2, 4, 8)
    assert linear(20)[1].rungs == (5, 10, 15, 20)


def test_answers_are_right_refused_or_wrong_and_passages_are_counted(tmp_path: Path) -> None:
    text, rows = measured(ByPassages(), tiny(tmp_path), "immune", "over-refusing")
    assert len(rows) == 3 * 2 * len(ByPassages.arms)
    for row in rows:
        assert row.values["right"] + row.values["refused"] + row.values["wrong"] == 1  # type: ignore[operator]
    # six paragraphs at hand
    assert all(row.values["passages"] == 6 for row in rows if row.arm == f"fixed, k {MOST}")
    assert "| fixed, k 1 | right | 0.680 | gpt-3.5-turbo-0613" in text


def test_ladders_stand_beside_fixed_numbers(tmp_path: Path) -> None:
    text, _ = measured(Curve(), tiny(tmp_path), "strong")
    assert f"| strong | doubling, overlapping, to {MOST} | fixed, k {MOST} | ×" in text
    assert f"| strong | linear by 5, to {MOST} | doubling, overlapping, to {MOST} | ×" in text


@pytest.mark.slow
def test_the_shared_paragraphs_are_asked(shared_data: Path, tmp_path: Path) -> None:
    _, rows = measured(Curve(), Given(data=shared_data, work=tmp_path, questions=1), "strong")
    assert len(rows) == len(Curve.arms)
