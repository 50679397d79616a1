"""Figures: the numbers of a text with comparison, sign and unit, normalised so that texts can be compared.

``1,204``, ``1 204`` and ``1204`` are equal, as are ``5 mg`` and ``5-mg``, and ``< 0.05`` and ``below 0.05``; ``15 mg``
and ``15 mg/kg`` differ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import lru_cache

_UNITS = {
    name: unit
    for unit, names in {
        "%": "% percent",
        "kg": "kg kilogram kilograms kilo kilos",
        "g": "g gram grams gm",
        "mg": "mg milligram milligrams mgs",
        "ug": "µg μg ug mcg microgram micrograms",
        "ng": "ng nanogram nanograms",
        "l": "l liter liters litre litres",
        "dl": "dl deciliter deciliters decilitre decilitres",
        "ml": "ml milliliter milliliters millilitre millilitres cc",
        "mol": "mol",
        "mmol": "mmol",
        "umol": "µmol μmol umol",
        "nmol": "nmol",
        "iu": "iu units unit u",
        "meq": "meq",
        "mmhg": "mmhg",
        "m2": "m2 m²",
        "m": "m meter meters metre metres",
        "cm": "cm centimeter centimeters centimetre centimetres",
        "mm": "mm millimeter millimeters millimetre millimetres",
        "kcal": "kcal kilocalories",
        "gy": "gy",
        "hz": "hz",
        "fold": "fold times",
        "s": "s sec second seconds",
        "min": "min mins minute minutes",
        "h": "h hr hrs hour hours hourly",
        "d": "d day days daily",
        "wk": "wk wks week weeks weekly",
        "mo": "mo month months monthly",
        "y": "y yr yrs year years yearly",
    }.items()
    for name in names.split()
}
#: Units that may be omitted: "aged 40 to 75" is "aged 40 to 75 years".
_TIMES = frozenset({"s", "min", "h", "d", "wk", "mo", "y"})
_COUNTED = (
    ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    ("eighteen", "nineteen", "twenty"),
)
_TENS = ("thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred")
_WORDS = {name: Decimal(n) for n, name in enumerate(name for row in _COUNTED for name in row)} | {
    name: Decimal(10 * tens) for tens, name in enumerate(_TENS, 3)
}
_LESS = r"(?:less|fewer|lower|smaller|shorter|younger)\s+than|below"
_MORE = r"(?:more|greater|higher|larger|longer|older)\s+than|above|exceeding"
_COMPARISONS = (
    (
        "≤",
        re.compile(
            rf"(?:[≤≦⩽]|<\s?=|\b(?:at\s+most|up\s+to|no[tr]?\s+(?:{_MORE})))\s*\Z", re.IGNORECASE
        ),
    ),
    (
        "≥",
        re.compile(rf"(?:[≥≧⩾]|>\s?=|\b(?:at\s+least|no[tr]?\s+(?:{_LESS})))\s*\Z", re.IGNORECASE),
    ),
    ("<", re.compile(rf"(?:<|\b(?:{_LESS}))\s*\Z", re.IGNORECASE)),
    (">", re.compile(rf"(?:>|\b(?:{_MORE}))\s*\Z", re.IGNORECASE)),
)
#: Code points before a number that are searched for its comparison.
_BEFORE = 24
#: Numbers, but no digits of names: IL-6, CD4, H1N1, COVID-19.
_NUMBER = re.compile(
    r"(?<![^\W_])(?<![^\W\d_][-‐‑–])(?<!\d[.,·:])"
    r"(?:\d{1,3}(?:[,\u202f\u2009 ]\d{3})+(?![\d])|\d+)?(?:(?<=\d)[.·]\d+|(?<!\d)[.·]\d+|(?<=\d))"
)
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_UNIT_WORD = r"[^\W\d_]+[2²]?"
_UNIT = re.compile(
    rf"[\s-]{{0,2}}(%|per\s?cent\b|{_UNIT_WORD})"
    rf"((?:\s?/\s?|\s+per\s+|\s+an?\s+){_UNIT_WORD})?"
    rf"((?:\s?/\s?|\s+per\s+|\s+an?\s+){_UNIT_WORD}|\s+(?:daily|weekly|hourly|monthly)\b)?"
)
_EXPONENT = re.compile(r"[⁻⁺⁰¹²³⁴-⁹]+")
_LISTED = re.compile(
    r"\s*(?:,|and|or|to|[-–—/±]|\+/-|vs\.?|versus|,\s*(?:and|or))\s*", re.IGNORECASE
)
_NAME = re.compile(r"(?<!\w)[^\W\d_]+[-‐‑–]?\d[^\W_]*(?:[-/][^\W_]+)*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A number in a text, with its comparison and unit."""

    value: Decimal
    #: ``<``, ``≤``, ``>`` or ``≥``; empty: none
    comparison: str = ""
    #: parts of its unit, the counted one first: ``("mg", "kg", "d")``; empty: no known unit
    unit: tuple[str, ...] = ()

    def says(self, other: Figure) -> bool:
        """Return whether it states the same amount as ``other``, as far as both are explicit.

        A duration may lack its unit, and a rate its time.
        """
        if (self.value, self.comparison) != (other.value, other.comparison):
            return False
        if not self.unit or not other.unit:
            return not _essential(self.unit) and not _essential(other.unit)
        if self.unit[0] != other.unit[0]:
            return False
        mine, others = (_parts(figure.unit[1:]) for figure in (self, other))
        return mine[0] == others[0] and (not mine[1] or not others[1] or mine[1] == others[1])


