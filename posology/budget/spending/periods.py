"""Period and grouping of a spending report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from posology.errors import InvalidQuery

#: days of one report, at most
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
    """The days of a report.

    Args:
        since: ``None``: the last of :data:`DAYS` days.
        until: ``None``: today.
        today: by the clock, UTC.

    Raises:
        InvalidQuery: it begins after its end, or has more than :data:`MAX_DAYS` days.
    """
    last = until or today
    try:
        first = since or last - timedelta(days=DAYS - 1)
    except OverflowError:
        first = last
    if first > last:
        raise InvalidQuery(f"since: {first} is after {last}, where the report ends", field="since")
    if (last - first).days >= MAX_DAYS:
        raise InvalidQuery(
            f"since: a report has {MAX_DAYS} days at most: ask for several", field="since"
        )
    return Period(since=first, until=last)


def read_date(text: str, field: str) -> date:
    """A day as it is written on a command line or in an address.

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
    raise InvalidQuery(f"{field}: {text!r} is no day, such as 2026-01-15", field=field)
