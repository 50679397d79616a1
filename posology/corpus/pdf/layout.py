"""The lines of a page in reading order: words become segments, columns and lines.

A segment is the words of a row without a wide gap. A column gap is where the fewest segments cross while many stand on
either side; between rows that cross it, the left column is read before the right one, and each is divided again. Rows
whose segments do not fill their columns are a table's, and are read across.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from statistics import median

from posology.corpus.pdf.process import Word
from posology.corpus.pubmed.words import Line as Marked
from posology.corpus.pubmed.words import plain

#: between the cells of a table's row
CELL = " | "
#: columns of columns of columns
DEPTH = 3
#: width of a gap that ends a segment, in heights of type; a word space is about 0.2, in justified lines up to 0.7
GAP = 0.75
#: width of a gap that separates cells in a row that is alone
WIDE = 2.0
#: difference of two word spaces of a justified line, in heights of type
_EVEN = 0.06
#: points to which places are rounded
_STEP = 2.0
#: segments on each side of a column gap
_SIDE = 3
#: share of a column that a line of prose fills, but for a paragraph's last
_FILLED = 0.75
#: words of a shorter one, and its least width in heights of type
_PROSE_WORDS, _PROSE_WIDTH = 4, 6.0
#: share of the segments that are lines of prose where there are columns: of all, and of each column
_PROSE, _PROSE_SIDE = 0.45, 0.25
#: rows of a table between columns
_TABLE = 3
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


@dataclass(slots=True)
class _Segment:
    """Neighbouring words of a row."""

    words: list[Word]
    row: int
    base: float
    size: float

    @property
    def x0(self) -> float:
        return self.words[0].x0

    @property
    def x1(self) -> float:
        return self.words[-1].x1

    @property
    def width(self) -> float:
        return self.x1 - self.x0


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
        for part in _ordered(_segments(turned), 0):
            column = found[-1].column + 1 if found else 0
            found += _lines(part, page=page, column=column)
    return found


def _segments(words: Sequence[Word]) -> list[_Segment]:
    """Return the segments, by their baselines."""
    rows = _rows(words)
    found = []
    for number, row in enumerate(rows):
        row.words.sort(key=lambda word: word.x0)
        gaps = [right.x0 - left.x1 for left, right in pairwise(row.words)]
        start = 0
        for end in range(1, len(row.words) + 1):
            if end < len(row.words) and not _parts(gaps, end - 1, row.size):
                continue
            part = row.words[start:end]
            found.append(
                _Segment(
                    words=part,
                    row=number,
                    base=median(word.main.base for word in part),
                    size=median(word.main.height for word in part),
                )
            )
            start = end
    return found


def _parts(gaps: Sequence[float], i: int, size: float) -> bool:
    """Return whether a gap ends a segment; gaps of one width, side by side, are a justified line's word spaces."""
    if gaps[i] < GAP * size:
        return False
    near = [gaps[j] for j in (i - 1, i + 1) if 0 <= j < len(gaps)]
    return gaps[i] > WIDE * size or all(abs(gap - gaps[i]) > _EVEN * size for gap in near)


@dataclass(slots=True)
class _Row:
    base: float
    size: float
    words: list[Word] = field(default_factory=list)


def _rows(words: Sequence[Word]) -> list[_Row]:
    """Return words of one baseline together; a raised or lowered word belongs to the row beside it."""
    # the largest first: a raised word is smaller than its row's
    rows: list[_Row] = []
    bases: list[float] = []
    for word in sorted(words, key=lambda word: -round(word.main.height)):
        main = word.main
        row = _row_of(word, rows, bases)
        if row is None:
            place = bisect_left(bases, main.base)
            row = _Row(base=main.base, size=main.height)
            rows.insert(place, row)
            bases.insert(place, main.base)
        row.words.append(word)
    return rows


def _row_of(word: Word, rows: Sequence[_Row], bases: Sequence[float]) -> _Row | None:
    main = word.main
    place = bisect_left(bases, main.base)
    near = [rows[i] for i in (place - 1, place) if 0 <= i < len(rows)]
    for row in sorted(near, key=lambda row: abs(row.base - main.base)):
        off = abs(row.base - main.base)
        if off < 0.2 * min(row.size, main.height):
            return row
        smaller = main.height < 0.85 * row.size
        if smaller and off < 0.5 * row.size and _beside(word, row):
            return row
    return None


def _beside(word: Word, row: _Row) -> bool:
    reach = 0.5 * row.size
    return any(
        -reach < word.x0 - other.x1 < reach or -reach < other.x0 - word.x1 < reach
        for other in row.words
    )


def _ordered(segments: list[_Segment], depth: int) -> Iterator[list[_Segment]]:
    """Yield the segments in parts that are read line by line, in reading order."""
    gutter = _gutter(segments) if depth < DEPTH else None
    if gutter is None:
        if segments:
            yield segments
        return
    together: list[_Segment] = []
    for band, columns in _bands(segments, gutter):
        if not columns:
            together += band
            continue
        if together:
            yield together
            together = []
        for side in (0, 1):
            yield from _ordered([one for one in band if _side(one, gutter) == side], depth + 1)
    if together:
        yield together


def _side(one: _Segment, gutter: float) -> int:
    return int((one.x0 + one.x1) / 2 > gutter)


