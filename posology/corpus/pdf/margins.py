"""Running heads, feet and page numbers: lines at the edges of pages that repeat."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from posology.corpus.pdf.layout import Line

#: a line at the edge of a page is a running head if it is on this many pages, and on half of all
REPEATED = 3
#: the same for numbers alone
REPEATED_NUMBERS = 2
#: lines of a page, from its top and from its foot, that may be running heads
EDGE = 2
#: characters of a line that may be a page's number and no more: "— Page 3 of 12 —"
LONGEST_NUMBER = 60

_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"\W*(?:page\W*)?(\d{1,5})(?:\W*(?:of|/)\W*\d{1,5})?\W*", re.IGNORECASE)
_PAGE = "#"


def without_heads(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the pages without running heads, feet and page numbers.

    A line goes only where it is certain: it stands at an edge, and the same line, numbers aside, stands at that edge of
    :data:`REPEATED` pages and of half of all; of numbers alone, :data:`REPEATED_NUMBERS` are enough. Where nothing would
    be left of any page, everything stays.
    """
    edges = [_edges(page) for page in pages]
    tops = Counter(key for top, _ in edges for key in set(map(_key, top)))
    feet = Counter(key for _, foot in edges for key in set(map(_key, foot)))
    filled = sum(map(bool, pages))

    def runs(line: Line, times: Counter[str]) -> bool:
        key = _key(line)
        least = REPEATED_NUMBERS if key.startswith(_PAGE) else REPEATED
        return times[key] >= max(least, filled / 2)

    kept: list[list[Line]] = []
    for page, (top, foot) in zip(pages, edges, strict=True):
        gone: set[int] = set()
        for side, times in ((top, tops), (foot, feet)):
            for line in side:
                if not runs(line, times):
                    break
                gone.add(id(line))
        kept.append([line for line in page if id(line) not in gone])
    return kept if any(kept) else [list(page) for page in pages]


def _edges(page: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Return the lines at the top and at the foot of a page, the outermost first."""
    upright = page[0].turn if page else 0
    by_place = sorted((line for line in page if line.turn == upright), key=lambda line: line.base)
    return by_place[:EDGE], by_place[: -EDGE - 1 : -1]


def _key(line: Line) -> str:
    """Return what lines have in common that are one running head, or the numbers of their pages."""
    if len(line.text) <= LONGEST_NUMBER and (found := _NUMBER.fullmatch(line.text)):
        # a number that does not grow with the pages may be the last line of a paragraph, such as a dose
        return f"{_PAGE}{int(found[1]) - line.page}"
    # a title in large type may be the head of the pages behind it
    return f"{line.size:.0f} {_DIGITS.sub('#', line.text)}"
