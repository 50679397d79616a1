"""Form of a table's row as a sentence.

``Table 2, row Mortality at day 28: ramipril: 12.1 %; placebo: 15.3 %.`` Readers write rows so, the splitter keeps each whole,
and rules pair its values with their headings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_MARK = ", row "
#: characters of a label
_LONGEST = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """A value of a row."""

    #: headings of its column from top to bottom, ``Ramipril (n=100) / Events``
    heading: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A row of a table."""

    #: of the table: ``Table 2``
    label: str
    #: groups of rows that it is in, then its own name, ``Bleeding / Major``
    name: str
    values: Sequence[Value]

    @property
    def said(self) -> str:
        """Name and values, without the label, whose number is none of the row's."""
        return f"{self.name}: {_joined(self.values)}"


def write(row: Row) -> str:
    """Return a row as a sentence. Semicolons become commas, and colons within names dashes; all else is kept."""
    values = (Value(heading=_name(one.heading), text=_plain(one.text)) for one in row.values)
    shown = _joined(tuple(values))
    return f"{_plain(row.label)[:_LONGEST]}{_MARK}{_name(row.name)}: {shown}{'' if shown.endswith('.') else '.'}"


def read(sentence: str) -> Row | None:
    """Return the row that a sentence is; ``None``: it is none."""
    label, _, rest = sentence.partition(_MARK)
    name, _, rest = rest.partition(": ")
    parts = [part.partition(": ") for part in rest.removesuffix(".").split("; ")]
    if not (0 < len(label) <= _LONGEST and name and all(part[0] and part[2] for part in parts)):
        return None
    values = tuple(Value(heading=heading, text=text) for heading, _, text in parts)
    return Row(label=label, name=name, values=values)


def rows_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each line of a text that is a row."""
    start = 0
    # most texts have none
    for line in text.split("\n") if _MARK in text else ():
        if line.endswith(".") and read(line) is not None:
            yield start, start + len(line)
        start += len(line) + 1


def _joined(values: Sequence[Value]) -> str:
    return "; ".join(f"{one.heading}: {one.text}" for one in values)


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace(";", ",").strip()


def _name(text: str) -> str:
    return _plain(text).replace(": ", " – ").rstrip(":")
