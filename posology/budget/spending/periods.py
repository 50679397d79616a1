"""The days of a report, and its groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from posology.errors import InvalidQuery

#: maximum days of a report
MAX_DAYS = 400
#: default days of a report
DAYS = 30
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    """Days, both inclusive, UTC."""

    since: date
    until: date

    def __iter__(self) -> Iterator[str]:
        for n in range((self.until - self.since).days + 1):
            yield (self.since + timedelta(days=n)).isoformat()


def period(since: date | None, until: date | None, *, today: date) -> Period:
    """Return the days of a report.

    Args:
        since: first day; ``None``: :data:`DAYS` days in all.
        until: last day; ``None``: today.
        today: the current day, UTC.

    Raises:
        InvalidQuery: it begins after its end, or has more than :data:`MAX_DAYS` days.
    """
    last = until or today
    try:
        first = since or last - timedelta(days=DAYS - 1)
    except OverflowError:
        first = last
    if first > last:
        raise InvalidQuery(f"since must not be after until (got {first} and {last})", field="since")
    if (last - first).days >= MAX_DAYS:
        raise InvalidQuery(
            f"a report has at most {MAX_DAYS} days (got {(last - first).days + 1}): request several reports",
            field="since",
        )
    return Period(since=first, until=last)


def read_date(text: str, field: str) -> date:
    """Parse a day of a command line or an address.

    Args:
        text: e.g. ``2026-01-15``.
        field: its name, for the message.

    Raises:
        InvalidQuery: it is none.
    """
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise InvalidQuery(f"{field} must be a day such as 2026-01-15 (got {text!r})", field=field)
