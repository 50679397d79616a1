"""Exports of single requests, as gateways and own logs write them: CSV, or JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from posology.budget.reconcile.formats.values import Bad, moment, money, pick, rounding, text, whole
from posology.budget.reconcile.measures import Measure
from posology.budget.reconcile.rows import Number, RequestRow

#: the provider's id of a request
ID = ("request_id", "x_request_id", "provider_request_id", "openai_request_id", "req_id", "id")
#: our id, which the provider got as well
CLIENT_ID = ("client_request_id", "x_client_request_id")
_AT = ("started_at", "start_time", "timestamp", "created_at", "created", "time", "date")
_MODEL = ("model", "model_version", "model_name", "served_model")
_PROVIDER = ("provider", "vendor")
_COST = ("cost_usd", "cost", "amount_usd", "amount", "spend", "response_cost")
#: input that includes cached tokens, as OpenAI counts
_WHOLE_INPUT = ("prompt_tokens", "total_input_tokens", "n_context_tokens_total")
#: input that includes cached tokens for OpenAI, and excludes them for Anthropic
_INPUT = ("input_tokens",)
_UNCACHED = ("uncached_input_tokens", "input_uncached_tokens", "usage_input_tokens_no_cache")
_READ = (
    "cache_read_input_tokens",
    "input_cached_tokens",
    "cached_tokens",
    "cache_read_tokens",
    "cached_input_tokens",
)
_WRITE_5M = ("cache_write_5m_tokens", "cache_creation_ephemeral_5m_input_tokens")
_WRITE_1H = ("cache_write_1h_tokens", "cache_creation_ephemeral_1h_input_tokens")
_WRITE = ("cache_creation_input_tokens", "cache_write_tokens", "input_cache_write_tokens")
_OUTPUT = ("completion_tokens", "output_tokens", "n_generated_tokens_total")
#: decimals from which on an amount may have been rounded and still say something
_DECIMALS = 4
#: a column is enough to take a file for one of these; ``id`` alone is not
SIGNS = frozenset((*ID[:-1], *CLIENT_ID))


def has(columns: frozenset[str]) -> bool:
    """Whether a file with these columns or keys has one row for each request."""
    tells = columns & {*_COST, *_WHOLE_INPUT, *_INPUT, *_UNCACHED, *_OUTPUT}
    return bool(tells) and bool(columns & SIGNS or "id" in columns)


def provider_of(cells: Mapping[str, Any]) -> str | None:
    """Return the provider of a row, by its own column or by its model; ``None``: unknown."""
    if (column := pick(cells, _PROVIDER)) and (named := text(cells[column], column)):
        return named.lower()
    column = pick(cells, _MODEL)
    model = (text(cells[column], column) if column else None) or ""
    first, separator, _ = model.lower().replace("/", ":").partition(":")
    if separator and first in ("openai", "anthropic"):
        return first
    if first.startswith("claude"):
        return "anthropic"
    if first.startswith(("gpt-", "chatgpt-", "ft", "o1", "o3", "o4")):
        return "openai"
    return None


def of_cells(cells: Mapping[str, Any], *, provider: str, path: str, line: int) -> RequestRow:
    """Return the request of a row.

    Raises:
        Bad: it cannot be read.
    """
    own, theirs = pick(cells, CLIENT_ID), pick(cells, ID)
    client = text(cells[own], own) if own else None
    found = (text(cells[theirs], theirs) if theirs else None) or client
    if found is None:
        raise Bad("it has no id of the request")
    when, name, cost = pick(cells, _AT), pick(cells, _MODEL), pick(cells, _COST)
    model = text(cells[name], name) if name else None
    paid = money(cells[cost], cost) if cost else None
    figures: dict[Measure, Number] = dict(_counts(cells, provider))
    if paid is not None:
        figures[Measure.COST] = paid
    return RequestRow(
        path=path,
        line=line,
        id=found,
        client_id=client,
        at=moment(cells[when], when) if when and cells[when] not in (None, "") else None,
        model=model.replace("/", ":").rpartition(f"{provider}:")[2] if model else None,
        figures=figures,
        rounding=_rounded(cells[cost]) if cost else Decimal(0),
    )


def _rounded(cost: Any) -> Decimal:
    """Return the rounding error of an amount: spreadsheets may drop digits; amounts in cents are taken as exact."""
    if not isinstance(cost, str) or len(cost.partition(".")[2]) < _DECIMALS:
        return Decimal(0)
    return rounding(cost)


def _counts(cells: Mapping[str, Any], provider: str) -> dict[Measure, int]:
    def count(names: tuple[str, ...]) -> int | None:
        column = pick(cells, names)
        return whole(cells[column], column) if column else None

    uncached, read = count(_UNCACHED), count(_READ)
    short, hour, written = count(_WRITE_5M), count(_WRITE_1H), count(_WRITE)
    if written is None and (short is not None or hour is not None):
        written = (short or 0) + (hour or 0)
    total, plain = count(_WHOLE_INPUT), count(_INPUT)
    if plain is not None and provider == "anthropic":
        uncached = plain if uncached is None else uncached
    elif plain is not None:
        total = plain if total is None else total
    cached = (read or 0) + (written or 0)
    if total is None and uncached is not None:
        total = uncached + cached
    elif uncached is None and total is not None and read is not None:
        uncached = total - cached
        if uncached < 0:
            raise Bad(f"{cached} cached tokens of {total}")
    found = {
        Measure.INPUT: total,
        Measure.UNCACHED: uncached,
        Measure.CACHE_READ: read,
        Measure.CACHE_WRITE: written,
        Measure.CACHE_WRITE_5M: short,
        Measure.CACHE_WRITE_1H: hour,
        Measure.OUTPUT: count(_OUTPUT),
    }
    return {measure: n for measure, n in found.items() if n is not None}
