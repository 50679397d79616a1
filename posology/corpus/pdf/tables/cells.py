"""Cells of a table, their text, and the table that the grid of other formats reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from posology.corpus.documents.grid import Grid
from posology.corpus.pdf.layout import written
from posology.corpus.pdf.lines import joined
from posology.corpus.pdf.process import Run, Word
from posology.corpus.pdf.tables.shapes import FIGURE, Refused
from posology.types import UNREADABLE

if TYPE_CHECKING:
    from lxml.etree import _Element

#: two values side by side, which may be those of two columns
_TWO_VALUES = re.compile(r"[\d)\]%*†‡]\s+[<>≤≥]?[-−–+]?\d")
#: an end of a line that is none of a value
_GOES_ON = re.compile(r"\w\s?[±×+/,–−(-]\Z")
#: marks of notes
_MARK = re.compile(r"(?:[a-z]|[*†‡§¶‖#]+)(?:,(?:[a-z]|[*†‡§¶‖#]+))*")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Cell:
    """A cell, or a heading."""

    #: words of each of its lines
    lines: Sequence[Sequence[Word]]
    across: int = 1
    down: int = 1
    indented: bool = False

    def text(self, known: Mapping[str, int], marks: frozenset[str] = frozenset()) -> str:
        """Return its text.

        Args:
            known: words of the document, see :func:`~posology.corpus.pdf.lines.joined`.
            marks: raised letters and signs of the table's notes, which are left out.
        """
        return joined(
            [line for line in (_line(words, marks) for words in self.lines) if line], known
        )[0]


@dataclass(slots=True)
class Found:
    """A table that is certain."""

    label: str
    caption: Sequence[Sequence[Word]]
    #: rows of headings; columns that a cell from above spans have none
    heads: list[list[Cell]]
    body: list[list[Cell]]
    notes: Sequence[Sequence[Word]] = ()
    #: all words that are not read as text of the page
    words: list[Word] = field(default_factory=list)
    #: left of the caption, and right of the table
    x0: float = 0.0
    x1: float = 0.0

    def lines(self, known: Mapping[str, int]) -> Iterator[str]:
        """Yield the caption, a sentence for each row, and the notes.

        Args:
            known: words of the document, see :func:`~posology.corpus.pdf.lines.joined`.
        """
        yield Cell(lines=self.caption).text(known)
        yield from self.rows(known)
        notes: list[list[Sequence[Word]]] = []
        for line in self.notes:
            if not notes or _mark(line):
                notes.append([])
            notes[-1].append(line)
        for note in notes:
            yield f"{self.label}, note: {Cell(lines=note).text(known)}"

    def rows(self, known: Mapping[str, int]) -> Iterator[str]:
        """Yield a sentence for each row, as of tables in other formats."""
        from lxml import etree

        marks = frozenset(filter(None, map(_mark, self.notes)))
        table = etree.Element("table")
        for part, tag, rows in (("thead", "th", self.heads), ("tbody", "td", self.body)):
            holder = etree.SubElement(table, part)
            for row in rows:
                out = etree.SubElement(holder, "tr")
                for cell in row:
                    one = etree.SubElement(
                        out, tag, colspan=str(cell.across), rowspan=str(cell.down)
                    )
                    one.text = _xml(cell.text(known, marks))
                    if cell.indented:
                        one.set("style", "text-indent: 1em")
        yield from Grid.read(table, _text).lines(self.label, UNREADABLE)


def check(table: Found) -> None:
    """Check what must hold of any table.

    Raises:
        Refused: it does not.
    """
    if len(table.body) < 2:
        raise Refused("fewer than two rows")
    headings = _headings(table.heads)
    if len(headings) < 2 or not all(headings[1:]):
        raise Refused("a column without heading")
    if len(set(headings[1:])) < len(headings) - 1:
        raise Refused("two columns with one heading")
    for text in headings:
        if UNREADABLE in text or len(text.split()) > 25:
            raise Refused("a heading that is none")
    texts = [[cell.text({}) for cell in row] for row in table.body]
    for row in texts:
        for text in row[1:]:
            if _TWO_VALUES.search(text) or len(text.split()) > 60:
                raise Refused("two values in a cell, or a paragraph")
        for text in row:
            if text.count("(") != text.count(")") or _GOES_ON.search(text):
                raise Refused("a cell that goes on elsewhere")
    _check_inner_headings([row for row in texts if any(row[1:])], len(headings))


def _check_inner_headings(texts: Sequence[Sequence[str]], width: int) -> None:
    """Check that no row within the body has other headings: several words where other rows have numbers.

    Raises:
        Refused: one has.
    """
    columns = [[row[i] for row in texts if i < len(row) and row[i]] for i in range(width)]
    numbers = [2 * sum(map(bool, map(FIGURE.match, some))) > len(some) for some in columns]
    for row in texts:
        values = [text for i, text in enumerate(row) if i and text and numbers[i]]
        words = {text for text in values if len(text) > 3 and not FIGURE.match(text)}
        if len(words) > 1 and not any(map(FIGURE.match, values)):
            raise Refused("a row that may have other headings")


def _headings(heads: Sequence[Sequence[Cell]]) -> list[str]:
    """Return the headings of each column from top to bottom."""
    columns: dict[int, list[Cell]] = {}
    taken: dict[tuple[int, int], bool] = {}
    for i, row in enumerate(heads):
        at = 0
        for cell in row:
            while taken.get((i, at)):
                at += 1
            for column in range(at, at + cell.across):
                columns.setdefault(column, []).append(cell)
                for below in range(i, i + cell.down):
                    taken[below, column] = True
    return [" / ".join(cell.text({}) for cell in columns[at]).strip(" /") for at in sorted(columns)]


def _line(words: Sequence[Word], marks: frozenset[str]) -> str:
    largest = max(words, key=lambda word: (round(word.main.height, 1), len(word.main.text))).main
    kept = []
    for word in words:
        runs = tuple(run for run in word.runs if not _points(run, largest, marks))
        if runs:
            kept.append(replace(word, runs=runs, main=word.main if word.main in runs else runs[0]))
    return written(kept, largest.base, largest.height)


def _points(run: Run, largest: Run, marks: frozenset[str]) -> bool:
    """Return whether raised characters point to notes of the table."""
    raised = run.height < 0.85 * largest.height and run.base < largest.base - 0.08 * largest.height
    return raised and _MARK.fullmatch(run.text) is not None and set(run.text.split(",")) <= marks


def _mark(note: Sequence[Word]) -> str:
    """Return the letter or sign with which a note begins; empty: none."""
    first = note[0].runs[0].text.rstrip(").")
    return first if _MARK.fullmatch(first) else ""


def _xml(text: str) -> str:
    # controls stand in no XML; they are counted as unreadable
    return "".join(char if char.isprintable() or char == " " else UNREADABLE for char in text)


def _text(cell: _Element) -> str:
    return cell.text or ""
