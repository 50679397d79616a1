"""Figures: the numbers of a text with comparison, sign and unit, normalised so that texts can be compared.

``1,204``, ``1 204`` and ``1204`` are equal, as are ``5 mg``, ``5-mg`` and ``0.005 g``, ``150 × 10⁹/L`` and
``150 x 10^9 per litre``, and ``≥ 65 years`` and "65 years or older"; ``15 mg`` and ``15 mg/kg`` differ.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache

from posology.text.figures.comparisons import after, before
from posology.text.figures.numerals import COUNT, WORDED, Numeral, numerals_of, shifted
from posology.text.figures.units import TIMES, Unit, frequency, unit

__all__ = [
    "COUNT",
    "WORDED",
    "Figure",
    "any_stated",
    "blanked",
    "figures",
    "lacking",
    "names",
    "spelt",
    "uncompared",
]

#: One character for each, so that offsets stay: what journals write in place of ASCII.
_FOLD = {0xFF01 + i: 0x21 + i for i in range(94)} | {
    ord(char): ord(plain)
    for chars, plain in (
        (
            "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u200b\u202f\u205f\u2060\u3000\ufeff",
            " ",
        ),
        ("‐‑‒", "-"),
        ("‧∙⋅•", "·"),
        ("∕⁄", "/"),
        ("✕⨯", "×"),
        ("ºᵒ˚", "°"),
        ("’‘", "'"),
        ("μ", "µ"),
        # the one letter that is longer in lower case
        ("İ", "I"),
    )
    for char in chars
}
_LISTED = re.compile(
    r"\s*-?\s*(?:,|and|or|to|through|[-–—−/±]|\+/-|vs\.?|versus|,\s*(?:and|or))\s*", re.IGNORECASE
)
_RAISED = re.compile(r"[⁻⁺⁰¹²³⁴-⁹]+|\^\(?[-−–+]?\d+\)?")
#: "-5", but not "10-5", "10%-5%" and "10 +/-5", "minus 5", "a change of − 5", but not "10 mg − 15 mg"
_SIGN = re.compile(
    r"(?:(?<![^\W_])(?<![)\]%°])(?<!\+/)(?P<beside>[-–−])|(?:\b(?:of|by|to|was|were|is|from|and|between)\s|[(\[=<>≤≥,;:]\s?|\A)(?P<minus>−)\s"
    r"|\b(?P<word>minus)\s)\Z",
    re.IGNORECASE,
)
#: what may be the spread of the number before it, and its words
_SPREAD = re.compile(r"(?P<between>[^()\[\].;,]{0,30}?)\s?[(\[](?P<inner>[^()\[\]]{1,60})[)\]]")
_SPREADS = re.compile(
    r"\b(?:s\.?[de]\.?m?|iqr|range|interquartile|ci|confidence|intervals?|standard|deviation|error|to|and)\b"
)
_AROUND = " \t\n()[]±+/,;:=-–−—"
_CURRENCY = re.compile(r"[$€£¥]\s?\Z")
_PLURAL = re.compile(r"(?<=\d)s\Z")
#: words behind a name that are no part of it: "HER2-positive" is said of HER2, "HER2-low" of something else
_OF_NAMES = (
    "receptors?|(?:ant)?agonists?|blockers?|inhibitors?|mediated|positive|specific|infected|associated|related|induced|"
    "dependent|treated|based"
)
_NAME = re.compile(
    rf"(?<!\w)[^\W\d_]+[-‐‑–]?\d[^\W_]*(?:[-/](?!(?:{_OF_NAMES})(?![^\W_]))[^\W_]+)*"
)
_LOWERED = re.compile(r"(?<=[^\W\d_])\((\d{1,2}[a-z]?)\)")
#: letters by their names: not µ, of units
_GREEK = {
    ord(letter): unicodedata.name(letter).rpartition(" ")[2].lower()
    for letter in "αβγδεζηθκρστφχψω"
}
#: words between a dose and how often it is given: "15 mg methotrexate orally", "15 mg of it was given"
_GIVEN = (
    r"(?:[\s,(-]+(?:of\s+[a-z-]+|(?:oral|intravenous|subcutaneous|intramuscular|topical|sublingual|rectal|intranasal)(?:ly)?"
    r"|i\.?v\.?|s\.?c\.?|i\.?m\.?|p\.?o\.?|given|administered|taken|infused|injected|was|were|is|are|by|mouth|tablets?|capsules?"
    r"|infusions?|injections?|doses?)(?![^\W_]))"
)
_OF = r"(?:\s(?!(?:and|or|to|for|with|than|from|vs|versus|but|every|each|an?)\b)[a-z-]+)?"
#: how often, without a number of its own: "every other day", "q8h", "weekly"
_REGULARLY = re.compile(
    rf"{_OF}{_GIVEN}{{0,4}}?[\s,(-]+(?:(?:every\s+(?:other|(?P<rank>second|third|fourth))|alternate)[\s-]+(?P<other>hour|day|night|week|month|year)s?"
    rf"|q(?P<size>\d+)\s?(?P<short>h|d|w)[a-z]*"
    rf"|(?P<rate>dai|night|hour|week|month|year)ly|(?:an?|each|every)\s+(?P<time>hour|day|night|week|month|year))(?![^\W_])",
    re.IGNORECASE,
)
_RANKS = {None: 2, "second": 2, "third": 3, "fourth": 4}
_BEFORE_OFTEN = re.compile(rf"{_OF}{_GIVEN}{{0,4}}[\s,(-]+", re.IGNORECASE)
_BEFORE_EVERY = re.compile(rf"{_OF}{_GIVEN}{{0,4}}?[\s,(-]+every\s+", re.IGNORECASE)
_PERIODS = {"h": "h", "d": "d", "n": "d", "w": "wk", "m": "mo", "y": "y"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A number in a text, with its comparison and unit."""

    #: in base units: 5 mg is 0.005
    value: Decimal
    #: ``<``, ``≤``, ``>``, ``≥`` or ``≠``; empty: none
    comparison: str = ""
    #: base units of its unit, the counted one first: ``("g", "d", "g")`` for mg/kg/day; empty: no known unit
    unit: tuple[str, ...] = ()
    #: the number in its own unit
    size: Decimal = field(default=Decimal(0), compare=False)
    #: first code point, its comparison included
    start: int = field(default=0, compare=False)
    #: first code point of the number, its sign included
    number: int = field(default=0, compare=False)
    #: one past the number without its unit
    number_end: int = field(default=0, compare=False)
    #: one past the last code point, unit and comparison included
    end: int = field(default=0, compare=False)
    #: how often it is given by the words behind it: ``("d",)`` for "5 mg once daily"; empty: they do not say
    given: tuple[str, ...] = field(default=(), compare=False)

    def says(self, other: Figure) -> bool:
        """Return whether it states the same amount as ``other``, as far as both are explicit.

        A duration may lack its unit, and a rate its time: not where it is given at other times.
        """
        if self.value != other.value or self.comparison != other.comparison:
            return False
        if not self.unit or not other.unit:
            return not _essential(self.unit) and not _essential(other.unit)
        if self.unit[0] != other.unit[0]:
            return False
        (by, per), (other_by, other_per) = _divisors(self.unit), _divisors(other.unit)
        if by != other_by:
            return False
        mine, theirs = tuple(per) or self.given, tuple(other_per) or other.given
        return not mine or not theirs or mine == theirs


