"""Shapes on a page from which tables are read: rules, lines of text, and their chunks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median

from posology.corpus.pdf.process import Rule, Word
from posology.corpus.pdf.segments import segments

#: points by which the ends of rules may differ
NEAR = 3.0
#: of two rules that are one, side by side or one above the other
_TOUCH = 1.5
#: widths in sizes of type, and in usual spaces: up to the first a gap is a space, from the second on it parts columns
_SPACE, _GUTTER = (0.38, 1.35), (0.55, 1.8)
#: of a value
FIGURE = re.compile(r"[<>=≤≥~≈+±(\[]*\s?[-−–+]?\s?\.?\d|[-−–—]+\Z|…\Z|\.{2,3}\Z")


class Refused(Exception):
    """A table whose grid is not certain."""


class Crossed(Refused):
    """A table whose sides words cross."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spaces:
    """Widths of gaps between words, points."""

    #: the widest that is a space for sure
    space: float
    #: the narrowest that parts columns
    gutter: float

    @classmethod
    def of(cls, lines: Iterable[Sequence[Word]]) -> Spaces:
        """Return the widths of a part of a page, from its lines."""
        gaps, sizes = list[float](), list[float]()
        for words in lines:
            sizes += (word.main.size for word in words)
            for one, other in pairwise(words):
                if 0 < (gap := other.x0 - one.x1) < 0.75 * one.main.size:
                    gaps.append(gap)
        size = median(sizes) if sizes else 10.0
        usual = median(gaps) if gaps else 0.28 * size
        return cls(
            space=max(_SPACE[0] * size, _SPACE[1] * usual),
            gutter=max(_GUTTER[0] * size, _GUTTER[1] * usual),
        )


@dataclass(frozen=True, slots=True)
class _Words:
    """Words side by side, from left to right."""

    words: Sequence[Word]

    @property
    def x0(self) -> float:
        """Return where it begins."""
        return self.words[0].x0

    @property
    def x1(self) -> float:
        """Return where it ends."""
        return max(word.x1 for word in self.words)


@dataclass(frozen=True, slots=True)
class Chunk(_Words):
    """Neighbouring words of a line, between which are spaces."""

    @property
    def text(self) -> str:
        """Return its words, without marks of what is raised."""
        return " ".join("".join(run.text for run in word.runs) for word in self.words)

    @property
    def bold(self) -> bool:
        """Return whether all of it is bold."""
        return all(word.bold for word in self.words)


@dataclass(frozen=True, kw_only=True, slots=True)
class TextLine(_Words):
    """Words of one baseline."""

    base: float
    #: height of its font, points
    size: float
    #: parts of it without a wide gap
    parts: int

    def chunks(self, spaces: Spaces) -> list[Chunk]:
        """Return its words, parted where a gap may be more than a space."""
        return split(self.words, spaces.space)


def split(words: Sequence[Word], widest: float) -> list[Chunk]:
    """Return words of a line, parted at gaps that are wider."""
    parts: list[list[Word]] = []
    for word in words:
        if parts and word.x0 - parts[-1][-1].x1 <= widest:
            parts[-1].append(word)
        else:
            parts.append([word])
    return [Chunk(part) for part in parts]


def text_lines(words: Sequence[Word]) -> list[TextLine]:
    """Return the lines of words in one direction, from top to bottom."""
    lines = []
    in_rows = sorted(segments(words), key=lambda one: (one.row, one.x0))
    for _, some in groupby(in_rows, key=lambda one: one.row):
        row = list(some)
        lines.append(
            TextLine(
                words=[word for one in row for word in one.words],
                base=median(one.base for one in row),
                size=median(one.size for one in row),
                parts=len(row),
            )
        )
    return sorted(lines, key=lambda line: line.base)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruling:
    """Rules of a page in one direction, pieces of one rule put together."""

    #: from top to bottom, and from left to right
    level: Sequence[Rule]
    upright: Sequence[Rule]

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> Ruling:
        """Return the rules of one direction."""
        level, upright = list[Rule](), list[Rule]()
        for one in rules:
            (level if one.x1 - one.x0 > one.y1 - one.y0 else upright).append(one)
        turned = [Rule(x0=one.y0, y0=one.x0, x1=one.y1, y1=one.x1) for one in upright]
        back = (Rule(x0=one.y0, y0=one.x0, x1=one.y1, y1=one.x1) for one in _whole(turned))
        return cls(level=list(_whole(level)), upright=list(back))


def _whole(rules: Sequence[Rule]) -> Iterator[Rule]:
    """Yield level rules from top to bottom, those that touch as one."""
    heights: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda rule: rule.y0):
        if heights and rule.y0 - heights[-1][0].y0 <= _TOUCH:
            heights[-1].append(rule)
        else:
            heights.append([rule])
    for same in heights:
        same.sort(key=lambda rule: rule.x0)
        x0, x1, y = same[0].x0, same[0].x1, same[0].y0
        for rule in same[1:]:
            if rule.x0 - x1 > _TOUCH:
                yield Rule(x0=x0, y0=y, x1=x1, y1=y)
                x0, x1 = rule.x0, rule.x1
            x1 = max(x1, rule.x1)
        yield Rule(x0=x0, y0=y, x1=x1, y1=y)
