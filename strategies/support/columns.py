"""Numbers beside the wrong heading: a sentence gives an arm, an outcome or a time the number that its row has for another.

Each number of a sentence belongs to the nearest words of a heading: those behind it if a preposition leads to them ("15.3 % with
placebo"), else those before it ("placebo 15.3 %"). As many numbers as headings, one after the other, are paired in their order
("12.1 % and 15.3 % with ramipril and placebo, respectively"); a heading that is compared with comes last ("Compared with
placebo, ramipril lowered mortality (12.1 % versus 15.3 %)"). Names of several rows are compared as headings are.

A heading that the sentence gives one of its own numbers is no difference, nor is a number without a heading's words beside it,
an effect (ratio, difference, P), or a number of another form than the heading's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

from posology.text.figures import Figure, figures
from posology.text.quoting.rows import Row, Value, read, rows_of
from posology.types import Difference, Rule
from strategies.compression.checked import stems

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
#: what may be a unit: no word of a number, as in "ramipril 5 mg"
_UNIT = re.compile(r"(?<![\w.%])(?<!\d\s)[%°µμ\w][\w/^·%-]*")
_NUMBER = re.compile(r"\d[\d.,]*")
_BRACKETED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
#: letters of a word that are compared
_LETTERS = 9
#: words of headings that tell none apart, as they are compared
_EMPTY = frozenset({"group", "arm", "cohort", "number", "total"})
#: part a number from the heading behind it
_PARTS = re.compile(
    r"[,;:()]|\b(?:and|or|but|vs|versus|than|compared|against|while|whereas|to\s+[\d<>≤≥])\b",
    re.IGNORECASE,
)
#: leads from a number to the heading that it belongs to
_LEADS = re.compile(
    r"\b(?:with|in|on|for|under|among|of|after|at|during|by|given|receiving|taking)"
    r"(?:\s+(?:the|an?|those|all|each|patients?|participants?|people|(?:wo)?men|adults|children|groups?|arms?|who|were|"
    r"given|receiv\w+|tak\w+|took|assigned|allocated|randomi[sz]ed|treated|to|on|with|of|in)\b){0,6}\s*\Z",
    re.IGNORECASE,
)
#: leads to a heading that others are compared with
_COMPARES = re.compile(
    r"\b(?:than|versus|vs\.?|against|compared|relative|(?:inf|sup)erior|similar|equal|comparable|opposed)"
    r"(?:\s+(?:to|with|in|on|for|the|an?|those|that|of)){0,4}\s*\Z",
    re.IGNORECASE,
)
#: headings of effects and tests, which a sentence on any arm may state
_EFFECT = re.compile(
    r"\b(?:difference|ratio|odds|hazards?|relative|effect|reduction|p|p[- –]values?|ci|[hor]r|a[ho]r|md|smd|nnt|i2)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    row: Row
    value: Value

    @property
    def form(self) -> str:
        """Brackets and signs of the value around its numbers, in which values of one kind agree."""
        return re.sub(r"[^#()\[\]/±<>]", "", _NUMBER.sub("#", self.value.text))


@dataclass(frozen=True, slots=True)
class _Mention:
    """A number of a claim that some cells have, or words of it that some cells have in their headings."""

    start: int
    end: int
    cells: frozenset[_Cell]
    number: Figure | None = None


def parted(quotes: Sequence[str], around: str) -> tuple[list[Row], str]:
    """Return the rows of tables among quotes, a part of one whole as ``around`` has it, and the text of the others."""
    lines = [around[start:end] for start, end in rows_of(around)]
    wholes = [next((one for one in lines if quote in one), quote) for quote in quotes]
    rows = [row for one in dict.fromkeys(wholes) if (row := read(one)) is not None]
    return rows, "\n\n".join(one for one in wholes if read(one) is None)


def states(row: Row, figure: Figure) -> bool:
    """Return whether a row states a figure, whose unit its name or a heading may have: "Mortality, %: ramipril: 12.1"."""
    return any(_has(_Cell(row, one), figure) for one in row.values)


def swapped(claim: str, rows: Sequence[Row], prose: str) -> Iterator[Difference]:
    """Yield the numbers of a claim that stand beside another heading, or name of a row, than in rows of tables.

    Args:
        claim: a sentence.
        rows: that it rests on.
        prose: its other quotes, which may state its numbers, too.
    """
    stated = figures(prose)
    cells = [
        _Cell(row, value)
        for row in rows
        for value in row.values
        if not _EFFECT.search(value.heading)
    ]
    for of in (lambda one: one.value.heading, lambda one: one.row.name):
        yield from _swapped(claim, cells, stated, of)


def _swapped(
    claim: str, cells: Sequence[_Cell], stated: Sequence[Figure], of: Callable[[_Cell], str]
) -> Iterator[Difference]:
    given: dict[frozenset[_Cell], list[_Mention]] = {}
    for number, heading in _paired(claim, _mentions(claim, cells, of)):
        given.setdefault(heading.cells, []).append(number)
    for place, numbers in given.items():
        if any(one.cells & place for one in numbers):
            continue
        forms = {one.form for one in place}
        for one in numbers:
            assert one.number is not None
            if any(map(one.number.says, stated)):
                continue
            if any(other.form in forms for other in one.cells):
                right = next(other for other in cells if other in place)
                said = f"{claim[one.start : one.end]} for {of(right)}"
                yield Difference(rule=Rule.COLUMN, said=said, quoted=right.value.text)
                return


def _has(cell: _Cell, figure: Figure) -> bool:
    own = figures(cell.value.text)
    if any(map(figure.says, own)):
        return True
    bare = [one for one in own if (one.size, one.comparison) == (figure.size, figure.comparison)]
    if not figure.unit or all(one.unit for one in bare):
        return False
    path = f"{cell.row.name} {cell.value.heading}"
    return any(
        one.unit == figure.unit for word in _UNIT.findall(path) for one in figures(f"1 {word}")
    )


def _terms(text: str) -> frozenset[str]:
    """Return the words of a text that tell headings apart; short ones if they are in capitals."""
    words = [one for one in _WORD.findall(text) if stems(one) or (len(one) > 1 and one.isupper())]
    return frozenset(one.lower().rstrip("s")[:_LETTERS] for one in words) - _EMPTY


def _mentions(claim: str, cells: Sequence[_Cell], of: Callable[[_Cell], str]) -> list[_Mention]:
    """Return the values and the words of headings in a claim, in their order."""
    words = {one: _terms(of(one)) for one in cells}
    # doses and times; the size of a group is none
    measures = {one: [m for m in figures(of(one)) if m.unit] for one in cells}
    mentions: list[_Mention] = []
    for number in figures(claim):
        named = frozenset(one for one in cells if any(map(number.says, measures[one])))
        valued = frozenset(one for one in cells if _has(one, number))
        if valued and not named:
            mentions.append(_Mention(number.start, number.end, valued, number))
        elif named and not valued:
            mentions.append(_Mention(number.start, number.end, named))
    taken = list(mentions)
    for match in _WORD.finditer(claim):
        term = _terms(match[0])
        named = frozenset(one for one in cells if term and term <= words[one])
        if named and not any(one.start <= match.start() < one.end for one in taken):
            mentions.append(_Mention(match.start(), match.end(), named))
    joined = _joined(sorted(mentions, key=lambda one: one.start))
    # words of every heading say nothing
    return [one for one in joined if one.number or len(one.cells) < len(cells)]


def _joined(mentions: Sequence[_Mention]) -> Iterator[_Mention]:
    """Yield mentions, those side by side that have a heading in common as one: "ramipril 5 mg"."""
    held: _Mention | None = None
    for one in mentions:
        if held and not held.number and not one.number and (both := held.cells & one.cells):
            held = _Mention(held.start, one.end, both)
            continue
        if held:
            yield held
        held = one
    if held:
        yield held


def _paired(claim: str, mentions: Sequence[_Mention]) -> Iterator[tuple[_Mention, _Mention]]:
    """Yield the numbers of a claim, each with the heading that it is given to."""
    runs = [list(some) for _, some in groupby(mentions, key=lambda mention: mention.number is None)]
    free: list[_Mention] = []
    for place, run in enumerate(runs):
        if not run or run[0].number is None:
            free += run
            continue
        before = runs[place - 1] if place else []
        behind = runs[place + 1] if place + 1 < len(runs) else []
        alike = _alike(run)
        row = next((some for some in (before, behind) if 1 < len(some) == len(alike)), None)
        if row is not None:
            if "respectively" not in claim:
                row = sorted(row, key=lambda heading: _is_compared(claim, heading))
            yield from zip(alike, row, strict=True)
            free.clear()
            continue
        for number in run:
            between = _BRACKETED.sub("", claim[number.end : behind[0].start]) if behind else ","
            if not _PARTS.search(between) and (not free or _LEADS.search(between)):
                yield number, behind[0]
                runs[place + 1] = behind[1:]
            elif heading := _nearest(claim, free, number):
                yield number, heading


def _alike(numbers: Sequence[_Mention]) -> list[_Mention]:
    """Return the first numbers, up to one of another unit."""
    units = [one.number.unit for one in numbers if one.number]
    return [
        one
        for one, _ in takewhile(lambda pair: pair[1] == units[0], zip(numbers, units, strict=True))
    ]


def _nearest(claim: str, free: Sequence[_Mention], number: _Mention) -> _Mention | None:
    """Return the last heading before a number, but not one that it is compared with, unless that is right before it."""
    for one in reversed(free):
        if not re.search(r"\w", claim[one.end : number.start]) or not _is_compared(claim, one):
            return one
    return None


def _is_compared(claim: str, one: _Mention) -> bool:
    return _COMPARES.search(claim, 0, one.start) is not None