@lru_cache(maxsize=256)
def figures(text: str) -> tuple[Figure, ...]:
    """Return the numbers of a text, in digits or words, in order; not those of names such as ``IL-6``."""
    text = text if text.isascii() else text.translate(_FOLD)
    lower = text.lower()
    numbers: list[Figure] = []
    for numeral in sorted(numerals_of(lower), key=lambda one: one.start):
        if not numbers or numeral.start >= numbers[-1].end:
            numbers.append(_figure(text, numeral))
    if not numbers:
        return ()
    _share_units(text, numbers)
    _share_over_brackets(text, numbers)
    for i, figure in enumerate(numbers):
        if figure.unit and TIMES.isdisjoint(figure.unit):
            given = _given(text, figure, numbers[i + 1] if i + 1 < len(numbers) else None)
            numbers[i] = replace(figure, given=given)
    compared = before(lower)
    for i, figure in enumerate(numbers):
        if figure.number in compared:
            sign, start = compared[figure.number]
            last = numbers[i - 1].end if i else 0
            numbers[i] = replace(figure, comparison=sign, start=max(start, last))
    for i in range(len(numbers) - 1):
        # a blood pressure: "≥ 140/90" is "140/90 or above"
        if text[numbers[i].number_end : numbers[i + 1].number] == "/":
            sign = numbers[i].comparison or numbers[i + 1].comparison
            numbers[i : i + 2] = [replace(one, comparison=sign) for one in numbers[i : i + 2]]
    return tuple(numbers)


