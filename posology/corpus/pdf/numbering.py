"""Numbers of lines, as manuscripts and proofs have them beside the text: they are no part of it, nor of a table."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from statistics import median
from typing import TypeAlias

from posology.corpus.pdf.process import Word

#: pages that are looked at together: a page with few numbers is understood by its neighbours
WINDOW = 20
#: numbers of a page that show that its lines are numbered, if each line has one, and if some have
FEWEST, FEWEST_OF_SOME = 4, 2
#: share of neighbouring numbers between which there are as many lines as they say
_EXACT = 0.7
#: share of a page's lines that are numbered
_COVERED = 0.5
#: share of the numbers that rise
_RISING = 0.85
#: words that may stand among the numbers, for each of them
_STRANGE = 0.1
#: numbers of a page that has them at even distances, and by how much these may differ
_RULER, _UNEVEN = 20, 0.1
#: shares of the lines that have several words side by side, and that begin in the middle of a sentence
_LONG, _LOWER = 0.5, 0.25
#: most lines that end with a sentence, and fewest behind which the next line's first word has no place
_ENDED, _FILLED = 0.6, 0.4
_ENDS = ".?!:;"
#: words of a line of text, and its width in sizes of type
_WORDS, _WIDTH = 4, 14.0
#: points by which edges of numbers in one column may differ, on one page and from page to page
_ALIGNED, _AGAIN = 1.5, 3.0
#: columns of numbers of a page that are looked at
_MOST = 12
#: width of a gap between words that ends a line, in heights of type
_GAP = 1.5

_NUMBER = re.compile(r"[0-9]{1,5}")
#: what a column of numbers is aligned at
_EDGES = ("right", "left", "middle")

Page: TypeAlias = Sequence[Word]


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A place of a page where the numbers of its lines stand."""

    edge: str
    at: float
    turn: float
    #: difference of neighbouring numbers
    step: int


def without_numbers(pages: Iterable[Page]) -> Iterator[Page]:
    """Yield the pages without the numbers of their lines, whether these go on from page to page or begin anew.

    A column of numbers counts as such only where it is certain on some page nearby: no other word stands in it, the
    numbers rise by a constant step, as many lines of text as they say are beside them, these are prose, and most of the
    page is numbered. A column of a table, or a numbered list, is none.
    """
    remaining = iter(pages)
    known: list[Column] = []
    #: of each column the last number
    last: dict[Column, int] = {}
    while some := list(islice(remaining, WINDOW)):
        for page in some:
            known += (one for one in _columns(page) if not any(_same(one, two) for two in known))
        for page in some:
            yield _without(page, known, last) if known else page


def _same(one: Column, two: Column) -> bool:
    return (one.edge, one.turn) == (two.edge, two.turn) and abs(one.at - two.at) < _AGAIN


def _without(page: Page, known: Sequence[Column], last: dict[Column, int]) -> Page:
    numbers = [word for word in page if _is_number(word)]
    gone: set[int] = set()
    for column in known:
        there = sorted(
            (
                word
                for word in numbers
                if word.turn == column.turn
                and abs(_edge(word, column.edge) - column.at) < _AGAIN
                and id(word) not in gone
            ),
            key=lambda word: word.main.base,
        )
        rising = list(_following(page, there, column.step, last.get(column)))
        if not rising or len(rising) < _RISING * len(there) or _mixed(page, rising):
            continue
        gone.update(map(id, rising))
        last[column] = _value(rising[-1])
    return [word for word in page if id(word) not in gone] if gone else page


def _following(page: Page, numbers: Sequence[Word], step: int, last: int | None) -> Iterator[Word]:
    """Yield numbers that go on from another, or from the last page's; a number of the text does not."""
    for i, word in enumerate(numbers):
        goes_on = last is not None and _value(word) == last + step
        # they may begin anew, on a page or within it
        begins = _value(word) in (1, step) and _is_outside(page, word)
        if (
            goes_on
            or begins
            or any(_value(one) == _value(word) + step for one in numbers[i + 1 : i + 2])
        ):
            yield word
            last = _value(word)


def _is_outside(page: Page, number: Word) -> bool:
    """Return whether all other words of its direction are on one side of a number."""
    others = [word for word in page if word.turn == number.turn and not _is_number(word)]
    return all(word.x0 > number.x1 for word in others) or all(
        word.x1 < number.x0 for word in others
    )


