"""The lines of a page in reading order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median

from posology.corpus.pdf.columns import ordered
from posology.corpus.pdf.process import Word
from posology.corpus.pdf.segments import WIDE, Segment, segments
from posology.corpus.pubmed.words import Line as Marked
from posology.corpus.pubmed.words import plain

#: between the cells of a table's row
CELL = " | "
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
#: hyphens that are invisible elsewhere; at a line's end, they were printed
_SOFT = "\u00ad"
_BULLET = frozenset("•◦‣▪●○■□–—-*·")


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line of text."""

    #: counted from 1, as viewers do
    page: int
    #: number of its column on the page, in reading order
    column: int
    text: str
    #: number of cells; 1: it is no row of a table
    cells: int
    x0: float
    x1: float
    base: float
    #: height of its type, points
    size: float
    #: whether all words are bold
    bold: bool
    #: width of its first word, points
    first: float
    #: direction of writing, see :class:`~posology.corpus.pdf.process.Word`
    turn: int = 0


def lines(words: Sequence[Word], page: int) -> list[Line]:
    """Return the lines of a page in reading order; those in the direction of most words are first.

    Args:
        words: in any order.
        page: counted from 1.
    """
    turns: dict[int, list[Word]] = {}
    for word in words:
        turns.setdefault(word.turn, []).append(word)
    found: list[Line] = []
    for turned in sorted(turns.values(), key=len, reverse=True):
        for part in ordered(segments(turned)):
            column = found[-1].column + 1 if found else 0
            found += _lines(part, page=page, column=column)
    return found


def _lines(segments: Iterable[Segment], *, page: int, column: int) -> Iterator[Line]:
    """Yield the lines of a part that is read line by line."""
    in_rows = sorted(segments, key=lambda one: (one.row, one.x0))
    rows = [list(row) for _, row in groupby(in_rows, key=lambda one: one.row)]
    rows.sort(key=lambda row: median(one.base for one in row))
    cells = _cells(rows)
    for row, count in zip(rows, cells, strict=True):
        words = [word for one in row for word in one.words]
        base = median(one.base for one in row)
        size = max(row, key=lambda one: len(one.words)).size
        separator = CELL if count > 1 else " "
        text = separator.join(filter(None, (_text(one.words, base, size) for one in row)))
        if not text:
            continue
        yield Line(
            page=page,
            column=column,
            text=text,
            cells=count,
            x0=row[0].x0,
            x1=max(one.x1 for one in row),
            base=base,
            size=size,
            bold=all(word.bold for word in words),
            first=words[0].x1 - words[0].x0,
            turn=words[0].turn,
        )


def _cells(rows: Sequence[Sequence[Segment]]) -> list[int]:
    """Return the number of cells of each row; 1: it is no row of a table."""
    several = [len(row) > 1 and not _item(row) for row in rows]
    found = []
    for i, row in enumerate(rows):
        beside = any(several[j] for j in (i - 1, i + 1) if 0 <= j < len(rows))
        gaps = [right.x0 - left.x1 for left, right in pairwise(row)]
        wide = bool(gaps) and max(gaps) > WIDE * max(one.size for one in row)
        found.append(len(row) if several[i] and (beside or wide) else 1)
    return found


def _item(row: Sequence[Segment]) -> bool:
    """Return whether a row is a bullet or a number, and its item."""
    if len(row) != 2 or len(row[0].words) != 1:
        return False
    mark = row[0].words[0].main.text
    return mark in _BULLET or (len(mark) <= 4 and mark[-1] in ".)]")


def _text(words: Sequence[Word], base: float, size: float) -> str:
    """Return words as text; what is raised or lowered behind a number is marked, as in PubMed's."""
    # a line without them is quick
    if all(len(word.runs) == 1 and word.main.height >= 0.85 * size for word in words):
        return _ended(_clean(" ".join(word.main.text for word in words)))
    marked = Marked()
    for i, word in enumerate(words):
        if i:
            marked.add(" ")
        for j, run in enumerate(word.runs):
            text = _clean(run.text)
            off = base - run.base
            if run.height < 0.85 * size and abs(off) > 0.08 * size:
                behind = word.runs[j + 1].text if j + 1 < len(word.runs) else ""
                marked.shift("^" if off > 0 else "_", text, behind=behind)
            else:
                marked.add(text)
    return _ended(marked.text)


def _clean(text: str) -> str:
    # what no UTF-8 can hold, no index can
    if text.isascii():
        return text
    return text.encode(errors="replace").decode().translate(_LIGATURES)


def _ended(text: str) -> str:
    text = text.rstrip()
    return plain(text[:-1] + "-" if text.endswith(_SOFT) else text)