def lacking(claim: str, source: str) -> tuple[Figure, ...]:
    """Return the figures of a claim that a source does not state.

    A number without any words, as in a table's cell, has no unit that could differ.
    """
    stated = figures(claim)
    known = figures(source) if stated else ()
    if len(stated) == 1 and not stated[0].unit and not blanked(claim).strip():
        known += tuple(replace(one, value=one.size, unit=()) for one in known if one.unit)
    return tuple(one for one in stated if not any(one.says(other) for other in known))


def any_stated(claim: str, source: str) -> bool:
    """Return whether a source states any figure of a claim."""
    return len(lacking(claim, source)) < len(figures(claim))


def spelt(claim: str, source: str) -> str:
    """Return a claim with its figures spelt as a source spells them: ``≥65 years`` as "65 years or older"."""
    # not those of a list, whose unit stands behind its last
    whole = [one for one in reversed(figures(source)) if one.end > one.number_end or not one.unit]
    known = {one: source[one.start : one.end] for one in whole}
    parts: list[str] = []
    last = 0
    for one in figures(claim):
        if one in known:
            parts += (claim[last : one.start], known[one])
            last = one.end
    return "".join((*parts, claim[last:]))


@lru_cache(maxsize=256)
def blanked(text: str) -> str:
    """Return a text with spaces in place of its figures, their comparisons and units."""
    return _without(text, [(one.start, one.end) for one in figures(text)])


@lru_cache(maxsize=256)
def uncompared(text: str) -> str:
    """Return a text with spaces in place of the comparisons before its figures: "no more than 5 mg" denies nothing."""
    return _without(text, [(one.start, one.number) for one in figures(text)])


@lru_cache(maxsize=256)
def names(text: str) -> frozenset[str]:
    """Return the words of letters and digits, such as ``IL-6`` and ``BMS-986165``, lower case, singular, without hyphens."""
    # "B(12)", as MEDLINE writes it
    text = _LOWERED.sub(r"\1", text.translate(_GREEK))
    bare = (re.sub(r"[-‐‑–]", "", found[0]) for found in _NAME.finditer(blanked(text)))
    return frozenset(_PLURAL.sub("", one).lower() for one in bare)


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    last = 0
    for start, end in spans:
        parts += (text[last:start], " " * (end - start))
        last = end
    return "".join((*parts, text[last:]))


def _figure(text: str, numeral: Numeral) -> Figure:
    """Return a number with its sign, its unit and the comparison behind it."""
    comparison, end = after(text, numeral.end)
    measure = frequency(text, end) if numeral.often else unit(text, end, digits=numeral.digits)
    if raised := _RAISED.match(text, end):
        # a power of another number than ten, or a reference: it equals itself alone
        measure = Unit(parts=(raised[0],), power=0, end=raised.end())
    elif currency := _CURRENCY.search(text, max(0, numeral.start - 2), numeral.start):
        by = measure.parts[1:] if measure and measure.parts[0] == "1" else ()
        measure = Unit(
            parts=(currency[0][0], *by), power=0, end=measure.end if measure and by else end
        )
    if measure:
        end = measure.end
    if not comparison:
        comparison, end = after(text, end)
    sign = _SIGN.search(text, max(0, numeral.start - 10), numeral.start)
    value = numeral.value.copy_negate() if sign else numeral.value
    start = sign.start(sign.lastgroup or 0) if sign else numeral.start
    return Figure(
        value=shifted(value, measure.power) if measure else value,
        comparison=comparison,
        unit=measure.parts if measure else (),
        size=value,
        start=start,
        number=start,
        number_end=numeral.end,
        end=end,
    )


