"""Anthropic: ``/v1/organizations/usage_report/messages`` and ``cost_report``, and the Console's CSV.

Its kinds of input are disjoint: cache tokens come on top. The cost report's amounts are cents, the
Console's are dollars rounded to cents. Neither counts requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from posology.budget.reconcile.formats.values import (
    Bad,
    counts_of,
    dollars_only,
    each_result,
    money,
    period_of,
    pick,
    plain,
    rounding,
    section,
    text,
)
from posology.budget.reconcile.measures import Kind, Measure
from posology.budget.reconcile.rows import Number, Row

PROVIDER, SHOWN = "anthropic", "Anthropic"
#: columns that only its exports have
OWN = frozenset(
    {
        "usage_date_utc",
        "model_version",
        "usage_input_tokens_no_cache",
        "usage_output_tokens",
        "uncached_input_tokens",
        "cache_read_input_tokens",
    }
)
_START = ("usage_date_utc", "usage_date", "starting_at", "date")
_END = ("ending_at",)
_MODEL = ("model_version", "model")
_COUNTS: Mapping[Measure, tuple[str, ...]] = {
    Measure.REQUESTS: ("requests", "num_requests"),
    Measure.UNCACHED: ("usage_input_tokens_no_cache", "uncached_input_tokens", "input_tokens"),
    Measure.CACHE_WRITE: (
        "usage_input_tokens_cache_write",
        "cache_creation_input_tokens",
    ),
    Measure.CACHE_WRITE_5M: (
        "usage_input_tokens_cache_write_5m",
        "cache_creation_ephemeral_5m_input_tokens",
    ),
    Measure.CACHE_WRITE_1H: (
        "usage_input_tokens_cache_write_1h",
        "cache_creation_ephemeral_1h_input_tokens",
    ),
    Measure.CACHE_READ: ("usage_input_tokens_cache_read", "cache_read_input_tokens"),
    Measure.OUTPUT: ("usage_output_tokens", "output_tokens"),
}
_COST = ("cost_usd", "cost_in_usd", "amount_usd")
#: columns with the billed item, if it is not a model
_ITEM = ("description", "cost_type", "token_type")
_CENT = Decimal("0.01")


def has(columns: frozenset[str]) -> bool:
    """Whether a CSV file with these columns is an export of this provider."""
    return bool(columns & OWN)


def kind(columns: frozenset[str]) -> Kind:
    """Return the kind of a CSV file with these columns."""
    return Kind.COST if columns & set(_COST) else Kind.USAGE


def of_cells(cells: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows of a line of a CSV file.

    Raises:
        Bad: it cannot be read.
    """
    at = period_of(cells, _START, _END)
    name = pick(cells, _MODEL)
    model = text(cells[name], name) if name else None
    column = pick(cells, _COST)
    if column is None:
        yield _usage(*at, model, counts_of(cells, _COUNTS))
        return
    paid = money(cells[column], column)
    if paid is None:
        raise Bad(f"{column}: missing")
    item = next((cells[c] for c in _ITEM if cells.get(c)), None)
    # a file without a column of models is not grouped by them
    what = None if name is None else model or item or "no model"
    yield Row(
        provider=PROVIDER,
        kind=Kind.COST,
        start=at[0],
        end=at[1],
        model=what,
        figures={Measure.COST: paid},
        rounding=rounding(cells[column]),
    )


def is_bucket(bucket: Mapping[str, Any]) -> bool:
    """Whether a bucket of a JSON page is of this provider."""
    return "starting_at" in bucket


def of_bucket(bucket: Mapping[str, Any]) -> Iterator[Row | tuple[float, float]]:
    """Yield the rows of a bucket; only its period if it has no usage.

    Raises:
        Bad: it cannot be read.
    """
    results = bucket.get("results")
    return each_result(bucket, ("starting_at", "ending_at"), results, _of_result)


def _of_result(result: Mapping[str, Any], start: float, end: float) -> Row:
    model = text(result.get("model"), "model")
    if "amount" in result:
        cents = money(result["amount"], "amount")
        dollars_only(result.get("currency"), "currency")
        if cents is None:
            raise Bad("amount: missing")
        item = next((t for name in _ITEM if (t := text(result.get(name), name))), None)
        return Row(
            provider=PROVIDER,
            kind=Kind.COST,
            start=start,
            end=end,
            model=model or item,
            figures={Measure.COST: plain(cents * _CENT)},
        )
    written = section(result.get("cache_creation"), "cache_creation")
    flat = {name: value for name, value in result.items() if value is not None}
    for lifetime in ("5m", "1h"):
        name = f"ephemeral_{lifetime}_input_tokens"
        if written.get(name) is not None:
            flat[f"cache_creation_{name}"] = written[name]
    return _usage(start, end, model, counts_of(flat, _COUNTS))


def _usage(start: float, end: float, model: str | None, counts: Mapping[Measure, int]) -> Row:
    figures: dict[Measure, Number] = dict(counts)
    if counts:
        for needed in (Measure.UNCACHED, Measure.OUTPUT):
            if needed not in counts:
                raise Bad(f"{needed}: missing, one of {', '.join(_COUNTS[needed])}")
        short, hour = counts.get(Measure.CACHE_WRITE_5M), counts.get(Measure.CACHE_WRITE_1H)
        if short is not None or hour is not None:
            figures[Measure.CACHE_WRITE] = (short or 0) + (hour or 0)
        figures[Measure.INPUT] = (
            counts[Measure.UNCACHED]
            + counts.get(Measure.CACHE_READ, 0)
            + int(figures.get(Measure.CACHE_WRITE, 0))
        )
    return Row(
        provider=PROVIDER, kind=Kind.USAGE, start=start, end=end, model=model, figures=figures
    )
