"""Rows of a provider's account, from the records of an export."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from posology.budget.reconcile.bands import DAY, Span
from posology.budget.reconcile.records import ANTHROPIC, OPENAI, PROVIDERS, Bad, Record, posix
from posology.budget.reconcile.report import Kind, Measure, Number

#: time of a request that names none
UNKNOWN = Span()
#: figures of every export of usage
LEAST = {Measure.INPUT, Measure.OUTPUT}
#: results of OpenAI's usage API that are models' replies
_USAGE = ("organization.usage.completions.result", "organization.usage.embeddings.result")
#: decimals from which on a request's amount may have been rounded and still say something
_DECIMALS = 4
_LINE_ITEM = re.compile(
    r"(?:(?P<service>[^|]+?) \| )?(?P<model>[^|,]+?)(?: (?:text|audio|image))?, "
    r"(?:input|output|cached input|cache writes?)(?:, long context)?"
)
#: service tiers; other words before a bar are products of their own
_SERVICES = {"", "priority", "flex", "batch", "scale", "default", "standard"}
#: kind of billed item of Anthropic that is tokens of a model
_TOKENS = {"", "token", "tokens"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Usage or cost within one UTC day, or one request."""

    kind: Kind
    #: of a request its moment
    span: Span
    #: as the provider writes it, or a billed item that is not a model; ``None``: all together
    model: str | None
    #: empty: no usage
    figures: Mapping[Measure, Number]
    #: dollars by which the amount may have been rounded
    rounding: Decimal = Decimal(0)
    #: the provider's id of a request
    id: str = ""
    #: our id of a request, if the export has it
    client_id: str = ""
    #: file and line of a request
    where: str = ""


def usage_and_costs(
    record: Record, provider: str, *, table: bool, priced: bool = False
) -> Iterator[Row]:
    """Yield a record's rows: usage, costs, or both. One that names nothing says that nothing was used.

    Args:
        record: of a time and a model.
        provider: that wrote it.
        table: whether it is of a CSV file, whose amounts are rounded dollars; the API of Anthropic gives cents.
        priced: whether all records of the file have an amount.

    Raises:
        Bad: it cannot be read.
    """
    span = _day_of(record)
    if "organization.usage." in (record.object or "") and record.object not in _USAGE:
        raise Bad(f"object: {record.object!r} is not usage of completions or embeddings")
    tokens: dict[Measure, Number] = dict(record.tokens(provider))
    if record.requests is not None:
        tokens[Measure.REQUESTS] = record.requests
    paid = record.paid(Decimal("0.01") if provider == ANTHROPIC and not table else 1)
    if paid is None and (priced if tokens else record.model_fields_set - {"start", "end"}):
        raise Bad("its amount is missing" if tokens else "it has neither tokens nor an amount")
    if paid is not None:
        yield Row(
            kind=Kind.COST,
            span=span,
            model=record.model or _item(record),
            figures={Measure.COST: paid},
            rounding=record.rounding() if table else Decimal(0),
        )
    if tokens:
        if "embedding" in f"{record.object} {record.model}":
            tokens.setdefault(Measure.OUTPUT, 0)
        if not tokens.keys() & {Measure.INPUT, Measure.UNCACHED} or Measure.OUTPUT not in tokens:
            raise Bad(f"{', '.join(sorted(LEAST - tokens.keys()))}_tokens: missing")
        yield Row(kind=Kind.USAGE, span=span, model=record.model, figures=tokens)
    elif paid is None:
        yield Row(kind=Kind.USAGE, span=span, model=None, figures={})


def request(record: Record, provider: str, where: str, *, table: bool) -> Row:
    """Return the request of a record.

    Args:
        record: of a request.
        provider: that served it.
        where: file and line.
        table: whether it is of a CSV file, whose amounts are rounded.

    Raises:
        Bad: it cannot be read.
    """
    request_id = record.request_id or record.id or record.client_id
    if not request_id:
        raise Bad("it has no id of the request")
    paid, rounding = record.paid(), record.rounding()
    exact = not table or rounding > Decimal(5).scaleb(-_DECIMALS - 1)
    figures: dict[Measure, Number] = dict(record.tokens(provider))
    if paid is not None:
        figures[Measure.COST] = paid
    at = None if record.start is None else posix(record.start)
    model = (record.model or "").replace("/", ":").rpartition(f"{provider}:")[2]
    return Row(
        kind=Kind.REQUESTS,
        span=UNKNOWN if at is None else Span(start=at, end=at),
        model=model or None,
        figures=figures,
        rounding=Decimal(0) if exact else rounding,
        id=request_id,
        client_id=record.client_id or "",
        where=where,
    )


def provider_of(record: Record) -> str | None:
    """Return the provider of a request, by its own field or by its model; ``None``: unknown."""
    if record.provider:
        return record.provider.lower()
    model = (record.model or "").lower().replace("/", ":")
    first, separator, _ = model.partition(":")
    if separator and first in PROVIDERS:
        return first
    if first.startswith("claude"):
        return ANTHROPIC
    return OPENAI if first.startswith(("gpt-", "chatgpt-", "ft", "o1", "o3", "o4")) else None


def paid_for(item: str) -> str:
    """Return the model of a line item, or the line item itself."""
    found = _LINE_ITEM.fullmatch(item)
    if found is None:
        return item
    service = (found["service"] or "").strip().lower()
    return found["model"] if service in _SERVICES else f"{service} | {found['model']}"


def _item(record: Record) -> str | None:
    """Return the billed item of a record that names no model; ``None``: it is not grouped by model."""
    if record.item:
        return paid_for(record.item)
    return None if record.sort in _TOKENS else record.sort


def _day_of(record: Record) -> Span:
    """Return the time of a record; without an end it is the rest of the day."""
    if record.start is None:
        raise Bad("it has no time: start_time, starting_at, usage_date_utc or date")
    start = posix(record.start)
    midnight = (start // DAY + 1) * DAY
    end = midnight if record.end is None else posix(record.end)
    if not start < end <= midnight:
        raise Bad("a row must be within one UTC day: export by days")
    return Span(start=start, end=end)