def _share_units(text: str, numbers: list[Figure]) -> None:
    """Give the unit of a list's last number to all: "5, 10 and 20 mg"; in "0.48, 95% CI" it is none of the first."""
    listed = False
    for i in range(len(numbers) - 2, -1, -1):
        figure, following = numbers[i], numbers[i + 1]
        between = text[figure.end : following.start]
        own = not listed
        listed = False
        if figure.unit or not following.unit or not _LISTED.fullmatch(between):
            continue
        if following.unit == ("%",) and own and between.strip() == ",":
            continue
        if "/" in between and following.unit[0].startswith("person"):
            continue
        power = _exponent(following.value) - _exponent(following.size)
        numbers[i] = replace(figure, value=shifted(figure.value, power), unit=following.unit)
        listed = True


def _share_over_brackets(text: str, numbers: list[Figure]) -> None:
    """Give a number the unit behind the bracket of its spread: "132 (15) mm Hg"; and its limits its own: "5 mg (95% CI 3 to 7)"."""
    for i, figure in enumerate(numbers):
        bracket = _SPREAD.match(text, figure.end)
        if bracket is None:
            continue
        start, end = bracket.span("inner")
        inner = [k for k in range(i + 1, len(numbers)) if numbers[k].end <= end]
        if not inner or numbers[inner[0]].start < start:
            continue
        spans = [(numbers[k].start - start, numbers[k].end - start) for k in inner]
        words = _SPREADS.findall(said := _without(bracket["inner"].lower(), spans))
        if _SPREADS.sub("", said).strip(_AROUND):
            continue
        bare = [k for k in inner if not numbers[k].unit]
        if not figure.unit:
            found = None if bracket["between"] else unit(text, bracket.end(), digits=False)
            power, parts = (0, ()) if found is None else (found.power, found.parts)
            bare.append(i)
        elif {"ci", "confidence"}.isdisjoint(words) or not _within(
            figure, [numbers[k] for k in bare]
        ):
            continue
        else:
            power, parts = _exponent(figure.value) - _exponent(figure.size), figure.unit
        for k in bare if parts else ():
            value = shifted(numbers[k].value, power)
            numbers[k] = replace(numbers[k], value=value, unit=parts)


def _given(text: str, dose: Figure, following: Figure | None) -> tuple[str, ...]:
    """Return how often a dose is given, by the words behind it."""
    if following is not None:
        between = text[dose.end : following.start]
        if following.unit[:1] == ("fold",) and _BEFORE_OFTEN.fullmatch(between):
            often = () if following.value == 1 else (f"{following.value:f}",)
            return (*often, *following.unit[1:])
        if len(following.unit) == 1 and _BEFORE_EVERY.fullmatch(between):
            return _every(following.size, following.unit[0])
    found = _REGULARLY.match(text, dose.end)
    if found is None or (following is not None and found.end() > following.start):
        return ()
    if found["size"]:
        return _every(Decimal(found["size"]), _PERIODS[found["short"].lower()])
    if found["other"]:
        rank = found["rank"] and found["rank"].lower()
        return _every(Decimal(_RANKS[rank]), _PERIODS[found["other"][0].lower()])
    return (_PERIODS[(found["rate"] or found["time"])[0].lower()],)


def _every(size: Decimal, period: str) -> tuple[str, ...]:
    """Return an interval as what is given within a period, if it is one: every 8 hours is 3 times a day."""
    if size == 1:
        return (period,)
    if period == "d" and not size % 7:
        return _every(size / 7, "wk")
    if period == "mo" and size and not 12 % size:
        return ("y",) if size == 12 else (f"{12 / size:f}", "y")
    if period == "h" and size and not 24 % size:
        return ("d",) if size == 24 else (f"{24 / size:f}", "d")
    return (f"every {size:f} {period}",)


def _within(figure: Figure, limits: Sequence[Figure]) -> bool:
    sizes = [one.size for one in limits]
    return len(sizes) > 1 and min(sizes) <= figure.size <= max(sizes)


def _exponent(value: Decimal) -> int:
    return int(value.as_tuple().exponent)


def _essential(parts: tuple[str, ...]) -> bool:
    """Return whether a unit may not be left out: that of a duration may, and the time of a count."""
    return bool(parts) and not (
        parts[0] in TIMES or (parts[0] == "1" and TIMES.issuperset(parts[1:]))
    )


def _divisors(parts: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return what a unit is counted by, but for times, and times."""
    return [one for one in parts[1:] if one not in TIMES], [
        one for one in parts[1:] if one in TIMES
    ]
