"""Columns and tables, before they are lines of a terminal or rows of a page.

A column has a title and takes its value from a row. The type of the value decides its text: dollars, counts, times and
names look the same everywhere. Terminal and console remove unseen characters, and choose colours by the tone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Generic, TypeVar

from orchestrator.rendering.words import UNKNOWN, moment, money

Row = TypeVar("Row")


class Tone(StrEnum):
    """Meaning of a value, for its colour."""

    GOOD = "good"
    BAD = "bad"
    WARN = "warn"
    #: less prominent
    SOFT = "soft"
    #: under way
    LIVE = "live"
    #: ended by a user
    OFF = "off"


class Kind(StrEnum):
    """Layout of a column."""

    TEXT = "text"
    #: text that may take several lines
    WIDE = "wide"
    #: aligned at the right
    NUMBER = "number"
    #: a time, UTC
    TIME = "time"
    #: a bar, whose length is a share
    BAR = "line"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A value as text."""

    text: str
    #: qualification of the value
    note: str = ""
    tone: Tone | None = None
    #: whether it is a state, which the console shows as a badge
    state: bool = False
    #: path of its page below the console's; empty: it has none
    page: str = ""
    #: the value, if it is a time
    at: datetime | None = None
    #: length of the bar, 0 to 1; ``None``: no bar
    bar: float | None = None


Value = Cell | str | int | Decimal | datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Column(Generic[Row]):
    """A column of a form."""

    title: str
    value: Callable[[Row], Value]
    kind: Kind = Kind.TEXT
    #: text where there is no value
    none: str = UNKNOWN


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The head of a column."""

    title: str
    kind: Kind


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A row of a table."""

    cells: tuple[Cell, ...]
    #: tone of the whole row
    tone: Tone | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table of text."""

    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    #: sums of the lines; ``None``: none are shown
    total: Line | None = None
    title: str = ""


def text(title: str, value: Callable[[Row], Value], none: str = UNKNOWN) -> Column[Row]:
    """Return a column of names and states."""
    return Column(title=title, value=value, none=none)


def wide(title: str, value: Callable[[Row], Value], none: str = UNKNOWN) -> Column[Row]:
    """Return a column of sentences."""
    return Column(title=title, value=value, none=none, kind=Kind.WIDE)


def number(title: str, value: Callable[[Row], Value], none: str = UNKNOWN) -> Column[Row]:
    """Return a column of counts, dollars or other figures."""
    return Column(title=title, value=value, none=none, kind=Kind.NUMBER)


def time(
    title: str, value: Callable[[Row], datetime | Cell | None], none: str = UNKNOWN
) -> Column[Row]:
    """Return a column of times."""
    return Column(title=title, value=value, none=none, kind=Kind.TIME)


def bar(title: str, share: Callable[[Row], float]) -> Column[Row]:
    """Return a column of bars; shares are cut to 0 and 1."""
    return Column(
        title=title,
        value=lambda row: Cell(text="", bar=min(max(share(row), 0.0), 1.0)),
        kind=Kind.BAR,
    )


def table(
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    *,
    only: Sequence[str] = (),
    total: Row | None = None,
    tone: Callable[[Row], Tone | None] | None = None,
    title: str = "",
) -> Table:
    """Return the table of some rows.

    Args:
        columns: columns of their form.
        rows: the rows.
        only: titles of the columns to show, in order; empty: all.
        total: row of sums, shown last.
        tone: returns the tone of a row.
        title: title of the table.
    """
    shown = tuple(_chosen(columns, only))

    def line(row: Row) -> Line:
        return Line(
            cells=tuple(cell(one.value(row), one.none) for one in shown), tone=tone and tone(row)
        )

    return Table(
        heads=tuple(Head(title=one.title, kind=one.kind) for one in shown),
        lines=tuple(map(line, rows)),
        total=None if total is None else line(total),
        title=title,
    )


def facts(
    columns: Sequence[Column[Row]], row: Row, *, only: Sequence[str] = ()
) -> tuple[tuple[str, Cell], ...]:
    """Return titles and values of one row, without those that have neither a value nor a text for that.

    Args:
        columns: columns of its form.
        row: the row.
        only: titles of the columns to show, in order; empty: all.
    """
    found = ((one, one.value(row)) for one in _chosen(columns, only))
    return tuple(
        (one.title, cell(value, one.none))
        for one, value in found
        if value is not None or one.none != UNKNOWN
    )


def cell(value: Value, none: str = UNKNOWN) -> Cell:
    """Return a value as text."""
    match value:
        case Cell():
            return value
        case None:
            return Cell(text=none)
        case Decimal():
            return Cell(text=money(value))
        case datetime():
            return Cell(text=moment(value), at=value)
        case bool():
            return Cell(text="yes" if value else "no")
        case int():
            return Cell(text=f"{value:,}")
        case _:
            return Cell(text=str(value))


def _chosen(columns: Sequence[Column[Row]], only: Sequence[str]) -> Iterator[Column[Row]]:
    named = {one.title: one for one in columns}
    yield from (named[title] for title in only) if only else columns
