"""Figures of a report as SVG, without a library: accuracy, grades, and accuracy beside cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType

from orchestrator.evaluation.forms import CellOutput, EvalOutput, Outcome

#: pixels: width of a figure, of its labels, height of a row, of the title and of the axis
_WIDTH, _LABELS, _ROW, _HEAD, _FOOT = 860, 330, 26, 34, 46
_PLOT = _WIDTH - _LABELS - 30
#: height of the plot of a scatter, pixels
_TALL = 300
#: greatest number of characters of a label
_LONGEST = 48
#: Okabe and Ito's palette, which colour-blind readers can tell apart
_COLOURS: Mapping[Outcome, str] = MappingProxyType(
    {
        Outcome.RIGHT: "#009e73",
        Outcome.REFUSED: "#e69f00",
        Outcome.UNDECIDED: "#56b4e9",
        Outcome.WRONG: "#d55e00",
        Outcome.FAILED: "#999999",
    }
)
_BLUE = "#0072b2"


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A picture, and the words that stand for it."""

    #: name of its file
    file: str
    caption: str
    svg: str


def figures(out: EvalOutput) -> tuple[Figure, ...]:
    """Return the figures of a run; none where there is nothing to show."""
    asked = [cell for cell in out.cells if cell.questions]
    return tuple(_figures(asked))


def _figures(cells: Sequence[CellOutput]) -> Iterator[Figure]:
    if not cells:
        return
    yield Figure(
        file="accuracy.svg",
        caption="Share of right answers, with 95 % intervals",
        svg=_accuracy(cells),
    )
    yield Figure(file="grades.svg", caption="Answers by grade", svg=_grades(cells))
    if any(cell.cost_usd is not None and cell.cost_usd.mean for cell in cells):
        yield Figure(
            file="cost.svg",
            caption="Share of right answers by cost of a question, with 95 % intervals",
            svg=_cost(cells),
        )


def _accuracy(cells: Sequence[CellOutput]) -> str:
    parts, names = list(_frame(len(cells))), _names(cells)
    for row, cell in enumerate(cells):
        found, y = cell.accuracy, _middle(row)
        parts.append(_text(_LABELS - 10, y + 4, names[row], "end"))
        if found is not None:
            low, at, high = (_across(value) for value in (found.low, found.mean, found.high))
            parts += [
                _line(low, y, high, y, _BLUE, 2),
                f'<circle cx="{at:.1f}" cy="{y}" r="5" fill="{_BLUE}"/>',
                _text(_LABELS + _PLOT + 26, y + 4, f"{found.mean:.0%}", "end"),
            ]
    return _svg("Share of right answers", _height(len(cells)), parts)


def _grades(cells: Sequence[CellOutput]) -> str:
    parts, names = list(_frame(len(cells))), _names(cells)
    for row, cell in enumerate(cells):
        y, before = _middle(row), 0
        parts.append(_text(_LABELS - 10, y + 4, names[row], "end"))
        for outcome, colour in _COLOURS.items():
            count = cell.outcomes[outcome]
            start, end = (_across(n / cell.questions) for n in (before, before + count))
            before += count
            if count:
                parts.append(
                    f'<rect x="{start:.1f}" y="{y - 9}" width="{end - start:.1f}" height="18" fill="{colour}">'
                    f"<title>{outcome}: {count} of {cell.questions}</title></rect>"
                )
    for place, (outcome, colour) in enumerate(_COLOURS.items()):
        x = _LABELS + 110 * place
        parts += [
            f'<rect x="{x}" y="8" width="12" height="12" fill="{colour}"/>',
            _text(x + 18, 18, outcome, "start"),
        ]
    return _svg("Answers by grade", _height(len(cells)), parts)


def _cost(cells: Sequence[CellOutput]) -> str:
    known = [
        (name, cell.cost_usd, cell.accuracy)
        for name, cell in zip(_names(cells), cells, strict=True)
        if cell.cost_usd is not None and cell.accuracy is not None
    ]
    most = max(cost.high for _, cost, _ in known) * 1.05
    base, left, wide = _HEAD + _TALL, 70, _WIDTH - 100
    parts = []
    for step in range(5):
        share = step / 4
        y, x = base - _TALL * share, left + wide * share
        parts += [
            _line(left, y, left + wide, y, "#dddddd", 1),
            _text(left - 8, y + 4, f"{share:.0%}", "end"),
            _text(x, base + 18, f"${most * share:.2g}", "middle"),
        ]
    parts.append(_text(left + wide / 2, base + 38, "dollars a question", "middle"))
    for name, cost, found in known:
        x, y = left + wide * cost.mean / most, base - _TALL * found.mean
        ends = [left + wide * end / most for end in (cost.low, cost.high)]
        low, high = (base - _TALL * end for end in (found.low, found.high))
        parts += [
            _line(ends[0], y, ends[1], y, _BLUE, 1),
            _line(x, low, x, high, _BLUE, 1),
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{_BLUE}"/>',
            _text(x + 8, y - 6, name, "start" if x < left + wide * 0.6 else "end"),
        ]
    return _svg("Share of right answers by cost", base + _FOOT, parts)


def _frame(rows: int) -> Iterator[str]:
    """Yield the axis of shares under rows of labels."""
    base = _HEAD + rows * _ROW
    for step in range(5):
        x = _across(step / 4)
        yield _line(x, _HEAD, x, base, "#dddddd", 1)
        yield _text(x, base + 18, f"{step / 4:.0%}", "middle")


def _height(rows: int) -> float:
    return _HEAD + rows * _ROW + _FOOT


def _middle(row: int) -> float:
    return _HEAD + row * _ROW + _ROW / 2


def _across(share: float) -> float:
    return _LABELS + _PLOT * share


def _names(cells: Sequence[CellOutput]) -> list[str]:
    """Return a label for each cell: the policy, and of suite and model those that differ."""
    columns = [[cell.suite for cell in cells], [cell.model for cell in cells]]
    suites, models = (column if len(set(column)) > 1 else None for column in columns)
    labels = []
    for place, cell in enumerate(cells):
        parts = (suites and suites[place], cell.policy, models and models[place])
        full = " · ".join(part for part in parts if part)
        labels.append(full if len(full) <= _LONGEST else f"{full[: _LONGEST - 1]}…")
    return labels


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: int) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width}"/>'
    )


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    # attributes, since a page may forbid styles
    look = 'font-family="sans-serif" font-size="13" fill="#222222"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {_WIDTH} {height:.0f}" '
        f'width="{_WIDTH}" height="{height:.0f}" {look}><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>'
    )
