"""Typesets PDFs with tables whose cells are known: ruled, half-ruled, unruled, in columns, turned, wrapped, grouped."""

from __future__ import annotations

import io
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reportlab.lib.pagesizes import A4
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

#: label of the table, name of the row with its groups and the heading of names, heading, value
Cell = tuple[str, str, str, str]

_NAMES = (
    "Mortality", "Stroke", "Myocardial infarction", "Age, years", "Female sex", "Body mass index", "Diabetes",
    "Systolic pressure", "Bleeding", "Major bleeding", "Readmission", "Hospital stay, days", "Creatinine",
    "Current smoker", "LDL cholesterol", "Quality of life", "Pain at rest", "Nausea", "Any adverse event",
    "Death from any cause", "Heart failure", "Weight change, kg", "HbA1c, %", "eGFR <60 mL/min", "Withdrawal",
    "Dizziness", "Hypotension",
)  # fmt: skip
_ARMS = (
    "Ramipril", "Placebo", "Aspirin", "Usual care", "Metformin", "Control", "Low dose", "High dose", "All",
    "P value", "Hazard ratio", "Baseline", "Week 12", "Month 6", "Difference", "Mean", "Events", "Risk ratio", "Men",
    "Women",
)  # fmt: skip
_SECOND = (
    "(n = 45)", "(95% CI)", "group", "(%)", "events per year", "at day 28", "mg/dL", "(n = 1,204)",
)  # fmt: skip
_GROUPS = (
    "Primary outcomes", "Secondary outcomes", "Safety", "Demographics", "Medical history", "Laboratory values",
)  # fmt: skip
_SUBS = (("n", "%"), ("Mean", "SD"), ("Events", "Rate", "HR"), ("Before", "After"))
_TEXTS = ("oral", "once daily", "intravenous", "not reported", "yes", "no", "low risk", "some concerns", "placebo tablets", "every second week", "open label")  # fmt: skip
_TEXT = (
    "the patients of both groups were seen at each visit and their pressure was taken while they sat after a rest of "
    "five minutes since we wanted to know whether the effect of treatment lasts beyond the end of the trial and in whom"
)
_PROSE = _TEXT.split()


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a table is set; a field that is not given is drawn by the seed."""

    #: grid, lines (three rules), rows (a rule below each row), none
    rules: str
    #: page, left, right, wide (two columns of text), turned (the page's text), rotated (the page)
    place: str = "page"
    columns: int = 4
    rows: int = 6
    head_lines: int = 1
    spans: bool = False
    #: of spanning heads: whether a rule below says over which columns they are
    span_rules: bool = True
    #: none, bold, indented, plain
    groups: str = ""
    #: none, names (of rows), texts (of a column), both
    wraps: str = ""
    empty: float = 0.0
    text_columns: int = 0
    notes: bool = False
    tables: int = 1
    continued: bool = False
    bold_head: bool = False
    font: str = "Times"
    size: float = 9.0
    gap: float = 14.0
    pad: float = 2.0
    align: str = "centre"
    caption: str = "Table {n}. "
    #: top, foot: where values stand beside a name of several lines
    beside: str = "top"
    pieces: bool = False
    shade: bool = False


@dataclass
class Drawn:
    """A file with what its tables say."""

    content: bytes
    cells: set[Cell]


@dataclass
class _Table:
    label: str
    stub: str
    #: lines of each heading but the first, and its spanning head
    heads: list[list[str]]
    spans: list[tuple[str, int, int]]
    #: kind (row, group), lines of cells, indented
    rows: list[tuple[str, list[list[str]], bool]]
    aligns: list[str]
    notes: list[str] = field(default_factory=list)


class _Painter:
    def __init__(self, look: Look, draw: random.Random) -> None:
        self.look, self.random = look, draw
        self.stream = io.BytesIO()
        turned = look.place in ("turned", "rotated")
        self.width, self.height = (A4[1], A4[0]) if turned else A4
        self.canvas: Any = Canvas(
            self.stream, pagesize=A4 if turned else (self.width, self.height), invariant=1
        )
        self.cells: set[Cell] = set()
        self.begin()

    def begin(self) -> None:
        if self.look.place in ("turned", "rotated"):
            self.canvas.translate(A4[0], 0)
            self.canvas.rotate(90)
            if self.look.place == "rotated":
                self.canvas.setPageRotation(90)

    def font(self, *, bold: bool = False) -> str:
        if self.look.font == "Times":
            return "Times-Bold" if bold else "Times-Roman"
        return self.look.font + ("-Bold" if bold else "")

    def width_of(self, text: str, size: float, *, bold: bool = False) -> float:
        return float(stringWidth(text, self.font(bold=bold), size))

    def text(self, text: str, x: float, y: float, size: float, *, bold: bool = False) -> None:
        self.canvas.setFont(self.font(bold=bold), size)
        self.canvas.drawString(x, y, text)

    def prose(self, x: float, y: float, width: float, lines: int, size: float = 10) -> float:
        words: list[str] = []
        left = lines
        while left:
            word = self.random.choice(_PROSE)
            line = " ".join([*words, word])
            if self.width_of(line, size) > width:
                room = width - self.width_of(" ".join(words), size)
                text = self.canvas.beginText(x, y)
                text.setFont(self.font(), size)
                text.setWordSpace(room / max(1, len(words) - 1))
                text.textOut(" ".join(words))
                self.canvas.drawText(text)
                words, y, left = [word], y - 1.2 * size, left - 1
            else:
                words.append(word)
        self.text("it.", x, y, size)
        return y - 1.2 * size

    def rule(self, x0: float, x1: float, y: float, weight: float = 0.5) -> None:
        self.canvas.setLineWidth(weight)
        if self.random.random() < 0.3:
            self.canvas.rect(x0, y - weight / 2, x1 - x0, weight, stroke=0, fill=1)
        else:
            self.canvas.line(x0, y, x1, y)


def _value(draw: random.Random, kind: int) -> str:
    a, b = draw.uniform(0, 100), draw.uniform(0, 10)
    return (
        f"{a:.1f}", f"{int(a)} ({b:.1f})", f"{b:.2f} ({b * 0.8:.2f}–{b * 1.3:.2f})", f"{int(a)}/{int(a * 3 + 9)}",
        f"{a:.1f} ± {b:.1f}", draw.choice(("0.04", "<0.001", "0.72", "NS", "–")), f"{int(a * 40):,}", f"−{b:.1f}",
    )[kind]  # fmt: skip


def _split(text: str) -> list[str]:
    words = text.split()
    cut = (len(words) + 1) // 2
    return [" ".join(words[:cut]), " ".join(words[cut:])] if len(words) > 1 else [text]


def _table(look: Look, draw: random.Random, number: int) -> _Table:
    label = f"Table {number}"
    values = look.columns - 1
    heads: list[list[str]] = []
    spans: list[tuple[str, int, int]] = []
    arms = draw.sample(_ARMS, values)
    if look.spans and values >= 3:
        sub, at = draw.choice([one for one in _SUBS if len(one) <= values]), 1
        while at + len(sub) <= values + 1 and len(spans) < 2:
            spans.append((arms[at - 1], at, at + len(sub)))
            heads += [[one] for one in sub]
            at += len(sub)
    for arm in arms[len(heads) :]:
        heads.append([arm, *draw.sample(_SECOND, look.head_lines - 1)])
    if spans:
        heads = [one[:1] for one in heads]
    stub = draw.choice(("Outcome", "Characteristic", "", "Variable"))
    aligns = [
        look.align if look.align != "mixed" else draw.choice(("left", "right", "centre"))
        for _ in range(values)
    ]
    kinds = [draw.randrange(8) for _ in range(values)]
    worded = set(draw.sample(range(values), min(look.text_columns, values)))
    names = draw.sample(_NAMES, look.rows)
    rows: list[tuple[str, list[list[str]], bool]] = []
    cut = look.rows // 2
    groups = draw.sample(_GROUPS, 2)
    for i, name in enumerate(names):
        if look.groups and i in (0, cut):
            rows.append(("group", [[groups[i == cut]]], False))
        wrap = look.wraps in ("names", "both") and draw.random() < 0.4
        cells = [_split(name) if wrap else [name]]
        for j in range(values):
            if draw.random() < look.empty:
                cells.append([])
            elif j in worded:
                text = draw.choice(_TEXTS)
                cells.append(
                    _split(text)
                    if look.wraps in ("texts", "both") and draw.random() < 0.5
                    else [text]
                )
            else:
                cells.append([_value(draw, kinds[j])])
        if not any(cells[1:]):
            cells[1] = [_value(draw, 0)]
        rows.append(("row", cells, look.groups == "indented"))
    table = _Table(label, stub, heads, spans, rows, aligns)
    if look.notes:
        table.notes = [
            "Values are means or numbers of patients.",
            "HR = hazard ratio; SD = standard deviation.",
        ][: draw.randint(1, 2)]
    return table


def _known(table: _Table) -> set[Cell]:
    cells: set[Cell] = set()
    group = ""
    over = {j: name for name, first, end in table.spans for j in range(first, end)}
    for kind, row, _ in table.rows:
        if kind == "group":
            group = row[0][0]
            continue
        name = " / ".join(filter(None, (table.stub, group, " ".join(row[0]))))
        for j, lines in enumerate(row[1:], 1):
            heading = " / ".join(filter(None, (over.get(j), " ".join(table.heads[j - 1]))))
            if lines:
                cells.add((table.label, name, heading, " ".join(lines)))
    return cells


def _paint(
    on: _Painter, table: _Table, x: float, y: float, room: float, *, again: bool = False
) -> float | None:
    """Draw a table, and return where it ends; ``None``: it is too wide."""
    look, size = on.look, on.look.size
    shift = 0.9 * size
    widths = [
        max(
            on.width_of(line, size, bold=True)
            for line in (
                table.stub,
                *(part for kind, row, _ in table.rows if kind == "row" for part in row[0]),
            )
        )
        + shift
    ]
    for j, head in enumerate(table.heads, 1):
        lines = [*head, *(part for kind, row, _ in table.rows if kind == "row" for part in row[j])]
        widths.append(max(on.width_of(line, size, bold=look.bold_head) for line in lines))
    for name, first, end in table.spans:
        least = (
            on.width_of(name, size, bold=look.bold_head)
            - sum(widths[first:end])
            - look.gap * (end - first - 1)
        )
        if least > 0:
            widths[first] += least + 2
    total = sum(widths) + look.gap * len(widths)
    if total > room:
        return None
    stretch = min(1.6, room / total) if on.random.random() < 0.6 else 1.0
    gap = look.gap + (stretch - 1) * total / len(widths)
    lefts = [x + gap / 2]
    for width in widths[:-1]:
        lefts.append(lefts[-1] + width + gap)
    right = lefts[-1] + widths[-1] + gap / 2
    leading, pad = 1.15 * size, look.pad
    caption = look.caption.format(n=table.label.split()[1]) + (
        "(continued)" if again else "Outcomes of the patients"
    )
    on.text(caption, x, y, size, bold=on.random.random() < 0.5)
    y -= leading + 2
    top = y

    def put(
        lines: Sequence[str], j: int, at: float, *, bold: bool = False, indent: float = 0
    ) -> None:
        align = table.aligns[j - 1] if j else "left"
        for line in lines:
            spare = widths[j] - on.width_of(line, size, bold=bold) - indent
            on.text(
                line,
                lefts[j] + indent + {"left": 0.0, "right": spare, "centre": spare / 2}[align],
                at,
                size,
                bold=bold,
            )
            at -= leading

    def across(at: float, x0: float = x, x1: float = right, weight: float = 0.5) -> None:
        if look.pieces and x0 == x:
            for left, width in zip(lefts, widths, strict=True):
                on.rule(left - gap / 2, left + width + gap / 2, at, weight)
        else:
            on.rule(x0, x1, at, weight)

    full, uprights = look.rules in ("grid", "lines", "rows"), list[tuple[int, float, float]]()
    if full:
        across(y, weight=1)
    deep = max(map(len, table.heads))
    start = y
    if table.spans:
        y -= pad + 0.8 * size
        for name, first, end in table.spans:
            left, last = lefts[first], lefts[end - 1] + widths[end - 1]
            wide = on.width_of(name, size, bold=look.bold_head)
            on.text(name, (left + last - wide) / 2, y, size, bold=look.bold_head)
            if look.rules == "grid":
                across(y - 0.3 * size - pad, left - gap / 2, last + gap / 2)
                uprights += [(j, y - 0.3 * size - pad, 0.0) for j in range(first + 1, end)]
            elif look.span_rules and full:
                across(y - 0.3 * size - 1, left - 1, last + 1)
        y -= leading - 0.8 * size + 2 + pad
    inner = {j for j, _, _ in uprights}
    y -= pad + 0.8 * size
    put([table.stub] if table.stub else [], 0, y, bold=look.bold_head)
    for j, head in enumerate(table.heads, 1):
        lower = on.look.beside == "foot" and not table.spans
        put(head, j, y - (leading * (deep - len(head)) if lower else 0), bold=look.bold_head)
    y -= leading * (deep - 1) + 0.3 * size + pad
    if full:
        across(y)
    uprights = [(j, at or start, 0.0) for j, at, _ in uprights] + [
        (j, start, 0.0) for j in range(1, len(widths)) if j not in inner
    ]
    for i, (kind, row, indented) in enumerate(table.rows):
        count = max(len(one) for one in row)
        if look.shade and i % 2 and kind == "row":
            on.canvas.setFillGray(0.92)
            on.canvas.rect(
                x,
                y - pad * 2 - leading * count,
                right - x,
                pad * 2 + leading * count,
                stroke=0,
                fill=1,
            )
            on.canvas.setFillGray(0)
        y -= pad + 0.8 * size
        put(
            row[0],
            0,
            y,
            bold=kind == "group" and look.groups == "bold",
            indent=0.8 * size if indented else 0,
        )
        for j, one in enumerate(row[1:], 1):
            down = leading * (count - len(one)) if look.beside == "foot" else 0
            put(one, j, y - down)
        y -= leading * (count - 1) + 0.3 * size + pad
        if look.rules in ("grid", "rows") and i < len(table.rows) - 1:
            across(y)
    if full:
        across(y, weight=1)
    if look.rules == "grid":
        for j, at, _ in uprights:
            on.canvas.line(lefts[j] - gap / 2, at, lefts[j] - gap / 2, y)
        on.canvas.line(x, top, x, y)
        on.canvas.line(right, top, right, y)
    for note in table.notes:
        y -= size
        on.text(note, x, y, size - 1)
    on.cells |= _known(table)
    return y - 8


def draw(look: Look, seed: int) -> Drawn:
    """Return a file in which the contents of a look are drawn by a seed; a table that is too wide loses columns."""
    rng = random.Random(seed)
    while True:
        on = _Painter(look, rng)
        margin, gutter = 50.0, 20.0
        column = (on.width - 2 * margin - gutter) / 2
        narrow = look.place in ("left", "right")
        x = margin + (column + gutter if look.place == "right" else 0)
        room = column if narrow else on.width - 2 * margin
        y = on.height - 60
        if look.place == "wide":
            ends = [on.prose(at, y, column, 6) for at in (margin, margin + column + gutter)]
            y = min(ends) - 6
        else:
            if narrow:
                other = margin if look.place == "right" else margin + column + gutter
                on.prose(other, on.height - 60, column, 54)
            y = on.prose(x, y, room, rng.randint(2, 6)) - 6
        fits = True
        for number in range(1, look.tables + 1):
            table = _table(look, rng, number)
            end = _paint(on, table, x, y, room)
            fits = fits and end is not None
            y = (end or y) - 6
            if y > 90:
                y = on.prose(x, y, room, 2) - 8
        if look.continued:
            on.canvas.showPage()
            on.begin()
            more = _table(look, rng, look.tables)
            more.heads, more.spans, more.stub = table.heads, table.spans, table.stub
            fits = fits and _paint(on, more, x, on.height - 60, room, again=True) is not None
        if fits and y > 20:
            on.canvas.save()
            return Drawn(on.stream.getvalue(), on.cells)
        changes: dict[str, Any] = (
            {"columns": look.columns - 1}
            if not fits and look.columns > 2
            else {"rows": max(3, look.rows - 2), "tables": 1, "size": max(6.0, look.size - 0.5)}
        )
        look = Look(**{**vars(look), **changes})


def any_look(seed: int) -> Look:
    """Return a look that is drawn by a seed."""
    rng = random.Random(seed * 7919 + 1)
    pick = rng.choice
    rules = pick(("grid", "lines", "lines", "lines", "rows", "none", "none"))
    return Look(
        rules=rules,
        place=pick(("page", "page", "page", "left", "right", "wide", "turned", "rotated")),
        columns=rng.randint(2, 7),
        rows=rng.randint(3, 15),
        head_lines=pick((1, 1, 2, 3)),
        spans=rng.random() < 0.25,
        span_rules=rng.random() < 0.75,
        groups=pick(("", "", "", "bold", "indented", "plain")),
        wraps=pick(("", "", "", "names", "texts", "both")),
        empty=pick((0.0, 0.0, 0.1, 0.25)),
        text_columns=pick((0, 0, 0, 1, 2)),
        notes=rng.random() < 0.4,
        tables=pick((1, 1, 1, 2)),
        continued=rng.random() < 0.15,
        bold_head=rng.random() < 0.4,
        font=pick(("Times", "Helvetica", "Courier")),
        size=rng.uniform(6.5, 10.5),
        gap=rng.uniform(3, 26),
        pad=rng.uniform(0, 4),
        align=pick(("left", "right", "centre", "mixed")),
        caption=pick(("Table {n}. ", "Table {n} ", "TABLE {n}: ", "Table {n}   ")),
        beside=pick(("top", "top", "foot")),
        pieces=rng.random() < 0.3,
        shade=rng.random() < 0.15,
    )


#: the looks that are measured by name
LOOKS: Mapping[str, Look] = {
    "ruled": Look(rules="grid"),
    "ruled, spanning heads": Look(rules="grid", spans=True, columns=5),
    "ruled, wrapped cells": Look(rules="grid", wraps="both", text_columns=1),
    "ruled, empty cells": Look(rules="grid", empty=0.25),
    "ruled, groups": Look(rules="grid", groups="bold", rows=8),
    "half-ruled": Look(rules="lines"),
    "half-ruled, heads of two lines": Look(rules="lines", head_lines=2),
    "half-ruled, heads of three lines": Look(rules="lines", head_lines=3, beside="foot"),
    "half-ruled, spanning heads": Look(rules="lines", spans=True, columns=5),
    "half-ruled, spanning heads without rules": Look(rules="lines", spans=True, span_rules=False, columns=5),
    "half-ruled, wrapped names": Look(rules="lines", wraps="names", pad=3.5),
    "half-ruled, wrapped texts": Look(rules="lines", wraps="both", text_columns=2, pad=3.5),
    "half-ruled, empty cells": Look(rules="lines", empty=0.25),
    "half-ruled, indented groups": Look(rules="lines", groups="indented", rows=8),
    "half-ruled, notes": Look(rules="lines", notes=True),
    "half-ruled, shaded rows": Look(rules="lines", shade=True),
    "a rule below each row": Look(rules="rows", wraps="names"),
    "unruled": Look(rules="none", bold_head=True),
    "unruled, plain heads": Look(rules="none"),
    "unruled, mixed": Look(rules="none", align="mixed", gap=18),
    "left column": Look(rules="lines", place="left", size=7.5, gap=8),
    "right column, unruled": Look(rules="none", place="right", size=7.5, gap=10),
    "over two columns": Look(rules="lines", place="wide", columns=6),
    "turned text": Look(rules="lines", place="turned", columns=6),
    "turned page": Look(rules="grid", place="rotated", columns=6),
    "two tables": Look(rules="lines", tables=2),
    "continued": Look(rules="lines", continued=True),
}  # fmt: skip
