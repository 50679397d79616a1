"""Units of figures in base units: a metric prefix is a power of ten of the value, and what is counted by is sorted.

``mm Hg`` is ``mmHg``, ``mmol·L⁻¹`` is ``mmol/L``, 1,000 mg are 1 g. Units of time are not converted into each other.
Letters without an entry are a unit of their own.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from posology.text._lexicon import words

#: Units that may be omitted: "aged 40 to 75" is "aged 40 to 75 years".
TIMES = frozenset({"s", "min", "h", "d", "wk", "mo", "y"})

_PREFIXES = {
    "": 0,
    "k": 3,
    "d": -1,
    "c": -2,
    "m": -3,
    "µ": -6,
    "u": -6,
    "mc": -6,
    "n": -9,
    "p": -12,
    "f": -15,
}
_LARGE = {"M": 6, "G": 9, "h": 2}
_SPELT = {
    "": 0,
    "kilo": 3,
    "deci": -1,
    "centi": -2,
    "milli": -3,
    "micro": -6,
    "nano": -9,
    "pico": -12,
    "femto": -15,
}
_SPELT |= {"mega": 6, "giga": 9}
#: base unit: symbols, and names that may have a spelt prefix
_METRIC = {
    "g": ("g", "gram gm"),
    "l": ("l L", "liter"),
    "m": ("m", "meter"),
    "mol": ("mol", "mole"),
    "mol/l": ("M", "molar"),
    "iu": ("IU U iu", "unit"),
    "eq": ("eq Eq", "equivalent"),
    "osm": ("osm Osm osmol Osmol", "osmole"),
    "s": ("s sec", "second"),
}
#: those with large prefixes, too
_PHYSICAL = {
    "pa": ("Pa", "pascal"),
    "j": ("J", "joule"),
    "cal": ("cal", "calorie"),
    "hz": ("Hz hz", "hertz"),
    "gy": ("Gy gy", "gray"),
    "sv": ("Sv", "sievert"),
    "bq": ("Bq", "becquerel"),
    "ci": ("Ci", "curie"),
    "v": ("V", "volt"),
    "w": ("W", "watt"),
    "da": ("Da", "dalton"),
    "bp": ("bp", "basepair"),
}
#: base unit, power of ten: what else is written for it, of several words without their spaces
_OTHERS = {
    ("%", 0): "% percent",
    ("points", 0): "percentagepoint",
    ("‰", 0): "‰",
    ("min", 0): "min minute",
    ("h", 0): "h hr hour",
    ("d", 0): "d day",
    ("wk", 0): "wk week",
    ("mo", 0): "mo mth month",
    ("y", 0): "y yr year",
    ("mmhg", 0): "mmhg mmofmercury millimeterofmercury",
    ("cmh2o", 0): "cmh2o cmh₂o cmofwater centimeterofwater",
    ("°c", 0): "°c degreec degreecelsius ℃ C",
    ("°f", 0): "°f degreef degreefahrenheit ℉ F",
    ("°", 0): "° degree",
    ("k", 0): "K kelvin",
    ("dpt", 0): "D diopter dioptre",
    ("db", 0): "dB decibel",
    ("log", 0): "log log10 log₁₀",
    ("fold", 0): "fold times",
    ("iu", 0): "internationalunit u",
    ("1/min", 0): "bpm",
    ("g", 3): "kilo",
    ("l", -3): "cc",
    ("l", -6): "cubicmillimeter",
    ("m", -6): "micron",
    ("m2", 0): "squaremeter",
    ("m2", -4): "squarecentimeter",
    ("cal", 3): "Cal",
    ("cfu", 0): "CFU cfu",
    ("pfu", 0): "PFU pfu",
    ("hu", 0): "HU",
    ("lb", 0): "lb pound",
    ("inch", 0): "inch inche",
    ("$", 0): "dollar USD",
    ("€", 0): "euro EUR",
}
#: Of these letters, capitals mean another thing: MM, MS, PM.
_CASED = words("mm ms ns nm pm fm mo um bp da")


def _table() -> dict[str, tuple[str, int]]:
    table: dict[str, tuple[str, int]] = {}
    for rows, prefixes in ((_METRIC, _PREFIXES), (_PHYSICAL, _PREFIXES | _LARGE)):
        for base, (symbols, names) in rows.items():
            for written, before in ((symbols, prefixes), (names, _SPELT)):
                for one in written.split():
                    table |= {f"{prefix}{one}": (base, power) for prefix, power in before.items()}
    table["MU"] = table["MIU"] = ("iu", 6)
    for known, names in _OTHERS.items():
        table |= dict.fromkeys(names.split(), known)
    for who in ("person", "patient", "woman"):
        table |= {f"{who}{time}": (f"person-{time}", 0) for time in ("year", "month", "day")}
    return table


_UNITS = _table()
#: units and nouns of several words; without spaces and hyphens they stand in the table, or are a unit of their own
_SEVERAL = (
    r"mm\s?/?Hg|(?:mm|millimet(?:er|re)s?)\sof\smercury|cm\s?H[2₂]O|(?:cm|centimet(?:er|re)s?)\sof\swater|per\s?cent"
    r"|percentage[\s-]points?|international\sunits?|(?:square|cubic)\s(?:milli|centi)?met(?:er|re)s?|log(?:10|₁₀)"
    r"|(?:°|degrees?)\s?(?:[CF]|Celsius|Fahrenheit)|(?:person|patient|woman)[\s-](?:years?|months?|days?)"
)
#: not ² and ½, which are letters to regular expressions
_LETTERS = r"[^\W\d_²³¹⁰-₉¼-¾⅐-⅞]+"
_FACTOR = re.compile(rf"(?:{_SEVERAL})(?![^\W_])|{_LETTERS}|[%‰°]", re.IGNORECASE)
_GAP = re.compile(r"(?:[ \t-]|\n(?!\n)){0,2}")
_EXPONENT = re.compile(
    r"(?:\^?(?P<sign>[-−–⁻])?(?P<size>[123¹²³])|\^?\((?P<in>[-−–]?)(?P<of>[123])\))(?![\d.,]\d|\d)"
)
_BODY = re.compile(r"\s(?:of\s)?(?:body[\s-]?(?:weight|mass)|bw)(?![^\W_])", re.IGNORECASE)
#: not "every second day"
_PER = re.compile(
    r"\s?/\s?(?P<bracket>\()?|\s(?:per|(?P<article>an?|each|every))\s(?!second\s+(?:hour|day|night|week|month|year))",
    re.IGNORECASE,
)
#: a full stop with a space behind it may end a sentence: only "7.5 mg. ml-1" goes on
_PRODUCT = re.compile(r"\s?(?P<joined>[·*×]|\.(?!\s))\s?|\s?\.\s|[\s-]")
_RATE = re.compile(r"[\s-](?:dai|night|hour|week|month|year)ly(?![^\W_])", re.IGNORECASE)
_RATES = {"dai": "d", "night": "d", "hour": "h", "week": "wk", "month": "mo", "year": "y"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """A unit in a text."""

    #: what is counted, then what it is counted by: ``("g", "d", "g")`` for mg/kg/day
    parts: tuple[str, ...]
    #: power of ten of the value in base units: -6 for mg/kg
    power: int
    #: one past its last code point
    end: int


def unit(text: str, at: int, *, digits: bool = True) -> Unit | None:
    """Return the unit of the number that ends at ``at``; ``None``: none follows.

    Args:
        text: a folded text.
        at: one past a number.
        digits: whether letters right behind the number are its unit, whatever they are.
    """
    if _PER.match(text, at) and len((rated := _rest(text, "1", 0, at)).parts) > 1:
        return rated
    gap = _GAP.match(text, at)
    start = at if gap is None else gap.end()
    word = _FACTOR.match(text, start)
    if word is None:
        rated = _rest(text, "1", 0, at)
        return rated if len(rated.parts) > 1 else None
    base, power, end = _read(word)
    if base is None:
        # "12 seizures per month" counts them; other letters are a unit of their own
        noun = word[0].islower() and len(word[0]) > 3
        rated = _rest(text, "1" if noun else word[0], 0, end)
        if len(rated.parts) > 1:
            return rated
        glued = digits and start == at and not re.fullmatch("st|nd|rd|th", word[0])
        # "5P" is "5p", but "16S" are no seconds
        return Unit(parts=(f"?{word[0].lower()}",), power=0, end=end) if glued else None
    exponent, raised = _power(text, end)
    if exponent == -1 and (text[end] != "-" or base in TIMES):
        # "72 min-1"; "500 mg-1 g" is a range
        return _rest(text, f"1/{base}", -power, raised)
    base, power, end = _raised(base, power, exponent, end, raised)
    return _rest(text, base, power, end)


def frequency(text: str, at: int) -> Unit:
    """Return the unit of a word that says how often: of "twice daily" that of "2 times daily"; of "b.i.d." the same."""
    found = _rest(text, "fold", 0, at)
    return found if len(found.parts) > 1 else Unit(parts=("fold", "d"), power=0, end=at)


def _rest(text: str, base: str, power: int, end: int) -> Unit:
    """Return a unit with all that follows its first part."""
    counted, *by = base.split("/")
    counts = [counted]
    inside = False
    while (found := _next(text, end, inside=inside, known=counted in _BASES)) is not None:
        base, more, end, inverse, inside = found
        if inverse:
            by.append(base)
            power -= more
        else:
            counts.append(base)
            power += more
    if inside and text[end : end + 1] == ")":
        end += 1
    if rate := _RATE.match(text, end):
        by.append(_RATES[rate[0][1:-2].lower()])
        end = rate.end()
    return Unit(parts=("·".join(sorted(counts)), *sorted(by)), power=power, end=end)


def _next(
    text: str, at: int, *, inside: bool, known: bool
) -> tuple[str, int, int, bool, bool] | None:
    """Return the next part of a unit: base, power, end, whether it is divided by, whether a bracket is open."""
    per = _PER.match(text, at)
    joint = per or _PRODUCT.match(text, at)
    word = _FACTOR.match(text, joint.end()) if joint else None
    if joint is None or word is None:
        return None
    base, power, end = _read(word)
    exponent, raised = _power(text, end)
    if per is not None:
        if base is None:
            # "mg/tablet" is not mg, and "5 events/person" are 5 events
            base = word[0].lower().removesuffix("s") if known and not per["article"] else None
        elif per["article"] and base not in TIMES:
            return None
        if base is None or exponent < 0:
            return None
        base, power, end = _raised(base, power, exponent, end, raised)
        if body := _BODY.match(text, end):
            end = body.end()
        return base, power, end, True, inside or per["bracket"] is not None
    if base is None:
        return None
    if exponent < 0:
        base, power, _ = _raised(base, power, -exponent, end, raised)
        return base, power, raised, True, inside
    if not joint["joined"]:
        return None
    return base, power, end, inside, inside


def _read(word: re.Match[str]) -> tuple[str | None, int, int]:
    """Return the base unit, the power of ten and the end of a word; no base unit: an unknown one."""
    written = word[0]
    known = _UNITS.get(written)
    if known is None:
        plain = re.sub(r"[\s/-]", "", unicodedata.normalize("NFKC", written).replace("μ", "µ"))
        plain = plain.replace("metre", "meter").replace("litre", "liter").replace("gramme", "gram")
        plain = plain.replace("degrees", "degree").replace("metersof", "meterof")
        lower = plain.lower()
        for one in (plain, lower if len(plain) > 1 and lower not in _CASED else plain):
            single = one.removesuffix("s") if len(one) > 2 else one
            known = known or _UNITS.get(one) or _UNITS.get(single)
    return (None, 0, word.end()) if known is None else (*known, word.end())


def _power(text: str, at: int) -> tuple[int, int]:
    """Return the exponent at ``at`` and its end; 1 and ``at``: there is none."""
    found = _EXPONENT.match(text, at)
    if found is None:
        return 1, at
    size = unicodedata.digit(found["size"] or found["of"])
    return (-size if found["sign"] or found["in"] else size), found.end()


def _raised(base: str, power: int, exponent: int, end: int, raised: int) -> tuple[str, int, int]:
    """Return m² and m³, which is 1,000 l; another raised digit is that of a reference."""
    if base == "m" and exponent == 2:
        return "m2", 2 * power, raised
    if base == "m" and exponent == 3:
        return "l", 3 * power + 3, raised
    return base, power, raised if exponent == 1 else end


_BASES = {base.partition("/")[0] for base, _ in _UNITS.values()} - {"1"}
