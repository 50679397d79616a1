"""Numerals of a text, in digits and in words: ``1,204``, ``1 204``, ``0·48``, ``1.5 × 10⁹``, "two hundred and six"."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

#: pattern of a count in digits, of a text that is not folded
COUNT = r"(?<![\d.,])(?:[1-9]\d{0,2}(?:[, \u00a0\u2009\u202f]\d{3})+|\d+)(?!\d|[.,]\d)"

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {name: n for n, name in enumerate(_ONES.split())}
_WORDS |= {name: 10 * n for n, name in enumerate(_TENS.split(), 2)}
_SCALES = {
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_SCALE = "thousand|million|billion|trillion"
#: pattern of a number in a word below a hundred
ANY = "|".join(sorted(_WORDS, key=len, reverse=True))
_SMALL = rf"(?:(?:{_TENS.replace(' ', '|')})(?:[ -](?:{'|'.join(_ONES.split()[1:10])})(?![^\W_]))?|{ANY})"
#: "one hundred and two hundred" are two numbers
_AND = rf" and (?!{_SMALL}[ -](?:hundred|{_SCALE}))"
_GROUP = rf"(?:(?:{_SMALL}[ -])?hundred(?:(?:[ -]|{_AND}){_SMALL})?|{_SMALL})"
#: pattern of a count in words, of a text that is folded
WORDED = (
    # the letters alone make it faster
    rf"\b(?=[befhmnostz])(?:(?:{_GROUP}[ -])?(?:{_SCALE})(?:{_AND}{_GROUP}|[ -]{_GROUP}(?:[ -](?:{_SCALE}))?)*|{_GROUP})(?=fold|(?![^\W_]))"
)
_WORD = re.compile(WORDED)

_PLAIN = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺−–", "0123456789-+--")
_NUMBER = re.compile(
    # no digits of names: IL-6, CD4, H1N1, COVID-19
    r"(?<![^\W_])(?<![^\W\d_][-–])(?:"
    r"(?:(?P<of>\d{1,3}(?:,\d{3})++(?:[.·]\d++)?|\d++(?:[.·]\d++)?|[.·]\d++)\s?[×x*·]\s?)?10"
    r"(?P<power>\s?\^\s?\(?[-−–+]?\d{1,3}\)?|[⁻⁺]?[⁰¹²³⁴-⁹]{1,3}"
    # as MEDLINE writes it: "3 x 10(9)", "10(9)/l"; "3 x 10-12" is a range, which "3 x 10-2" cannot be
    r"|(?<=[×x*·]10)\([-−–+]?\d{1,2}\)|(?<=[×x*·]\s10)\([-−–+]?\d{1,2}\)|\([-−–+]?\d{1,2}\)(?=\s?/|\s(?:cell|cop|cfu|pfu))"
    r"|(?:(?<=[×x*·]10)|(?<=[×x*·]\s10))(?:−\d{1,3}|[-–][1-9](?!\d)))"
    r"|(?P<e>\d++(?:[.·]\d++)?)e(?P<ten>[-−–+]?\d{1,3})(?![^\W_])"
    r"|(?P<number>"
    r"[1-9]\d{0,2}(?:\.\d{3}){2,}(?![.\d])"
    # "2 500-mg tablets" are two numbers
    r"|[1-9]\d{0,2}(?:(?:,\d{3})+|(?: (?:0\d\d|[1-9]\d\d(?!-[^\W\d_])))+|(?:'\d{3})+)(?!\d)(?:[.·]\d++)?"
    # a decimal comma
    r"|0,\d++(?!,)|\d++,\d{1,2}(?![\d,])"
    r"|\d*+[.·]\d++|\d++)"
    r"(?:\s?(?P<part>[½¼¾⅐-⅞]))?"
    rf"(?:[ -](?P<scale>hundred|{_SCALE})(?![^\W_]))?"
    r"|(?P<vulgar>[½¼¾⅐-⅞]))"
)
#: "once daily", "twice a week", "5 mg b.i.d.": how often, not "once" as a time or "twice the risk"
_OFTEN = re.compile(
    r"\b(?P<times>once|twice|thrice)(?=[\s-](?:dai|night|hour|week|month|year)ly(?![^\W_])"
    r"|\s(?:an?|per|each|every)\s(?:hour|day|night|week|month|year)(?![^\W_]))"
    r"|(?<![^\W_.])(?P<latin>q\.?d|b\.?i\.?d|t\.?i\.?d|q\.?i\.?d)(?![^\W_])"
)
_TIMES = {"once": 1, "twice": 2, "thrice": 3, "qd": 1, "bid": 2, "tid": 3, "qid": 4}
_COMMA = re.compile(r"0,\d+|\d+,\d{1,2}")


#: what "one" counts stands behind it, or another number, or a unit's sign
_COUNTED = re.compile(
    r"[\s-]+(?!(?:of|another|that|which|who|whose|is|are|was|were|has|have|had|can|may|might|must|should|could|would|will|did|"
    r"does|do|not|in(?!\s+(?:\d|two|three|four|five|six|seven|eight|nine|ten))|on|with|from|by|for|at|than|as|when|where|after|before|under)\b)[^\W_]|\s*[%°]|\s*/"
)
#: code points before "one" that are read
_BEFORE = 40
_NOBODY = re.compile(r"\b(?:no|any|every|each|another|other|some|this|that)[\s-]+$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Numeral:
    """A number in a text, without a sign."""

    value: Decimal
    start: int
    #: one past its last code point
    end: int
    #: whether it is in digits
    digits: bool
    #: whether it says how often, with its unit
    often: bool = False


def numerals_of(text: str) -> Iterator[Numeral]:
    """Yield the numbers of a folded text in lower case."""
    for match in _NUMBER.finditer(text):
        yield Numeral(value=_value(match), start=match.start(), end=match.end(), digits=True)
    for match in _OFTEN.finditer(text):
        times = _TIMES[match[0].replace(".", "")]
        yield Numeral(
            value=Decimal(times), start=match.start(), end=match.end(), digits=False, often=True
        )
    for match in _WORD.finditer(text):
        if match[0] == "one" and _is_pronoun(text, match):
            continue
        total = group = 0
        for word in re.findall("[a-z]+", match[0]):
            size = _SCALES.get(word, 1)
            if size > 100:
                total, group = total + size * (group or 1), 0
            else:
                group = size * (group or 1) if size == 100 else group + _WORDS.get(word, 0)
        yield Numeral(
            value=Decimal(total + group), start=match.start(), end=match.end(), digits=False
        )


def _is_pronoun(text: str, one: re.Match[str]) -> bool:
    """Return whether "one" stands for a thing or a person: "than a conventional one", "one of them", "no one died"."""
    start = one.start()
    nobody = _NOBODY.search(text, max(0, start - _BEFORE), start)
    return nobody is not None or _COUNTED.match(text, one.end()) is None


def shifted(value: Decimal, power: int) -> Decimal:
    """Return a value times a power of ten, which is never rounded."""
    sign, digits, exponent = value.as_tuple()
    return Decimal((sign, digits, int(exponent) + power))


def _value(match: re.Match[str]) -> Decimal:
    power = match["power"] or match["ten"]
    if power is not None:
        exponent = int("".join(re.findall(r"[-+\d]", power.translate(_PLAIN))))
        return shifted(_decimal((match["of"] or match["e"] or "1").replace(",", "")), exponent)
    written = match["number"] or "0"
    if written.count(".") > 1:
        written = written.replace(".", "")
    value = _decimal(re.sub(r"[, ']", "." if _COMMA.fullmatch(written) else "", written))
    if part := match["part"] or match["vulgar"]:
        value += Decimal(unicodedata.numeric(part))
    return value * _SCALES.get(match["scale"] or "", 1)


def _decimal(written: str) -> Decimal:
    return Decimal(written.replace("·", "."))
