"""Pictures of the papers' suites: drawn from the rows that are there, the same from the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.papers.doubling.ladders import ByPassages, fixed
from evals.papers.figures import FIGURES, Line, draw, points, published
from evals.papers.rows import Begun, Result, open_folder

LINES = [line for make in FIGURES.values() for panel in make() for line in panel.lines]


def rows() -> list[Result]:
    """Two questions, of which one is right with a passage and both are with ten."""
    return [
        Result(
            key=f"{name} {k}",
            reader="strong",
            question=name,
            arm=fixed(k)[0],
            values={"right": float(k == 10 or name == "q0"), "refused": None},
        )
        for name in ("q0", "q1")
        for k in (1, 10)
    ]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    with open_folder(tmp_path / ByPassages.name) as folder:
        begun = Begun(started="", version="", suite=ByPassages.name, seed=0, data="")
        folder.rows.write(begun, *rows())
    return tmp_path


def test_a_figure_needs_rows_and_is_the_same_from_the_same_rows(runs: Path, tmp_path: Path) -> None:
    (file,) = draw(runs, tmp_path / "first")
    (again,) = draw(runs, tmp_path / "second")
    assert file.name == "papers-passages.svg"
    assert file.read_bytes() == again.read_bytes()
    text = file.read_text(encoding="utf-8")
    assert "<dc:date>" not in text
    assert "strong" in text
    assert "the paper" in text
    # no row of its reader
    assert "immune" not in text


def test_points_are_means_with_intervals_and_leave_out_what_was_not_measured() -> None:
    line = Line(
        label="", suite=ByPassages(), measure="right", reader="strong",
        arms={k: fixed(k)[0] for k in (1, 2, 10)},
    )  # fmt: skip
    found = points(line, rows())
    assert (found.x, found.y) == ([1, 10], [0.5, 1.0])
    assert (found.low[0], found.high[0]) == (0.0, 1.0)


@pytest.mark.parametrize("line", [line for line in LINES if line.beside], ids=lambda one: one.label)
def test_lines_beside_a_paper_have_its_points(line: Line) -> None:
    assert published(line)


@pytest.mark.parametrize("line", LINES, ids=lambda one: f"{one.suite.name} {one.label}")
def test_lines_are_of_measures_that_their_suite_has(line: Line) -> None:
    assert line.measure in line.suite.measures
