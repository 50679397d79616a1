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
from itertools import groupby

from posology.text.figures import Figure, figures
from posology.text.quoting.rows import read
from posology.types import Difference, Rule
from strategies.compression.checked import stems

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_NUMBER = re.compile(r"\d[\d.,]*")
_BRACKETED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
#: what stands between a number and the heading behind it that it belongs to
_LEADS = re.compile(
    r"(?!.*(?:[,;:()]|\b(?:and|or|but|vs|versus|than|compared|against|while|whereas|to)\b))(?:.*\b)?"
    r"(?:with|in|on|for|under|among|of|after|at|during|by|from|given|receiving|taking|had|were)\b(?:\s+\w+){0,2}\s*",
    re.IGNORECASE,
)
#: leads to a heading that others are compared with
_COMPARES = re.compile(
    r"(?:\b(?:than|versus|vs\.?|against|compared|relative|(?:in|su)perior|similar|equal|comparable|opposed)"
    r"(?:\s+(?:to|with|in|on|for|the|a|those|that|of)){0,4})\s*\Z",
    re.IGNORECASE,
)
#: headings of effects and tests, which any arm's sentence may state
_EFFECT = re.compile(
    r"\b(?:difference|ratio|odds|hazards?|risk|effect|reduction|p|p[- –]values?|ci|[hor]r|a[ho]r|md|smd|nnt|statistic|weight|i2)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    name: str
    heading: str
    text: str

    @property
    def form(self) -> str:
        """Text with signs in place of its numbers and without units, in which values of one kind agree."""
        return re.sub(r"[\s%\w]+", "", _NUMBER.sub("#", self.text).replace("#", "\0"))


@dataclass(frozen=True, slots=True)
class _Mention:
    """Words of a claim that some cells have in their headings, or a number that some have for their value."""

    start: int
    end: int
    cells: frozenset[_Cell]
    number: Figure | None = None


def swapped(claim: str, quotes: Sequence[str], around: str) -> Iterator[Difference]:
    """Yield the numbers of a claim that stand beside another heading than in the rows of tables among its quotes.

    Args:
        claim: a sentence.
        quotes: that it rests on; a part of a row is looked for in ``around``.
        around: titles and texts of their passages.
    """
    cells: list[_Cell] = []
    for quote in quotes:
        row = read(quote) or next(
            filter(None, (read(line) for line in around.split("\n") if quote in line)), None
        )
        # what prose says need not be in a table
        other = () if row is not None else figures(quote)
        if any(one.says(number) for one in figures(claim) for number in other):
            return
        cells += (_Cell(row.name, one.heading, one.text) for one in (row.values if row else ()))
    for words_of in (lambda one: one.heading, lambda one: one.name) if len(cells) > 1 else ():
        yield from _swapped(claim, cells, words_of)


def _swapped(
    claim: str, cells: Sequence[_Cell], words_of: Callable[[_Cell], str]
) -> Iterator[Difference]:
    mentions = _mentions(claim, cells, words_of)
    given: dict[frozenset[_Cell], list[_Mention]] = {}
    for number, heading in _paired(claim, mentions):
        given.setdefault(heading.cells, []).append(number)
    for place, numbers in given.items():
        if any(one.cells & place for one in numbers):
            continue
        forms = {one.form for one in place}
        for one in numbers:
            others = [other for other in one.cells if not _EFFECT.search(other.heading)]
            if any(other.form in forms for other in others):
                right = next(other for other in cells if other in place)
                yield Difference(
                    rule=Rule.COLUMN,
                    said=f"{claim[one.start : one.end]} for {words_of(right)}",
                    quoted=right.text,
                )
                return


def _mentions(
    claim: str, cells: Sequence[_Cell], words_of: Callable[[_Cell], str]
) -> list[_Mention]:
    """Return the words of headings and the values in a claim, in their order."""
    words = {one: stems(words_of(one)) for one in cells}
    measures = {one: figures(words_of(one)) for one in cells}
    values = {one: figures(one.text) for one in cells}
    found: list[_Mention] = []
    for number in figures(claim):
        named = frozenset(one for one in cells if any(map(number.says, measures[one])))
        valued = frozenset(one for one in cells if any(map(number.says, values[one])))
        if valued and not named:
            found.append(_Mention(number.start, number.end, valued, number))
        elif named and not valued and len(named) < len(cells):
            found.append(_Mention(number.start, number.end, named))
    taken = [(one.start, one.end) for one in found]
    for match in _WORD.finditer(claim):
        stem = stems(match[0])
        named = frozenset(one for one in cells if stem and stem <= words[one])
        inside = any(start <= match.start() < end for start, end in taken)
        if named and len(named) < len(cells) and not inside:
            found.append(_Mention(match.start(), match.end(), named))
    return list(_joined(sorted(found, key=lambda one: one.start)))


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
    runs = [list(some) for _, some in groupby(mentions, key=lambda one: one.number is None)]
    free: list[_Mention] = []
    for place, run in enumerate(runs):
        if run[0].number is None:
            free += run
            continue
        before = runs[place - 1] if place else []
        behind = runs[place + 1] if place + 1 < len(runs) else []
        alike = len({one.number.unit for one in run if one.number}) == 1 and len(run) > 1
        row = next((some for some in (before, behind) if alike and len(some) == len(run)), None)
        if row is not None:
            if "respectively" not in claim:
                row = sorted(row, key=lambda one: _is_compared(claim, one))
            yield from zip(run, row, strict=True)
            free = [one for one in free if one not in row]
            continue
        last = run[-1]
        if behind and (not free or _LEADS.fullmatch(_between(claim, last, behind[0]))):
            # "12.1 % (40 of 330) with ramipril"
            yield from ((one, behind[0]) for one in run)
            runs[place + 1] = behind[1:] or runs[place + 1]
            continue
        if heading := _nearest(claim, free, run[0]):
            yield from ((one, heading) for one in run)


def _nearest(claim: str, free: Sequence[_Mention], number: _Mention) -> _Mention | None:
    """Return the last heading before a number, but not one that it is compared with, unless that is right before it."""
    for one in reversed(free):
        beside = not re.search(r"\w", claim[one.end : number.start])
        if beside or not _is_compared(claim, one):
            return one
    return None


def _is_compared(claim: str, one: _Mention) -> bool:
    return _COMPARES.search(claim, 0, one.start) is not None


def _between(claim: str, first: _Mention, second: _Mention) -> str:
    return _BRACKETED.sub("", claim[first.end : second.start]).strip()
