"""Tables of measured compressors, and the Pareto front as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evals import pooled
from evals.compressors.data import Asked
from evals.compressors.measure import Chance, Row
from orchestrator.question.estimates.savings import machine_dollars
from posology.budget.prices.book import PriceBook
from posology.types import Usage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

#: what two cores are paid an hour, and the share of the hours that they work
HOURLY, UTILISATION = Decimal("0.10"), 0.5
#: what can be plotted against the tokens that are left: heading and name of the measure
MEASURES = {
    "gold": "gold-bearing sentences shown",
    "right": "reader's answer holds the gold answer",
}
_DRAWS = 2_000


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Point:
    """A compressor at one level, over n questions."""

    name: str
    keep: float | None
    rows: Sequence[Row]
    #: of each question: the document that it is about
    documents: Sequence[str]

    @property
    def asked(self) -> bool:
        """Whether a model was asked to compress."""
        return any(row.input for row in self.rows)

    def values(self, what: str) -> tuple[NDArray[np.float64], list[str]]:
        """A measure of the questions that have it, with their documents."""
        found = [
            (float(value), document)
            for row, document in zip(self.rows, self.documents, strict=True)
            if (value := _value(row, what)) is not None
        ]
        return np.array([v for v, _ in found]), [d for _, d in found]

    def mean(self, what: str) -> float | None:
        """Of a measure; ``None``: no question has it."""
        values, _ = self.values(what)
        return float(values.mean()) if len(values) else None

    def shown(self, what: str, form: str = ".3f") -> str:
        """Mean and interval of a measure; a dash where no question has it."""
        values, documents = self.values(what)
        if not len(values):
            return "–"
        low, high = interval(values, documents)
        return f"{values.mean():{form}} [{low:{form}}, {high:{form}}]"

    def dollars(self, prices: PriceBook) -> tuple[float, float]:
        """For 1,000 questions: what compressing costs, and what it saves of the prompt's input."""
        own = saved = Decimal(0)
        for row in self.rows:
            calls = prices.cost(pooled.SHADOW, Usage(input=row.input, output=row.output))
            fewer = prices.cost(pooled.SHADOW, Usage(input=max(row.tokens - row.left, 0)))
            assert calls is not None
            assert fewer is not None
            # what a model's call takes is not our machine's time
            machine = 0.0 if row.input else row.seconds
            own += calls + machine_dollars(machine, HOURLY, UTILISATION)
            saved += fewer
        scale = 1_000 / len(self.rows)
        return float(own) * scale, float(saved) * scale


def points(
    found: Mapping[tuple[str, float | None], list[Row]], asked: Sequence[Asked]
) -> list[Point]:
    """Of what was measured, where anything was."""
    documents = {one.id: one.document for one in asked}
    return [
        Point(name=name, keep=keep, rows=rows, documents=[documents[row.id] for row in rows])
        for (name, keep), rows in found.items()
        if rows
    ]


def interval(values: NDArray[np.float64], groups: Sequence[str]) -> tuple[float, float]:
    """A 95 % bootstrap interval of the mean, whole groups drawn: questions about one document are alike."""
    _, of = np.unique(np.array(groups), return_inverse=True)
    sums, counts = np.bincount(of, weights=values), np.bincount(of)
    picked = np.random.default_rng(0).integers(0, len(sums), (_DRAWS, len(sums)))
    means = sums[picked].sum(axis=1) / counts[picked].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def front(found: Sequence[Point], what: str) -> set[tuple[str, float | None]]:
    """Those than which no other shows as much of the gold with as few tokens; chance is none of them."""
    placed = [
        (point, share, value)
        for point in found
        if point.name != Chance.name
        and (share := point.mean("text")) is not None
        and (value := point.mean(what)) is not None
    ]
    return {
        (point.name, point.keep)
        for point, share, value in placed
        if not any(
            other_share <= share
            and other_value >= value
            and (other_share < share or other_value > value)
            for _, other_share, other_value in placed
        )
    }


