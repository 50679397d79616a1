"""Draws the runs that are there as SVG, the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evals.papers.briefcontext import position
from evals.papers.doubling import ladders
from evals.papers.leancontext import tables
from evals.papers.provence import mixed, needles
from evals.papers.rows import Result, read_results
from evals.papers.suite import Suite, by_arm
from evals.papers.tcra import answers, words
from evals.pooled import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SOLID, DASHED = "-", "--"
#: Okabe and Ito's colours, which colour-blind readers can tell apart
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: inches of a panel
_WIDTH, _HEIGHT = 4.2, 3.1
_OFFLINE = "offline:extractive"


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A measure along the arms of a suite."""

    label: str
    suite: Suite
    measure: str
    #: arm by its place on the axis
    arms: Mapping[float, str]
    #: ``""``: the suite asks none
    reader: str = ""
    #: number of the colour
    colour: int = 0
    #: table of the paper that is drawn beside it, by words of its name; ``None``: none
    beside: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """Lines with common axes."""

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    logarithmic: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Points:
    """A line's values, with their intervals."""

    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]


def _positions() -> Iterator[Panel]:
    suite = position.Position()
    for reader, k in (("strong", 16), ("over-confident", 16)):
        yield Panel(
            title=f"{reader}, {k} documents",
            x="place of the key document, %",
            y="accuracy (simulated)",
            lines=[
                Line(
                    label=method,
                    suite=suite,
                    measure="accuracy",
                    arms={p: position.arm(method, k, p) for p in position.PLACES},
                    reader=reader,
                    colour=i,
                    beside="table S1",
                )
                for i, method in enumerate(position.DOSES)
            ],
        )


def _passages() -> Iterator[Panel]:
    suite = ladders.ByPassages()
    line = Line(
        label="",
        suite=suite,
        measure="right",
        arms={k: ladders.fixed(k)[0] for k in (1, 2, 5, 10, 20, 50, ladders.MOST)},
    )
    profiles = ("strong", "weak", "over-refusing", "over-confident", "immune")
    lines = [replace(line, label=one, reader=one, colour=i) for i, one in enumerate(profiles)]
    yield Panel(
        title="one call",
        x="passages",
        y="right answers (simulated)",
        # the article's points follow no profile
        lines=[*lines, replace(line, colour=6, beside="figure 1")],
        logarithmic=True,
    )


def _chunks() -> Iterator[Panel]:
    suite = tables.Numbers()
    yield Panel(
        title="LeanContext: offline reader; the paper's BBC articles",
        x="chunks",
        y="ROUGE-1",
        lines=[
            Line(
                label=method,
                suite=suite,
                measure="ROUGE-1",
                arms={n: suite.arm(method, n) for n in tables.CHUNKS},
                reader=_OFFLINE,
                colour=i,
                beside="BBC",
            )
            for i, method in enumerate(suite.methods)
            if method != "LeanContext, fixed 0.1"
        ],
    )


def _words() -> Iterator[Panel]:
    suite = words.Removal()
    line = partial(Line, suite=suite, reader=_OFFLINE)
    for measure, title in (("right", "right answers"), ("held", "answers that are left")):
        yield Panel(
            title="offline reader" if measure == "right" else "what there is to read",
            x="share of the words",
            y=title,
            lines=[
                line(
                    label=method,
                    measure=measure,
                    arms={s: words.arm(method, s) for s in words.SHARES} | {1.0: words.WHOLE},
                    colour=i,
                )
                for i, method in enumerate(words.METHODS)
            ],
        )
    found = answers.Passages()
    yield Panel(
        title="by passages",
        x="passages",
        y="right answers",
        lines=[
            Line(
                label=label,
                suite=found,
                measure="right",
                arms={k: f"k = {k}" for k in range(1, answers.MOST + 1)},
                reader=reader,
                colour=3 + i,
            )
            for i, (label, reader) in enumerate(
                (("offline reader", _OFFLINE), ("simulated, strong", "strong"))
            )
        ],
    )


