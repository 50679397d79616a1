"""Values of an export, parsed strictly: an unknown form is an error, never a guess."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from posology.budget.reconcile.measures import Measure
from posology.budget.reconcile.rows import Row

DAY = 86_400.0
#: maximum tokens or requests
_MOST = 10**15
#: maximum dollars
_MOST_MONEY = Decimal(10**9)
#: precision for the longest amount with all its decimals
_EXACT = Context(prec=60)
#: resolution of dollars: far below the price of a token
_KEPT = Decimal("1e-18")
#: smallest number taken for milliseconds: the year 5138 as seconds, 1973 as milliseconds
_MILLISECONDS = 10**11
#: maximum rounding of an amount in a spreadsheet: half a cent, in dollars
_HALF_CENT = Decimal("0.005")
_WHOLE = re.compile(r"([0-9]{1,16}|[0-9]{1,3}(?:,[0-9]{3}){1,5})(?:\.0*)?")
_AMOUNT = re.compile(r"-?\$?[0-9][0-9,]*(\.[0-9]+)?([eE][-+]?[0-9]{1,5})?|-?\.[0-9]+")
_DATE = re.compile(r"([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})")


class Bad(ValueError):
    """A record cannot be read; the message says why."""


def pick(columns: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    """Return the first of some synonyms that is a column."""
    return next((name for name in names if name in columns), None)


def whole(value: Any, name: str) -> int | None:
    """Parse a count; ``None``: empty.

    Raises:
        Bad: it is not a count.
    """
    if value is None or value == "":
        return None
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = f"{value:f}"
    if isinstance(value, str) and (found := _WHOLE.fullmatch(value.strip())):
        value = int(found[1].replace(",", ""))
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise Bad(f"{name} must be a count of tokens or requests (got {_rendered(value)})")
    return value


def money(value: Any, name: str) -> Decimal | None:
    """Parse an amount in dollars or another unit, to 18 decimals; ``None``: empty. Credits are negative.

    Raises:
        Bad: it is not an amount.
    """
    if value is None or value == "":
        return None
    amount: Decimal | None = None
    if isinstance(value, str) and _AMOUNT.fullmatch(value.strip()):
        amount = Decimal(re.sub(r"[$,]", "", value.strip()))
    elif isinstance(value, int | Decimal) and not isinstance(value, bool):
        amount = Decimal(value)
    if amount is None or not amount.is_finite() or abs(amount) > _MOST_MONEY:
        raise Bad(f"{name} must be an amount (got {_rendered(value)})")
    return plain(amount.quantize(_KEPT, rounding=ROUND_HALF_EVEN, context=_EXACT))


def rounding(value: Any) -> Decimal:
    """Return the maximum rounding of an amount in a spreadsheet, by its decimals, in dollars."""
    decimals = len(str(value).strip().partition(".")[2])
    return min(_HALF_CENT, Decimal(5).scaleb(-decimals - 1))


def plain(amount: Decimal) -> Decimal:
    """Return an amount without trailing zeros or an exponent."""
    short = amount.normalize(_EXACT)
    return short.quantize(Decimal(1)) if int(short.as_tuple().exponent) > 0 else short


def moment(value: Any, name: str) -> float:
    """Parse a time to POSIX seconds: POSIX seconds or milliseconds, a date, or ISO 8601; UTC by default.

    Raises:
        Bad: it is not a time.
    """
    if isinstance(value, str):
        value = value.strip()
        if found := _DATE.fullmatch(value):
            value = "-".join((found[1], found[2].zfill(2), found[3].zfill(2)))
        elif re.fullmatch(r"[0-9]{9,13}(\.[0-9]{1,9})?", value):
            value = Decimal(value)
    if isinstance(value, str):
        try:
            read = datetime.fromisoformat(value.removesuffix(" UTC"))
            found_at = (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            raise Bad(f"{name} must be a time (got {_rendered(value)})") from None
        return found_at
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 < value < 10**14:
        raise Bad(f"{name} must be a time (got {_rendered(value)})")
    return float(value / 1000 if value >= _MILLISECONDS else value)


def span(start: float, end: float | None, name: str) -> tuple[float, float]:
    """Return the period of a row; without an end it is the rest of the day.

    Raises:
        Bad: it is empty, or of more than one day.
    """
    midnight = (start // DAY + 1) * DAY
    if end is None:
        return start, midnight
    if not start < end <= midnight:
        raise Bad(f"{name}: a row must be within one UTC day: export by days")
    return start, end


def period_of(
    cells: Mapping[str, str], starts: tuple[str, ...], ends: tuple[str, ...]
) -> tuple[float, float]:
    """Return the start and end of a row of a CSV file, POSIX seconds.

    Raises:
        Bad: a time is missing or cannot be read.
    """
    start = pick(cells, starts)
    if start is None:
        raise Bad(f"no column with the time: use one of {', '.join(starts)}")
    end = pick(cells, ends)
    return span(moment(cells[start], start), moment(cells[end], end) if end else None, start)


def counts_of(
    cells: Mapping[str, Any], columns: Mapping[Measure, tuple[str, ...]]
) -> dict[Measure, int]:
    """Return the counts that a row has, each from the first of its columns' synonyms.

    Raises:
        Bad: a count cannot be read.
    """
    return {
        measure: value
        for measure, names in columns.items()
        if (column := pick(cells, names)) and (value := whole(cells[column], column)) is not None
    }


def text(value: Any, name: str) -> str | None:
    """Parse a name; ``None``: empty.

    Raises:
        Bad: it is not text.
    """
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > 300:
        raise Bad(f"{name} must be a name (got {_rendered(value)})")
    return value.strip() or None


def dollars_only(value: Any, name: str) -> None:
    """Check that a currency is dollars or unset.

    Raises:
        Bad: it is another currency.
    """
    currency = text(value, name)
    if currency is not None and currency.lower() != "usd":
        raise Bad(f"{name} must be USD (got {_rendered(currency)})")


def section(value: Any, name: str) -> Mapping[str, Any]:
    """Return an object; an empty one: unset.

    Raises:
        Bad: it is not an object.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Bad(f"{name} must be an object (got {_rendered(value)})")
    return value


def _rendered(value: Any) -> str:
    written = repr(value) if isinstance(value, str) else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        written = "not a number"
    return written if len(written) <= 60 else f"{written[:57]}…"


def each_result(
    bucket: Mapping[str, Any],
    times: tuple[str, str],
    results: Any,
    of_result: Callable[[Mapping[str, Any], float, float], Row],
) -> Iterator[Row | tuple[float, float]]:
    """Yield the rows of a bucket of a JSON page; only its period if it has no usage.

    Args:
        bucket: of the page.
        times: names of its start and end.
        results: its results.
        of_result: returns the row of a result.

    Raises:
        Bad: it cannot be read.
    """
    first, last = times
    end = bucket.get(last)
    started = moment(bucket[first], first)
    at = span(started, None if end is None else moment(end, last), first)
    if not isinstance(results, list):
        raise Bad("results must be a list")
    if not results:
        yield at
    for number, result in enumerate(results):
        try:
            yield of_result(section(result, "it"), *at)
        except Bad as error:
            raise Bad(f"results[{number}].{error}") from None
