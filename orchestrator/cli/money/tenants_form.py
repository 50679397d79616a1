"""Tenants as JSON."""

from __future__ import annotations

from datetime import datetime

from posology.published.base import Dollars, Published
from posology.published.money import BalanceOutput


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
