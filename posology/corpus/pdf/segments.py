"""Words of a page become rows, and rows become segments: neighbouring words without a wide gap."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from posology.corpus.pdf.process import Run, Word

#: width of a gap that ends a segment, in heights of type; a word space is about 0.2, in justified lines up to 0.7
GAP = 0.75
#: width of a gap that separates cells in a row that is alone
WIDE = 2.0
#: difference of two word spaces of a justified line, in heights of type
_EVEN = 0.06
#: the same where they are wide, and the widest
_EXACT, _WIDEST = 0.01, 6.0
#: distance of a raised word from its row's words, about, in heights of type
_REACH = 0.3
#: type of a word, in sizes of its row's: a smaller one, and one of which the row's is a fraction, is no word of it
_LEAST = 0.4


@dataclass(slots=True)
class Segment:
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


def segments(words: Sequence[Word]) -> list[Segment]:
    """Return the segments, by their baselines."""
    rows = _rows(words)
    segmented = []
    for number, row in enumerate(rows):
        row.words.sort(key=lambda word: word.x0)
        gaps = [right.x0 - left.x1 for left, right in pairwise(row.words)]
        stretched = _stretched(row, gaps) if gaps and max(gaps) > WIDE * row.size else ()
        start = 0
        for end in range(1, len(row.words) + 1):
            if end < len(row.words) and (
                end - 1 in stretched or not _parts(gaps, end - 1, row.size)
            ):
                continue
            part = row.words[start:end]
            segmented.append(
                Segment(
                    words=part,
                    row=number,
                    base=_middle([word.main.base for word in part]),
                    size=_middle([word.main.height for word in part]),
                )
            )
            start = end
    return segmented


def _middle(values: list[float]) -> float:
    values.sort()
    return values[len(values) // 2]


def _parts(gaps: Sequence[float], i: int, size: float) -> bool:
    """Return whether a gap ends a segment; gaps of one width, side by side, are a justified line's word spaces."""
    if gaps[i] < GAP * size:
        return False
    near = [gaps[j] for j in (i - 1, i + 1) if 0 <= j < len(gaps)]
    return gaps[i] > WIDE * size or all(abs(gap - gaps[i]) > _EVEN * size for gap in near)


def _stretched(row: _Row, gaps: Sequence[float]) -> set[int]:
    """Return the gaps between the few words of justified lines of narrow columns: these are wide, but of one width."""
    stretched: set[int] = set()
    start = 0
    for end in range(1, len(gaps) + 1):
        if end < len(gaps) and abs(gaps[end] - gaps[start]) <= _EXACT * row.size:
            continue
        if end - start > 1 and WIDE * row.size < gaps[start] < _WIDEST * row.size:
            # so are cells, which are mostly numbers
            words = (word.main.text for word in row.words[start : end + 1])
            if sum(len(text) > 1 and text[0].islower() for text in words) > 1:
                stretched.update(range(start, end))
        start = end
    return stretched


@dataclass(slots=True)
class _Row:
    base: float
    size: float
    #: size of its type; fonts of one size have different heights
    type: float
    words: list[Word] = field(default_factory=list)
    #: rounded ends of its words
    edges: set[int] = field(default_factory=set)


def _rows(words: Sequence[Word]) -> list[_Row]:
    """Return words of one baseline together; a raised or lowered word belongs to the row beside it."""
    # the largest first: a raised word is smaller than its row's
    rows: list[_Row] = []
    bases: list[float] = []
    row: _Row | None = None
    for word in sorted(words, key=lambda word: -round(word.main.height)):
        main = word.main
        # mostly that of the word before
        if row is None or not _same(row, main):
            row = _row_of(word, rows, bases)
        if row is None:
            place = bisect_left(bases, main.base)
            row = _Row(base=main.base, size=main.height, type=main.size)
            rows.insert(place, row)
            bases.insert(place, main.base)
        row.words.append(word)
        row.edges |= {_edge(word.x0, row), _edge(word.x1, row)}
    return rows


def _row_of(word: Word, rows: Sequence[_Row], bases: Sequence[float]) -> _Row | None:
    main = word.main
    place = bisect_left(bases, main.base)
    near = rows[max(0, place - 2) : place + 2]
    for row in sorted(near, key=lambda row: abs(row.base - main.base)):
        if _same(row, main):
            return row
        off = abs(row.base - main.base)
        smaller = main.height < 0.85 * row.size and main.size > _LEAST * row.type
        if smaller and off < 0.5 * row.size and _beside(word, row):
            return row
    return None


def _same(row: _Row, run: Run) -> bool:
    alike = _LEAST < run.size / row.type < 1 / _LEAST
    return alike and abs(row.base - run.base) < 0.2 * min(row.size, run.height)


def _beside(word: Word, row: _Row) -> bool:
    # a look-up, since a row may have any number of words
    places = (_edge(x, row) + off for x in (word.x0, word.x1) for off in (-1, 0, 1))
    return not row.edges.isdisjoint(places)


def _edge(x: float, row: _Row) -> int:
    return int(x / (_REACH * row.size))