def _columns(page: Page) -> Iterator[Column]:
    """Yield the columns of numbers of lines that are certain."""
    if not page:
        return
    turn = Counter(word.turn for word in page).most_common(1)[0][0]
    words = [word for word in page if word.turn == turn]
    numbers = [word for word in words if _is_number(word)]
    if len(numbers) < FEWEST_OF_SOME:
        return
    size = median(word.main.height for word in words)
    aligned = [(edge, some) for edge in _EDGES for some in _aligned(numbers, edge)]
    rising = [(edge, some) for edge, some in aligned if _step(some) is not None]
    rising.sort(key=lambda one: -len(one[1]))
    of_lines = {id(word) for _, some in rising for word in some}
    text = [word for word in words if word.main.height > 0.8 * size and id(word) not in of_lines]
    every = sorted(text, key=lambda word: word.main.base)
    found: set[int] = set()
    for edge, those in rising[:_MOST]:
        some = [word for word in those if id(word) not in found]
        step = _step(some)
        if step is not None and _beside_text(some, every, words, step, size):
            found |= {id(word) for word in some}
            yield Column(
                edge=edge, at=median(_edge(word, edge) for word in some), turn=turn, step=step
            )


def _is_number(word: Word) -> bool:
    return len(word.runs) == 1 and _NUMBER.fullmatch(word.main.text) is not None


def _value(word: Word) -> int:
    return int(word.main.text)


def _edge(word: Word, edge: str) -> float:
    match edge:
        case "right":
            return word.x1
        case "left":
            return word.x0
        case _:
            return (word.x0 + word.x1) / 2


def _aligned(numbers: Sequence[Word], edge: str) -> Iterator[list[Word]]:
    """Yield numbers whose edges are one below the other."""
    part: list[Word] = []
    for word in sorted(numbers, key=lambda word: _edge(word, edge)):
        if part and _edge(word, edge) - _edge(part[0], edge) > _ALIGNED:
            yield part
            part = []
        part.append(word)
    if part:
        yield part


def _step(numbers: list[Word]) -> int | None:
    """Return the step by which numbers rise from top to bottom, sorted on the way; ``None``: they do not."""
    if len(numbers) < FEWEST_OF_SOME:
        return None
    numbers.sort(key=lambda word: word.main.base)
    steps = Counter(_value(below) - _value(above) for above, below in pairwise(numbers))
    step, times = steps.most_common(1)[0]
    if step < 1 or times < _EXACT * steps.total() or (steps.total() + 1 < FEWEST and step == 1):
        return None
    if step > 1 and any(_value(word) % step for word in numbers):
        return None
    return step


def _mixed(page: Page, numbers: Sequence[Word]) -> bool:
    """Return whether other words stand among numbers."""
    own = {id(word) for word in numbers}
    x0, x1 = min(word.x0 for word in numbers), max(word.x1 for word in numbers)
    turn, size = numbers[0].turn, numbers[0].main.height
    top, bottom = numbers[0].main.base - size, numbers[-1].main.base + size
    strange = sum(
        word.x0 < x1 and word.x1 > x0 and top < word.main.base < bottom
        for word in page
        if word.turn == turn and id(word) not in own and word.main.size < 2 * size
    )
    return strange > _STRANGE * len(numbers)


def _beside_text(
    numbers: Sequence[Word], text: Sequence[Word], page: Page, step: int, size: float
) -> bool:
    """Return whether numbers are those of the lines on one of their sides.

    Args:
        numbers: of one column, from top to bottom.
        text: other words of the page in type of usual size, by their baselines.
        page: all words.
        step: by which the numbers rise.
        size: usual height of type.
    """
    if _mixed(page, numbers):
        return False
    x0, x1 = min(word.x0 for word in numbers), max(word.x1 for word in numbers)
    right = _rows([word for word in text if word.x0 >= x1], size)
    left = _rows([word for word in text if word.x1 <= x0], size)
    sides = (
        [_line(row, size, from_left=True) for row in right],
        [_line(row, size, from_left=False) for row in left],
    )
    prose = [_is_prose(lines) for lines in sides]
    if _is_ruler(numbers) and ((prose[0] and not left) or (prose[1] and not right)):
        return True
    # the last line of a paragraph is short, and may end far from numbers on its right
    end = median(line[-1].x1 for line in sides[0]) if right else x1
    start = median(line[0].x0 for line in sides[1]) if left else x0
    near = (
        [row for row in right if any(word.x0 < end for word in row)],
        [row for row in left if any(word.x1 > start for word in row)],
    )
    return any(
        prose[i]
        and _are_counted(numbers, near[i], step, size)
        # the other side of the numbers is the page's edge, or another column
        and (prose[1 - i] or _is_edge(numbers, sides[1 - i], size))
        for i in (0, 1)
    )


