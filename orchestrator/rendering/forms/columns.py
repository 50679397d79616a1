"""Columns of forms, and tables of text before they are lines of a terminal or rows of a page.

The type of a value decides its text, so dollars, counts, times and names look the same everywhere. Terminal and console
remove unseen characters, and choose colours by the tone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from operator import itemgetter
from typing import Any, Generic, TypeVar

from orchestrator.rendering.words import UNKNOWN, moment, money

Row = TypeVar("Row")
_Row_contra = TypeVar("_Row_contra", contravariant=True)


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
    #: shade among the values of a table, from 0; -1: none; ``None``: it is not shaded
    shade: int | None = None


Value = Cell | str | int | Decimal | datetime | None


@dataclass(frozen=True, slots=True)
class Column(Generic[_Row_contra]):
    """A column of a form; by position, since a form lists many."""

    title: str
    value: Callable[[_Row_contra], Value]
    kind: Kind = Kind.TEXT
    #: text where there is no value
    none: str = UNKNOWN


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A row of a table."""

    cells: tuple[Cell, ...]
    #: tone of the whole row
    tone: Tone | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table of text."""

    columns: Sequence[Column[Any]]
    lines: tuple[Line, ...]
    #: sums of the lines; ``None``: none are shown
    total: Line | None = None
    title: str = ""


def table(
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    only: str = "",
    *,
    total: Row | None = None,
    tone: Callable[[Row], Tone | None] = lambda _: None,
    title: str = "",
) -> Table:
    """Return the table of some rows.

    Args:
        columns: columns of their form.
        rows: the rows.
        only: titles of the columns to show, in order, separated by commas; empty: all.
        total: row of sums, shown last.
        tone: returns the tone of a row.
        title: title of the table.
    """
    shown = _chosen(columns, only)

    def line(row: Row) -> Line:
        return Line(cells=tuple(cell(one.value(row), one.none) for one in shown), tone=tone(row))

    last = None if total is None else line(total)
    return Table(columns=shown, lines=tuple(map(line, rows)), total=last, title=title)


def table_of(
    names: str, rows: Iterable[Sequence[Value]], *, texts: str | None = None, title: str = ""
) -> Table:
    """Return a table of values that only one door shows.

    Args:
        names: titles of the columns, separated by commas.
        rows: their values.
        texts: titles of the columns that are no figures; ``None``: the first one.
        title: title of the table.
    """
    titles = names.split(", ")
    words = titles[:1] if texts is None else texts.split(", ")
    columns: list[Column[Sequence[Value]]] = [
        Column(
            name,
            itemgetter(place),
            Kind.WIDE if name in words[1:] else Kind.TEXT if name in words else Kind.NUMBER,
        )
        for place, name in enumerate(titles)
    ]
    return table(columns, rows, title=title)


def facts(columns: Sequence[Column[Row]], row: Row, only: str) -> list[tuple[str, Value]]:
    """Return titles and values of one row, without those that have neither a value nor a text for that."""
    found = ((one, one.value(row)) for one in _chosen(columns, only))
    return [
        (one.title, cell(value, one.none))
        for one, value in found
        if value is not None or one.none != UNKNOWN
    ]


def cell(value: Value, none: str = UNKNOWN) -> Cell:
    """Return a value as text."""
    match value:
        case Cell():
            return value
        case None:
            return Cell(text=none)
        case bool():
            return Cell(text="yes" if value else "no")
        case int():
            return Cell(text=f"{value:,}")
        case Decimal():
            return Cell(text=money(value))
        case datetime():
            return Cell(text=moment(value), at=value)
        case _:
            return Cell(text=str(value))


def enabled(*, disabled: bool) -> Cell:
    """Return whether something is in use."""
    if disabled:
        return Cell(text="disabled", tone=Tone.BAD, state=True)
    return Cell(text="enabled", tone=Tone.GOOD, state=True)


def share(part: float) -> Cell:
    """Return a bar of a length of 0 to 1."""
    return Cell(text="", bar=min(max(part, 0.0), 1.0))


def _chosen(columns: Sequence[Column[Row]], only: str) -> Sequence[Column[Row]]:
    named = {one.title: one for one in columns}
    return [named[title] for title in only.split(", ")] if only else columns
