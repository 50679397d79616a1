"""Attempts as rows of a table: the columns of an export of the ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from posology.budget.books.reader import Entry
from posology.budget.ledger.base import dollars
from posology.store.keys import at


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptRow:
    """The last state of one attempt. ``None``: unknown, or not applicable. See ``docs/how-to/ledger.md``."""

    #: time of the last entry, UTC; for an open attempt the time when it was sent
    at: datetime | None
    #: charged day, e.g. ``2026-01-15``
    day: str
    tenant: str
    #: id of the job, or of the run in process
    job: str
    #: unit of the job, e.g. ``extract:3``
    unit: str | None
    #: partition of the unit, from 0
    partition: int | None
    #: number of the call in its job, from 1
    call: int | None
    #: 1 for a call's first attempt
    attempt: int | None
    attempt_id: str
    #: ``settle``, ``lose``, ``correct`` or ``release``; ``reserve`` while it is open
    kind: str
    stage: str
    strategy: str
    #: ``provider:name``
    model: str
    #: name of the template
    prompt: str | None
    #: digest of the template
    prompt_digest: str | None
    #: tokens, in disjoint buckets
    input: int | None
    cache_read: int | None
    cache_write_5m: int | None
    cache_write_1h: int | None
    output: int | None
    reasoning: int | None
    #: maximum input tokens
    input_bound: int | None
    #: maximum output tokens
    max_tokens: int | None
    #: version of the prices
    prices: str | None
    #: dollars reserved
    reserved_usd: Decimal
    #: dollars, rounded up to a billionth; ``None``: unknown
    cost_usd: Decimal | None
    #: dollars that count against limits: the cost, or the bound if the cost is unknown
    charged_usd: Decimal | None
    #: whether the cost is known; ``None`` while it is open
    known: bool | None
    #: ``ok``, ``failed``, ``unusable``, ``cancelled``, ``lost`` or ``released``
    outcome: str | None
    #: class of the error
    error: str | None
    #: when it was sent, UTC
    started: datetime | None
    #: seconds
    latency: float | None
    #: the provider's id of the request
    request_id: str | None
    #: service tier that it was sent in
    tier: str
    #: service tier that it is billed at, as the reply names it; ``None``: no reply named one
    served: str | None
    #: level of reasoning effort that it asked for; ``None``: none
    effort: str | None


NAMES = tuple(field.name for field in fields(AttemptRow))
_BUCKETS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")


def closed(entry: Entry, tenant: str) -> AttemptRow:
    """Return the row of an ended attempt, from its last entry."""
    values = entry.fields
    charged = dollars(values["charged"])
    told = json.loads(values["entry"])
    return AttemptRow(
        at=at(values["at"]),
        kind=entry.kind,
        reserved_usd=dollars(values["bound"]),
        cost_usd=charged if entry.known else None,
        charged_usd=charged,
        known=entry.known,
        outcome=values["outcome"],
        **_shared(entry.attempt, values, told, tenant),
    )


def under_way(attempt: str, reservation: Mapping[str, Any], tenant: str) -> AttemptRow:
    """Return the row of an open attempt.

    Args:
        attempt: id of the attempt.
        reservation: its field of ``…money:open``.
        tenant: name of the tenant.
    """
    told = json.loads(reservation["entry"])
    return AttemptRow(
        at=_seconds(told.get("started")),
        kind="reserve",
        reserved_usd=dollars(reservation["nano"]),
        cost_usd=None,
        charged_usd=None,
        known=None,
        outcome=None,
        **_shared(attempt, reservation, told, tenant),
    )


def _shared(
    attempt: str, values: Mapping[str, Any], told: Mapping[str, Any], tenant: str
) -> dict[str, Any]:
    usage = told.get("usage") or {}
    unit = told.get("unit")
    prompt = told.get("prompt") or {}
    return {
        "day": values["day"],
        "tenant": tenant,
        "job": values["job"],
        "unit": unit,
        "partition": _partition(unit),
        # a run's call gets its number at its end
        "call": told.get("call") or None,
        "attempt": told.get("attempt"),
        "attempt_id": attempt,
        "stage": values["stage"],
        "strategy": values["strategy"],
        "model": values["model"],
        "prompt": prompt.get("name"),
        "prompt_digest": prompt.get("digest"),
        **{name: usage.get(name) for name in _BUCKETS},
        "input_bound": told.get("input_bound"),
        "max_tokens": told.get("max_tokens"),
        "prices": told.get("prices"),
        "error": told.get("error"),
        "started": _seconds(told.get("started")),
        "latency": told.get("latency"),
        "request_id": told.get("request_id"),
        "tier": told.get("tier") or "standard",
        "served": told.get("served"),
        "effort": told.get("effort"),
    }


def _partition(unit: str | None) -> int | None:
    _, colon, number = (unit or "").partition(":")
    return int(number) if colon and number.isdecimal() else None


def _seconds(posix: float | None) -> datetime | None:
    return None if posix is None else datetime.fromtimestamp(posix, UTC)
