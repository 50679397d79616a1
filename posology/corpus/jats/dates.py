"""Publication date of an article, chosen from its several JATS dates."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: years that a date of publication may have; the oldest journal is of 1665
FIRST, LAST = 1665, 2100

#: ``pub-type``, or ``date-type`` and ``publication-format``, in the order in which they are asked. As in PubMed's
#: PubDate, the printed issue's date comes first; of a journal without one it is the day on which it went online, and
#: the collection's year only then. When a copy came to PubMed Central is no date of publication.
ORDER = (
    "ppub", "epub-ppub", "pub print", "epub", "pub electronic", "epreprint", "pub online", "pub", "collection",
    "preprint", "",
)  # fmt: skip

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_YEAR = re.compile(r"(?<!\d)(\d{4})(?!\d)", re.ASCII)
_ISO = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", re.ASCII)
_MONTH = re.compile(r"0?[1-9]|1[0-2]")


def published(meta: Element) -> str | None:
    """Return the date of publication, ISO 8601, to the known precision; ``None``: no usable date.

    Args:
        meta: ``article-meta``. What no calendar has is left out of a date, from the month or the day on.
    """
    found: dict[str, str] = {}
    for element in meta.findall("pub-date"):
        if (value := _date(element)) is not None:
            found.setdefault(_kind(element), value)
    return next((found[kind] for kind in ORDER if kind in found), None)


def _kind(element: Element) -> str:
    kind = element.get("pub-type") or element.get("date-type") or ""
    form = element.get("publication-format") or ""
    return f"{kind} {form}".strip().lower() if kind == "pub" else kind.lower()


def _date(element: Element) -> str | None:
    year, month, day = (_text_of(element, name) for name in ("year", "month", "day"))
    if not year:
        if iso := _ISO.match(element.get("iso-8601-date") or ""):
            year, month, day = iso[1], iso[2] or "", iso[3] or ""
        elif value := _YEAR.search(_text_of(element, "string-date")):
            year = value[1]
    if not (matched := _YEAR.search(year)) or not FIRST <= int(matched[1]) <= LAST:
        return None
    number = _month(month)
    if number is None:
        return matched[1]
    try:
        return date(int(matched[1]), number, int(day[:4])).isoformat()
    except ValueError:
        return f"{matched[1]}-{number:02}"


def _text_of(element: Element, name: str) -> str:
    found = element.find(name)
    return "" if found is None else " ".join(str(part) for part in found.itertext()).strip()


def _month(value: str) -> int | None:
    if _MONTH.fullmatch(value):
        return int(value)
    return _MONTHS.index(value[:3].lower()) + 1 if value[:3].lower() in _MONTHS else None
