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
#: type that is printed over other text, in sizes of that; words of a page that may be
_OVER = 1.1
#: type of a stamp, in sizes of usual type
_STAMP = 4.0
_STAMPS = 200
#: words in small letters of an item
_SMALL = 4
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
    turn: float = 0
    #: whether it is beside the page's text: in another direction, or printed over it
    aside: bool = False


def lines(words: Sequence[Word], page: int) -> list[Line]:
    """Return the lines of a page in reading order; those in the direction of most words are first.

    Behind them come what is printed over them, such as a watermark, and text in other directions.

    Args:
        words: in any order.
        page: counted from 1.
    """
    turns: dict[float, list[Word]] = {}
    for word in words:
        turns.setdefault(word.turn, []).append(word)
    first, *others = sorted(turns.values(), key=len, reverse=True) or [list[Word]()]
    over = _printed_over(first)
    found: list[Line] = []
    body = [one for one in first if id(one) not in over]
    for i, part in enumerate((body, list(over.values()), *others)):
        for column in ordered(segments(part)):
            number = found[-1].column + 1 if found else 0
            found += _lines(column, page=page, column=number, aside=i > 0)
    return found


def _printed_over(words: Sequence[Word]) -> dict[int, Word]:
    """Return the words in larger type that others stand in, by their identities."""
    if not words:
        return {}
    usual = median(word.main.size for word in words)
    large = [word for word in words if word.main.size > _OVER * usual]
    # there are many in headings, and few in a watermark
    if len(large) > _STAMPS:
        return {}
    small = [word for word in words if word.main.size <= usual]
    over = [
        word
        for word in large
        if _is_stamp(word, usual) or any(_stands_in(one, word) for one in small)
    ]
    kinds = {_kind(word) for word in over}
    return {id(word): word for word in large if _kind(word) in kinds}


def _kind(word: Word) -> tuple[int, int]:
    return round(word.main.base), round(word.main.size)


def _is_stamp(word: Word, usual: float) -> bool:
    """Return whether a word is a stamp wherever it is; a single letter is a paragraph's initial."""
    text = word.main.text
    return word.main.size > _STAMP * usual and len(text) > 1 and text.isupper()


def _stands_in(small: Word, large: Word) -> bool:
    """Return whether most of a word is where a larger one is drawn."""
    one, other = small.main, large.main
    middle = one.base - 0.3 * one.size
    if not other.base - 0.7 * other.size < middle < other.base - 0.1 * other.size:
        return False
    return min(small.x1, large.x1) - max(small.x0, large.x0) > 0.5 * (small.x1 - small.x0)


def _lines(segments: Iterable[Segment], *, page: int, column: int, aside: bool) -> Iterator[Line]:
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
        text = separator.join(filter(None, (written(one.words, base, size) for one in row)))
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
            aside=aside,
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
    if mark in _BULLET or (len(mark) <= 4 and mark[-1] in ".)]"):
        return True
    # a bare number is one of a list, where words in small letters are beside it, and no cell of a table
    small = sum(word.main.text[0].islower() for word in row[1].words if word.main.text)
    return mark.isdecimal() and len(mark) <= 3 and small >= _SMALL


def written(words: Sequence[Word], base: float, size: float) -> str:
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
    return text if text.isascii() else text.translate(_LIGATURES)


def _ended(text: str) -> str:
    return plain(text.rstrip())
