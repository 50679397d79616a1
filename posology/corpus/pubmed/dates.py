"""When a record was published, from PubMed's dates in all their forms.

A journal's ``PubDate`` is a year with a month, in digits or in words, and a day, or with a season, or words
of any kind in ``MedlineDate``: "1998 Dec-1999 Jan", "2000 Spring", "1975-1976".
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from posology.corpus.pubmed.words import plain

if TYPE_CHECKING:
    from lxml.etree import _Element

#: years outside of these are taken for slips: the oldest journals are of the seventeenth century
FIRST_YEAR, LAST_YEAR = 1600, 2100

_MONTHS = {
    name: number
    for number in range(1, 13)
    for name in (calendar.month_name[number].lower(), calendar.month_abbr[number].lower())
} | {"sept": 9}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_YEAR = re.compile(r"(?<![0-9])[0-9]{4}(?![0-9])")
_NUMBER = re.compile(r"[0-9]{1,4}")
#: a year, a month and perhaps a day, as RIS (2012/07/05/) and ISO 8601 have them
_DIGITS = re.compile(
    r"(?<![0-9])([0-9]{4})[-/]?(0[1-9]|1[0-2])(?:[-/]?([0-2][0-9]|3[01]))?(?![0-9])"
)
#: a month and perhaps a day behind a year: "1999 Jan 31-Feb 6", "1999-Jan"
_AFTER = re.compile(rf"[\s,;:/-]*({_MONTH})\b\.?(?:\s+([0-9]{{1,2}})(?![0-9]))?", re.IGNORECASE)
#: a month and perhaps a day before it: "Dec 1999", "12 Dec 1999"
_BEFORE = re.compile(rf"(?:([0-9]{{1,2}})\s+)?\b({_MONTH})\b[\s.,]*\Z", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Date:
    """A day, as far as it is known."""

    year: int
    #: 1 to 12
    month: int | None = None
    #: of that month; ``None`` where the month is
    day: int | None = None

    def __str__(self) -> str:
        """ISO 8601, as long as what is known."""
        known = [f"{self.year:04}"]
        known += [f"{part:02}" for part in (self.month, self.day) if part is not None]
        return "-".join(known)


def date_of(element: _Element | None) -> Date | None:
    """Return the date that an element of ``Year``, ``Month``, ``Day``, ``Season`` or ``MedlineDate`` holds.

    Of a span of time it is the beginning; of a season the year. What cannot be is left out, with what hangs
    on it: the 31st of February is February; a year out of all bounds is no date.
    """
    if element is None:
        return None
    values = {str(child.tag): plain(child.text) for child in element}
    if not values.get("Year"):
        return date_in(values.get("MedlineDate", ""))
    year = _number(values["Year"])
    if year is None:
        return date_in(
            " ".join(values[part] for part in ("Year", "Month", "Day") if part in values)
        )
    return _date(year, _month(values.get("Month", "")), _number(values.get("Day", "")))


def date_in(text: str) -> Date | None:
    """Return the first date in words such as "1998 Dec-1999 Jan"; ``None``: they hold none."""
    for found in _YEAR.finditer(text):
        year = int(found[0])
        if not FIRST_YEAR <= year <= LAST_YEAR:
            continue
        if after := _AFTER.match(text, found.end()):
            return _date(year, _month(after[1]), _number(after[2] or ""))
        if before := _BEFORE.search(text, 0, found.start()):
            return _date(year, _month(before[2]), _number(before[1] or ""))
        return _date(year, None, None)
    return None


def written_date(text: str) -> Date | None:
    """Return the first date of a text as people and programs write it: in words, or as 2012-07-05 or 2012/07."""
    found = _DIGITS.search(text)
    if found is None:
        return date_in(text)
    return _date(int(found[1]), _number(found[2]), _number(found[3] or ""))


def best_known(candidates: Iterable[Date | None]) -> Date | None:
    """Return the first of several dates that is one, in their order of trust.

    A later one of the same year, or month, says what the first leaves open.
    """
    best: Date | None = None
    for date in candidates:
        if date is None:
            continue
        if best is None or (best.day is None and str(date).startswith(str(best))):
            best = date
    return best


def _date(year: int, month: int | None, day: int | None) -> Date | None:
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return None
    if month is None or not 1 <= month <= 12:
        return Date(year=year)
    if day is None or not 1 <= day <= calendar.monthrange(year, month)[1]:
        return Date(year=year, month=month)
    return Date(year=year, month=month, day=day)


def _month(text: str) -> int | None:
    """Return the month of "7", "07", "Jul", "July", "Jul-Aug"."""
    number = _number(text)
    if number is not None:
        return number
    name = re.match(r"[A-Za-z]+", text)
    return None if name is None else _MONTHS.get(name[0].lower())


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None