@lru_cache(maxsize=256)
def figures(text: str) -> tuple[Figure, ...]:
    """Return the numbers of a text, in digits or words, in order; not those of names such as ``IL-6``."""
    spans = sorted(
        [(m.start(), m.end()) for m in _NUMBER.finditer(text) if m[0]]
        + [(m.start(), m.end()) for m in _WORD.finditer(text)]
    )
    found = [_figure(text, start, end) for start, end in spans]
    # in "5, 10 and 20 mg" all have the unit
    for i in range(len(found) - 2, -1, -1):
        between = text[spans[i][1] : spans[i + 1][0]]
        if not found[i].unit and found[i + 1].unit and _LISTED.fullmatch(between):
            found[i] = replace(found[i], unit=found[i + 1].unit)
    return tuple(found)


@lru_cache(maxsize=256)
def names(text: str) -> frozenset[str]:
    """Return the words of letters and digits, such as ``IL-6`` and ``BMS-986165``, lower case, without hyphens."""
    return frozenset(re.sub(r"[-‐‑–]", "", m[0]).lower() for m in _NAME.finditer(text))


def _figure(text: str, start: int, end: int) -> Figure:
    value = _value(text[start:end])
    before = text[max(0, start - _BEFORE) : start]
    if before[-1:] in ("-", "−", "–") and not before[-2:-1].isalnum() and before[-2:-1] != ")":
        value, before = -value, before[:-1]
    comparison = next((sign for sign, pattern in _COMPARISONS if pattern.search(before)), "")
    return Figure(value=value, comparison=comparison, unit=_unit(text, end))


def _value(number: str) -> Decimal:
    word = _WORDS.get(number.lower())
    if word is not None:
        return word
    try:
        return Decimal(re.sub(r"[,\s]", "", number).replace("·", "."))
    except InvalidOperation:  # digits of other scripts, powers
        return Decimal("NaN")


def _unit(text: str, at: int) -> tuple[str, ...]:
    if exponent := _EXPONENT.match(text, at):
        return (exponent[0],)
    match = _UNIT.match(text, at)
    if match is None:
        return ()
    found = []
    for part in match.groups():
        if part is None:
            continue
        name = re.sub(r"\A(?:\s?/\s?|\s+(?:per|an?)\s+)", "", part).strip()
        unit = "%" if name.startswith("per") else _UNITS.get(name) or _UNITS.get(name.lower())
        if unit is None:
            break
        found.append(unit)
    return tuple(found)


def _essential(unit: tuple[str, ...]) -> bool:
    return bool(unit) and unit[0] not in _TIMES


def _parts(denominators: tuple[str, ...]) -> tuple[set[str], set[str]]:
    """Divide denominators into those of body or volume and those of time."""
    of = set(denominators)
    return of - _TIMES, of & _TIMES
