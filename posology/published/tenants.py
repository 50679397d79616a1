"""Tenants as JSON."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated

from pydantic import PlainSerializer

from posology.published.answers import Published
from posology.types import Scope

#: dollars, never as a power of ten
Dollars = Annotated[
    Decimal, PlainSerializer(lambda amount: f"{amount:f}", return_type=str, when_used="json")
]


class LimitsOutput(Published):
    """What a tenant may do; null is no limit."""

    day_usd: Dollars | None
    """on one day, UTC"""
    month_usd: Dollars | None
    """in one month, UTC"""
    total_usd: Dollars | None
    """ever"""
    job_usd: Dollars | None
    """for one job"""
    models: tuple[str, ...] | None
    """``provider:name``, or ``provider:*``"""
    calls: int | None
    """under way at once"""
    requests_per_minute: int | None
    tokens_per_minute: int | None
    """by the bounds of the calls"""


class BalanceOutput(Published):
    """How one window of money stands."""

    scope: Scope
    cap_usd: Dollars | None
    """null: no limit"""
    spent_usd: Dollars
    """with calls of unknown cost at their bounds"""
    reserved_usd: Dollars
    """set aside for calls under way"""
    left_usd: Dollars | None
    """null: no limit"""
    resets: datetime | None
    """when the window is over; null: never"""


class ApiKeyOutput(Published):
    """An API key, without its secret."""

    id: str
    created: datetime
    expires: datetime | None
    """null: it goes on until another takes its place"""


class TenantSummary(Published):
    """A tenant and its limits."""

    name: str
    disabled: bool
    limits: LimitsOutput
    created: datetime
    changed: datetime
    keys: tuple[ApiKeyOutput, ...]
    """those that are accepted, the oldest first"""


class TenantOutput(TenantSummary):
    """What ``posology tenants`` prints of one tenant with ``--json``."""

    balances: tuple[BalanceOutput, ...]
    """day, month and total"""
    key: str | None
    """an API key that was just made, which is shown this once; null otherwise"""


class TenantList(Published):
    """What ``posology tenants list --json`` prints."""

    tenants: tuple[TenantSummary, ...]
    """by name"""