def _is_ruler(numbers: Sequence[Word]) -> bool:
    """Return whether numbers stand at even distances down the page, as in proofs, wherever the lines of the text are."""
    if len(numbers) < _RULER or _value(numbers[0]) != 1:
        return False
    steps = [below.main.base - above.main.base for above, below in pairwise(numbers)]
    return max(steps) - min(steps) < _UNEVEN * median(steps)


def _is_edge(numbers: Sequence[Word], lines: Sequence[Sequence[Word]], size: float) -> bool:
    """Return whether lines on one side of numbers are not of the same text."""
    ends = {round(word.main.base): word for line in lines for word in (line[0], line[-1])}
    close = 0
    for word in numbers:
        base = round(word.main.base)
        beside = [ends[at] for at in (base - 1, base, base + 1) if at in ends]
        gaps = (max(other.x0 - word.x1, word.x0 - other.x1) for other in beside)
        close += any(gap < _GAP * size for gap in gaps)
    return close <= _STRANGE * len(numbers)


def _rows(words: Iterable[Word], size: float) -> list[list[Word]]:
    """Return words that are sorted by their baselines in rows."""
    rows: list[list[Word]] = []
    for word in words:
        if rows and word.main.base - rows[-1][0].main.base < 0.3 * size:
            rows[-1].append(word)
        else:
            rows.append([word])
    return rows


def _are_counted(
    numbers: Sequence[Word], rows: Sequence[Sequence[Word]], step: int, size: float
) -> bool:
    """Return whether there are as many rows between numbers as they say, and most rows are numbered."""
    if not rows:
        return False
    bases = [row[0].main.base for row in rows]
    places: list[int | None] = []
    for word in numbers:
        i = bisect_left(bases, word.main.base)
        near = [j for j in (i - 1, i) if 0 <= j < len(bases)]
        place = min(near, key=lambda j: abs(bases[j] - word.main.base))
        places.append(place if abs(bases[place] - word.main.base) < 0.5 * size else None)
    exact = sum(
        one is not None and two is not None and two - one == _value(below) - _value(above)
        for (one, two), (above, below) in zip(pairwise(places), pairwise(numbers), strict=True)
    )
    counted = exact >= _EXACT * (len(numbers) - 1)
    return counted and len(numbers) * step >= _COVERED * len(rows)


def _line(row: Sequence[Word], size: float, *, from_left: bool) -> list[Word]:
    """Return the words of a row side by side, from the numbers inwards."""
    words = sorted(row, key=lambda word: word.x0, reverse=not from_left)
    line = words[:1]
    for before, word in pairwise(words):
        left, right = (before, word) if from_left else (word, before)
        if right.x0 - left.x1 > _GAP * size:
            break
        line.append(word)
    return line if from_left else line[::-1]


def _is_prose(lines: Sequence[Sequence[Word]]) -> bool:
    """Return whether lines are mostly long, go on from each other, and are filled: those of a list or a table are not."""
    if not lines:
        return False
    long = sum(len(line) >= _WORDS for line in lines)
    lower = sum(line[0].main.text[0].islower() for line in lines)
    ended = sum(line[-1].main.text[-1] in _ENDS for line in lines)
    size = median(line[0].main.size for line in lines)
    if median(line[-1].x1 - line[0].x0 for line in lines) < _WIDTH * size:
        return False
    right = sorted(line[-1].x1 for line in lines)[3 * len(lines) // 4]
    filled = sum(line[-1].x1 + below[0].x1 - below[0].x0 > right for line, below in pairwise(lines))
    return (
        long >= _LONG * len(lines)
        and lower >= _LOWER * len(lines)
        and ended <= _ENDED * len(lines)
        and filled >= _FILLED * (len(lines) - 1)
    )