def table(found: Sequence[Point], prices: PriceBook) -> Iterator[str]:
    """A row a compressor and level, dollars for 1,000 questions; those on a front are marked."""
    by_gold, by_right = front(found, "gold"), front(found, "right")
    yield (
        "| compressor | keep | n | tokens left | gold sentences shown | whole | answer left | reader right "
        "| others emptied | ms a passage | own $ | saved $ | front |"
    )
    yield "| --- " * 13 + "|"
    for point in found:
        key = (point.name, point.keep)
        own, saved = point.dollars(prices)
        marks = [mark for mark, keys in (("gold", by_gold), ("reader", by_right)) if key in keys]
        yield (
            f"| {point.name}{'*' if point.asked else ''} | {_level(point.keep)} | {len(point.rows)} | {point.shown('text')} "
            f"| {point.shown('gold')} | {_mean(point, 'whole')} | {_mean(point, 'answer')} "
            f"| {point.shown('right')} | {_mean(point, 'emptied')} | {_milliseconds(point)} "
            f"| {own:.4f} | {saved:.4f} | {', '.join(marks) or '–'} |"
        )
    if any(point.asked for point in found):
        yield "\n\\* asked of the offline model, which copies sentences: no language model wrote this."


def against(found: Sequence[Point], base: str) -> Iterator[str]:
    """Each compressor beside another one at the same level, question by question."""
    bases = {point.keep: point for point in found if point.name == base}
    for point in found:
        other = bases.get(point.keep)
        if other is None or point.name == base:
            continue
        told = [
            f"{what} {_difference(point, other, what)}"
            for what in ("text", "gold", "right")
            if point.mean(what) is not None and other.mean(what) is not None
        ]
        yield f"{point.name} {_level(point.keep)} minus {base}: " + ", ".join(told)


def draw(sets: Mapping[str, Sequence[Point]], path: Path) -> None:
    """Kept tokens against what is kept with them, a panel a set and measure."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    panels = [
        (name, what)
        for name, found in sets.items()
        for what in MEASURES
        if any(point.mean(what) is not None for point in found)
    ]
    if not panels:
        return
    figure, axes = plt.subplots(1, len(panels), figsize=(5.2 * len(panels), 5.4), squeeze=False)
    names = list(dict.fromkeys(point.name for found in sets.values() for point in found))
    for place, (name, what) in zip(axes[0], panels, strict=True):
        _panel(place, sets[name], what, names)
        place.set_title(f"{name}: {MEASURES[what]}", fontsize=10)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=6, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.04 + 0.025 * (1 + len(labels) // 6), 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _panel(axes: Axes, found: Sequence[Point], what: str, names: Sequence[str]) -> None:
    import matplotlib as mpl

    colours = mpl.colormaps["tab20"]
    markers = "os^Dv<>Pp*hX"
    best = front(found, what)
    for i, name in enumerate(names):
        own = sorted(
            (share, value, (point.name, point.keep) in best)
            for point in found
            if point.name == name
            and (share := point.mean("text")) is not None
            and (value := point.mean(what)) is not None
        )
        if not own:
            continue
        x, y, _ = zip(*own, strict=True)
        axes.plot(
            x, y, marker=markers[i % len(markers)], color=colours(i % 20), label=name,
            linewidth=0.8, markersize=4, alpha=0.8,
        )  # fmt: skip
    edge = sorted(
        (share, value)
        for point in found
        if (point.name, point.keep) in best
        and (share := point.mean("text")) is not None
        and (value := point.mean(what)) is not None
    )
    if edge:
        x, y = zip(*edge, strict=True)
        axes.plot(
            x, y, color="black", linestyle="--", linewidth=1, marker="o", markersize=9,
            markerfacecolor="none", label="Pareto front",
        )  # fmt: skip
    axes.set_xlabel("share of the passages' tokens that is left")
    axes.grid(visible=True, alpha=0.3)
    axes.set_ylim(0, 1.03)
    axes.set_xlim(0, 1.03)


def _value(row: Row, what: str) -> float | None:
    if what == "text":
        return row.left / row.tokens if row.tokens else None
    if what == "emptied":
        return row.emptied / row.others if row.others else None
    value = getattr(row, what)
    return None if value is None else float(value)


def _difference(point: Point, other: Point, what: str) -> str:
    theirs = {row.id: _value(row, what) for row in other.rows}
    pairs = [
        (mine - base, document)
        for row, document in zip(point.rows, point.documents, strict=True)
        if (mine := _value(row, what)) is not None and (base := theirs.get(row.id)) is not None
    ]
    values = np.array([value for value, _ in pairs])
    low, high = interval(values, [document for _, document in pairs])
    return f"{values.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def _mean(point: Point, what: str) -> str:
    value = point.mean(what)
    return "–" if value is None else f"{value:.3f}"


def _milliseconds(point: Point) -> str:
    took = [1e3 * row.seconds / row.passages for row in point.rows if row.passages]
    return f"{np.mean(took):.2f} (p50 {np.median(took):.2f})"


def _level(keep: float | None) -> str:
    return "own" if keep is None else f"{keep:g}"