def _gutter(segments: Sequence[_Segment]) -> float | None:
    """Return where columns are separated; ``None``: nowhere."""
    if len(segments) < 2 * _SIDE:
        return None
    low = min(one.x0 for one in segments)
    bins = int((max(one.x1 for one in segments) - low) / _STEP) + 2
    if bins > 10_000:
        return None
    # begun and ended segments by place: their difference crosses it
    begun, ended = [0] * (bins + 1), [0] * (bins + 1)
    for one in segments:
        begun[int((one.x0 - low) / _STEP)] += 1
        ended[min(bins, int((one.x1 - low) / _STEP) + 1)] += 1
    best, found, left, right = 0.0, list[int](), 0, len(segments)
    for place in range(bins):
        left += ended[place]
        right -= begun[place]
        if min(left, right) < _SIDE:
            continue
        score = min(left, right) - 0.25 * (len(segments) - left - right)
        if score > best:
            best, found = score, [place]
        elif score == best and found and found[-1] == place - 1:
            found.append(place)
    return low + _STEP * (sum(found) / len(found) + 0.5) if found else None


def _bands(segments: Sequence[_Segment], gutter: float) -> Iterator[tuple[list[_Segment], bool]]:
    """Yield segments from top to bottom, each time with whether they are columns."""
    low, high = min(one.x0 for one in segments), max(one.x1 for one in segments)
    rows = [list(row) for _, row in groupby(segments, key=lambda one: one.row)]
    rows.sort(key=lambda row: row[0].base)
    bands: list[tuple[list[list[_Segment]], bool | None]] = []
    for crossing, group in groupby(rows, key=lambda row: _crosses(row, gutter)):
        some = list(group)
        if crossing:
            bands.append((some, False))
            continue
        bands += ((part, _columns(part, gutter, low, high)) for part in _parted(some))
    decided = _decided([columns for _, columns in bands])
    for columns, parts in groupby(zip(bands, decided, strict=True), key=lambda pair: pair[1]):
        yield [one for (part, _), _ in parts for row in part for one in row], columns


def _crosses(row: Sequence[_Segment], gutter: float) -> bool:
    return any(one.x0 < gutter - _STEP and one.x1 > gutter + _STEP for one in row)


def _parted(rows: Sequence[list[_Segment]]) -> Iterator[list[list[_Segment]]]:
    """Yield rows between which no wide space is."""
    part: list[list[_Segment]] = []
    for row in rows:
        size = max(one.size for one in row)
        if part and row[0].base - part[-1][0].base > 1.6 * size:
            yield part
            part = []
        part.append(row)
    if part:
        yield part


def _columns(
    rows: Sequence[Sequence[_Segment]], gutter: float, low: float, high: float
) -> bool | None:
    """Return whether rows are lines of columns; ``None``: they may be either."""
    sides = {_side(one, gutter) for row in rows for one in row}
    if len(sides) < 2:
        return None
    prose = [0, 0]
    some = [0, 0]
    for one in (one for row in rows for one in row):
        side = _side(one, gutter)
        some[side] += 1
        prose[side] += _is_prose(one, (gutter - low, high - gutter)[side])
    enough = sum(prose) >= _PROSE * sum(some)
    if enough and all(of >= _PROSE_SIDE * all_ for of, all_ in zip(prose, some, strict=True)):
        return True
    # last lines of paragraphs are short, too
    table = len(rows) >= _TABLE or any(len(row) > 2 for row in rows)
    return False if table else None


def _is_prose(one: _Segment, width: float) -> bool:
    wide = one.width > _FILLED * width or len(one.words) >= _PROSE_WORDS
    return wide and one.width > _PROSE_WIDTH * one.size


def _decided(columns: Sequence[bool | None]) -> list[bool]:
    """Return whether bands are columns; an undecided one is if its neighbour is."""
    found = list(columns)
    for i, one in enumerate(found):
        if one is None and i and found[i - 1]:
            found[i] = True
    for i in range(len(found) - 2, -1, -1):
        if found[i] is None and found[i + 1]:
            found[i] = True
    return [bool(one) for one in found]


def _lines(segments: Iterable[_Segment], *, page: int, column: int) -> Iterator[Line]:
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


def _cells(rows: Sequence[Sequence[_Segment]]) -> list[int]:
    """Return the number of cells of each row; 1: it is no row of a table."""
    several = [len(row) > 1 and not _item(row) for row in rows]
    found = []
    for i, row in enumerate(rows):
        beside = any(several[j] for j in (i - 1, i + 1) if 0 <= j < len(rows))
        gaps = [right.x0 - left.x1 for left, right in pairwise(row)]
        wide = bool(gaps) and max(gaps) > WIDE * max(one.size for one in row)
        found.append(len(row) if several[i] and (beside or wide) else 1)
    return found


def _item(row: Sequence[_Segment]) -> bool:
    """Return whether a row is a bullet or a number, and its item."""
    if len(row) != 2 or len(row[0].words) != 1:
        return False
    mark = row[0].words[0].main.text
    return mark in _BULLET or (len(mark) <= 4 and mark[-1] in ".)]")


def _text(words: Sequence[Word], base: float, size: float) -> str:
    """Return words as text; what is raised or lowered behind a number is marked, as in PubMed's."""
    marked = Marked()
    for i, word in enumerate(words):
        if i:
            marked.add(" ")
        for j, run in enumerate(word.runs):
            # what no UTF-8 can hold, no index can
            text = run.text.encode(errors="replace").decode().replace("\0", "")
            text = text.translate(_LIGATURES)
            off = base - run.base
            if run.height < 0.85 * size and abs(off) > 0.08 * size:
                behind = word.runs[j + 1].text if j + 1 < len(word.runs) else ""
                marked.shift("^" if off > 0 else "_", text, behind=behind)
            else:
                marked.add(text)
    text = marked.text.rstrip()
    if text.endswith(_SOFT):
        text = text[:-1] + "-"
    return plain(text)
