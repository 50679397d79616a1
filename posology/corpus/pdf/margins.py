"""Running heads, feet and page numbers: lines at the edges of pages that repeat; and watermarks, anywhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, takewhile
from statistics import median

from posology.corpus.documents.grid import label_of
from posology.corpus.pdf.blocks import body_size
from posology.corpus.pdf.layout import Line

#: a line at the edge of a page is a running head if it is on this many pages, and on half of all
REPEATED = 3
#: the same for numbers alone
REPEATED_NUMBERS = 2
#: the same for heads that left and right pages have in turn
REPEATED_IN_TURN = 2
#: their type, in sizes of the text's
_SMALLER = 0.95
#: of heads that both pages of two have: distance from the text, in its usual distances of lines. A blank line is 2
_APART, _FAR = 1.5, 2.1
#: their type, in sizes of the text's, and points from the top of the page, if they are not in smaller type
_LARGEST, _MARGIN = 1.05, 60.0
#: points by which their places may differ, and characters of one
_NEAR, _LONGEST = 3.0, 200
#: lines of a page, from its top and from its foot, that may be running heads
EDGE = 5
#: the outermost, whose numbers may differ
NUMBERED = 2
#: characters of a line that may be a page's number and no more: "— Page 3 of 12 —"
LONGEST_NUMBER = 60

_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"\W*(?:page\W*)?(\d{1,5})(?:\W*(?:of|/)\W*\d{1,5})?\W*", re.IGNORECASE)
_PAGE = "#"


def without_heads(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the pages without running heads, feet, page numbers, watermarks and notices in margins.

    A line goes only where it is certain: it stands at an edge, and the same line, numbers aside, stands at that edge of
    :data:`REPEATED` pages and of half of all; of numbers alone, :data:`REPEATED_NUMBERS` are enough. What is beside the
    text, such as a watermark, may stand anywhere. In type smaller than the text's, at one height, two left or two right pages
    are enough, if these are half of them: a short article's heads are in turn, and its first page has none. Of a document of
    two pages, see :func:`_of_both`. Where nothing would be left of any page, everything stays.
    """
    edges = [_edges(page) for page in pages]
    aside = [[line for line in page if line.aside] for page in pages]
    beside = Counter(key for page in aside for key in set(map(_key, page)))
    tops = Counter(key for top, _ in edges for key in set(_keys(top)))
    feet = Counter(key for _, foot in edges for key in set(_keys(foot)))
    # a line of a short page is at both edges
    in_turn = Counter(key for page in edges for key in {*_places(page[0]), *_places(page[1])})
    filled = sum(map(bool, pages))
    body = body_size(line for page in pages for line in page)
    small = _SMALLER * body
    both = _of_both([page for page in pages if page], body) if filled == 2 else frozenset()

    def runs(key: str, times: Counter[str]) -> bool:
        least = REPEATED_NUMBERS if key.startswith(_PAGE) else REPEATED
        return times[key] >= max(least, filled / 2)

    kept: list[list[Line]] = []
    for page, (top, foot) in zip(pages, edges, strict=True):
        gone = {id(line) for line in page if line.aside and runs(_key(line), beside)}
        for side, times in ((top, tops), (foot, feet)):
            for line, key, place in zip(side, _keys(side), _places(side), strict=True):
                turns = line.size < small and in_turn[place] >= max(REPEATED_IN_TURN, filled / 4)
                if not (turns or runs(key, times) or id(line) in both):
                    break
                gone.add(id(line))
        kept.append([line for line in page if id(line) not in gone])
    return kept if any(kept) else [list(page) for page in pages]


def _of_both(pages: Sequence[Sequence[Line]], body: float) -> frozenset[int]:
    """Return the ids of lines that two pages have as heads or feet.

    Twice may be chance, or two letters that begin alike. So they have one place and one text, the page's number aside, and stand
    apart from the text: in smaller type; or at the top, in the margin, farther than a blank line. No caption is one.
    """
    steps = [
        two.base - one.base
        for page in pages
        for one, two in pairwise(page)
        if one.column == two.column and two.base > one.base
    ]
    usual = median(steps) if steps else 1.2 * body
    gone: set[int] = set()
    for first, second in zip(*map(_edges, pages), strict=True):
        same = len(list(takewhile(lambda two: _alike(*two), zip(first, second, strict=False))))
        for count in range(same, 0, -1):
            if all(_is_apart(side, count, usual, body) for side in (first, second)):
                gone |= {id(line) for line in (*first[:count], *second[:count])}
                break
    return frozenset(gone)


def _alike(first: Line, second: Line) -> bool:
    """Return whether lines of two pages are at one place and differ in the pages' numbers at most."""
    near = min(abs(first.x0 - second.x0), abs(first.x1 - second.x1)) <= _NEAR
    if not near or abs(first.base - second.base) > 1 or round(first.size) != round(second.size):
        return False
    if len(first.text) > _LONGEST or len(second.text) > _LONGEST:
        return False
    if _DIGITS.sub(_PAGE, first.text) != _DIGITS.sub(_PAGE, second.text):
        return False
    numbers = zip(_DIGITS.findall(first.text), _DIGITS.findall(second.text), strict=True)
    grown = [int(after) - int(before) for before, after in numbers if before != after]
    return grown in ([], [second.page - first.page])


def _is_apart(side: Sequence[Line], count: int, usual: float, body: float) -> bool:
    """Return whether the outermost lines of a page are apart from its text."""
    if count == len(side):
        return False
    heads = [line for line in side[:count] if not _key(line).startswith(_PAGE)]
    if any(label_of(line.text) for line in heads):
        return False
    far = abs(side[count].base - side[count - 1].base) / usual
    if all(line.size < _SMALLER * body for line in heads):
        return far > _APART
    # a page whose own places are shifted has lines above 0
    at_top = all(0 < line.base < _MARGIN and line.size <= _LARGEST * body for line in heads)
    return at_top and far > _FAR


def _edges(page: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Return the lines at the top and at the foot of a page, the outermost first."""
    by_place = sorted((line for line in page if not line.aside), key=lambda line: line.base)
    return by_place[:EDGE], by_place[: -EDGE - 1 : -1]


def _keys(side: Sequence[Line]) -> list[str]:
    """Return what lines at an edge have in common with others, the outermost first."""
    exact = (f"{line.size:.0f} {line.text}" for line in side[NUMBERED:])
    return [*map(_key, side[:NUMBERED]), *exact]


def _places(side: Sequence[Line]) -> list[tuple[bool, int, str]]:
    keys = zip(side, _keys(side), strict=True)
    return [(line.page % 2 == 0, round(line.base), key) for line, key in keys]


def _key(line: Line) -> str:
    """Return what lines have in common that are one running head, or the numbers of their pages."""
    if len(line.text) <= LONGEST_NUMBER and (found := _NUMBER.fullmatch(line.text)):
        # a number that does not grow with the pages may be the last line of a paragraph, such as a dose
        return f"{_PAGE}{int(found[1]) - line.page}"
    # a title in large type may be the head of the pages behind it
    return f"{line.size:.0f} {_DIGITS.sub('#', line.text)}"
