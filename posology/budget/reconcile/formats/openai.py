"""OpenAI: ``/v1/organization/usage/completions`` and ``/v1/organization/costs``, and the dashboard's CSV.

Its input counts include what was cached. Costs are dollars; a line item names a model and a kind of
token, such as ``gpt-4o-mini-2024-07-18, cached input``.
"""

from __future__ import annotations

import re
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
    rounding,
    section,
    text,
    whole,
)
from posology.budget.reconcile.measures import Kind, Measure
from posology.budget.reconcile.rows import Number, Row

PROVIDER, SHOWN = "openai", "OpenAI"
#: columns that only its exports have
OWN = frozenset(
    {
        "num_model_requests",
        "n_context_tokens_total",
        "n_generated_tokens_total",
        "num_requests",
        "input_cached_tokens",
        "amount_value",
        "line_item",
        "start_time_iso",
        "cost_in_major",
    }
)
_START = (
    "start_time",
    "start_time_iso",
    "bucket_start_time",
    "timestamp",
    "aggregation_timestamp",
    "usage_date",
    "date",
    "day",
)
_END = ("end_time", "end_time_iso", "bucket_end_time")
_MODEL = ("model", "snapshot_id", "model_name")
_COUNTS: Mapping[Measure, tuple[str, ...]] = {
    Measure.REQUESTS: (
        "num_model_requests",
        "num_requests",
        "n_requests",
        "requests",
        "request_count",
    ),
    Measure.INPUT: ("input_tokens", "n_context_tokens_total", "context_tokens", "prompt_tokens"),
    Measure.CACHE_READ: (
        "input_cached_tokens",
        "n_cached_context_tokens_total",
        "cached_tokens",
        "cached_input_tokens",
    ),
    Measure.CACHE_WRITE: ("input_cache_write_tokens",),
    Measure.OUTPUT: (
        "output_tokens",
        "n_generated_tokens_total",
        "generated_tokens",
        "completion_tokens",
    ),
}
_AMOUNT = ("amount_value", "cost_in_major", "amount", "amount_usd", "cost", "cost_usd")
_CURRENCY = ("amount_currency", "currency")
_ITEM = ("line_item", "name")
#: results of the usage API that are models' replies
_USAGE = ("organization.usage.completions.result", "organization.usage.embeddings.result")
_COSTS = "organization.costs.result"
_LINE_ITEM = re.compile(
    r"(?:(?P<service>[^|]+?) \| )?(?P<model>[^|,]+?)(?: (?:text|audio|image))?, "
    r"(?:input|output|cached input|cache writes?)(?:, long context)?"
)
#: service tiers; other words before a bar are products of their own
_SERVICES = {"priority", "flex", "batch", "scale", "default", "standard"}


def has(columns: frozenset[str]) -> bool:
    """Whether a CSV file with these columns is an export of this provider."""
    return bool(columns & OWN)


def kind(columns: frozenset[str]) -> Kind:
    """Return the kind of a CSV file with these columns; with periods only it is an export of no usage."""
    paid = pick(dict.fromkeys(columns), _AMOUNT) and not columns & set(_COUNTS[Measure.INPUT])
    return Kind.COST if paid else Kind.USAGE


def of_cells(cells: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows of a line of a CSV file: usage, costs, or both.

    Raises:
        Bad: it cannot be read.
    """
    at = period_of(cells, _START, _END)
    name = pick(cells, _MODEL)
    model = text(cells[name], name) if name else None
    counts = counts_of(cells, _COUNTS)
    column, item, currency = pick(cells, _AMOUNT), pick(cells, _ITEM), pick(cells, _CURRENCY)
    paid = money(cells[column], column) if column else None
    if counts or paid is None:
        yield _usage(*at, model, counts)
    if column and paid is not None:
        if currency:
            dollars_only(cells[currency], currency)
        yield Row(
            provider=PROVIDER,
            kind=Kind.COST,
            start=at[0],
            end=at[1],
            model=model or paid_for(text(cells[item], item) if item else None),
            figures={Measure.COST: paid},
            rounding=rounding(cells[column]),
        )


def is_bucket(bucket: Mapping[str, Any]) -> bool:
    """Whether a bucket of a JSON page is of this provider."""
    return "start_time" in bucket


def of_bucket(bucket: Mapping[str, Any]) -> Iterator[Row | tuple[float, float]]:
    """Yield the rows of a bucket; only its period if it has no usage.

    Raises:
        Bad: it cannot be read.
    """
    results = bucket.get("results", bucket.get("result"))
    return each_result(bucket, ("start_time", "end_time"), results, _of_result)


def _of_result(result: Mapping[str, Any], start: float, end: float) -> Row:
    sort = result.get("object")
    if sort == _COSTS or (sort is None and "amount" in result):
        amount = section(result.get("amount"), "amount")
        paid = money(amount.get("value"), "amount.value")
        dollars_only(amount.get("currency"), "amount.currency")
        return Row(
            provider=PROVIDER,
            kind=Kind.COST,
            start=start,
            end=end,
            model=paid_for(text(result.get("line_item"), "line_item")),
            figures={Measure.COST: paid or Decimal(0)},
        )
    if sort is not None and sort not in _USAGE:
        raise Bad(f"object: {sort!r} is not usage of completions or embeddings")
    counts = {
        measure: value
        for measure, names in _COUNTS.items()
        if (value := whole(result.get(names[0]), names[0])) is not None
    }
    if Measure.INPUT not in counts:
        raise Bad("input_tokens: missing")
    return _usage(start, end, text(result.get("model"), "model"), counts)


def _usage(start: float, end: float, model: str | None, counts: Mapping[Measure, int]) -> Row:
    figures: dict[Measure, Number] = dict(counts)
    if counts:
        # an embedding has none
        figures.setdefault(Measure.OUTPUT, 0)
    read, written = counts.get(Measure.CACHE_READ), counts.get(Measure.CACHE_WRITE)
    if read is not None and Measure.INPUT in counts:
        left = counts[Measure.INPUT] - read - (written or 0)
        if left < 0:
            raise Bad(f"{read + (written or 0)} cached tokens of {counts[Measure.INPUT]}")
        # older exports lack cache writes
        figures[Measure.UNCACHED] = left
    return Row(
        provider=PROVIDER, kind=Kind.USAGE, start=start, end=end, model=model, figures=figures
    )


def paid_for(item: str | None) -> str | None:
    """Return the model of a line item, or the line item itself."""
    if item is None:
        return None
    found = _LINE_ITEM.fullmatch(item)
    if found is None:
        return item
    service = (found["service"] or "").strip().lower()
    return (
        found["model"] if not service or service in _SERVICES else f"{service} | {found['model']}"
    )