def _pruned() -> Iterator[Panel]:
    place, needle, length = mixed.Place(), needles.Needles(), mixed.Length()
    percent = {100 * p: p for p in place.places}
    yield Panel(
        title="pruner, by place",
        x="place in the passage, %",
        y="gold left",
        lines=[
            *(
                Line(
                    label=f"needle of {n} sentence{'s' * (n > 1)}",
                    suite=needle,
                    measure="gold",
                    arms={x: needle.arm(n, p) for x, p in percent.items()},
                    colour=n - 1,
                )
                for n in (1, 2)
            ),
            Line(
                label="an expert's sentence",
                suite=place,
                measure="gold",
                arms={x: place.arm(6, p) for x, p in percent.items()},
                colour=2,
            ),
        ],
    )
    yield Panel(
        title="pruner, by length",
        x="sentences of the passage",
        y="share",
        lines=[
            Line(
                label=label,
                suite=length,
                measure=measure,
                arms={n: length.arm(n, 0.5) for n in length.lengths},
                colour=colour,
            )
            for label, measure, colour in (("gold left", "gold", 2), ("pruned", "compression", 3))
        ],
    )


FIGURES = {
    "papers-position": _positions,
    "papers-passages": _passages,
    "papers-chunks": _chunks,
    "papers-words": _words,
    "papers-pruned": _pruned,
}


def points(line: Line, rows: Sequence[Result]) -> Points:
    """Return a line's means with 95 % intervals; arms without rows are left out."""
    found = by_arm(rows)
    drawn = Points(x=[], y=[], low=[], high=[])
    for x, arm in line.arms.items():
        values = [row.values.get(line.measure) for row in found.get((line.reader, arm), [])]
        if known := [one for one in values if one is not None]:
            low, high = interval(known)
            drawn.x.append(x)
            drawn.y.append(float(np.mean(known)))
            drawn.low.append(low)
            drawn.high.append(high)
    return drawn


def published(line: Line) -> dict[float, float]:
    """Return the paper's points beside a line, by their place on the axis."""
    place = {arm: x for x, arm in line.arms.items()}
    return {
        place[one.arm]: one.value
        for one in line.suite.published
        if line.beside
        and line.beside in one.source
        and one.arm in place
        and one.measure == line.measure
        and (one.profiles is None or line.reader in one.profiles)
    }


def draw(runs: Path, figures: Path) -> list[Path]:
    """Draw what there are rows for, and return the files.

    Args:
        runs: folder of the runs, one folder a suite.
        figures: folder that the pictures are written to.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    # the same rows give the same file
    mpl.rcParams |= {"svg.hashsalt": "posology", "svg.fonttype": "none", "font.size": 8}
    from matplotlib import pyplot as plt

    rows: dict[str, list[Result]] = {}
    written = []
    for name, make in FIGURES.items():
        panels = list(make())
        for line in (line for panel in panels for line in panel.lines):
            rows.setdefault(line.suite.name, read_results(runs / line.suite.name))
        shown = [one for one in panels if any(rows[line.suite.name] for line in one.lines)]
        if not shown:
            continue
        size = (_WIDTH * len(shown), _HEIGHT)
        figure, axes = plt.subplots(1, len(shown), figsize=size, squeeze=False)
        for place, panel in zip(axes[0], shown, strict=True):
            _panel(place, panel, rows)
        figure.tight_layout()
        figures.mkdir(parents=True, exist_ok=True)
        written.append(figures / f"{name}.svg")
        figure.savefig(written[-1], metadata={"Date": None})
        plt.close(figure)
    return written


def _panel(axes: Axes, panel: Panel, rows: Mapping[str, Sequence[Result]]) -> None:
    for line in panel.lines:
        colour = _COLOURS[line.colour]
        found = points(line, rows[line.suite.name])
        if found.x:
            axes.plot(found.x, found.y, SOLID, color=colour, marker="o", ms=3, label=line.label)
            axes.fill_between(found.x, found.low, found.high, color=colour, alpha=0.1, lw=0)
        if beside := published(line):
            axes.plot([*beside], [*beside.values()], DASHED, color=colour, marker="x", ms=4, lw=1)
    if any(published(line) for line in panel.lines):
        axes.plot([], [], DASHED, color="grey", marker="x", ms=4, lw=1, label="the paper")
    if panel.logarithmic:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_title(panel.title, fontsize=8)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=6, frameon=False)
