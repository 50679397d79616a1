"""JSON output of ``posology tenants``."""

from __future__ import annotations

from datetime import datetime

from posology.published.base import Dollars, Published
from posology.published.money import BalanceOutput


class LimitsOutput(Published):
    """Limits of a tenant; null: no limit."""

    day_usd: Dollars | None
    """budget per day (UTC) in dollars"""
    month_usd: Dollars | None
    """budget per month (UTC) in dollars"""
    total_usd: Dollars | None
    """total budget in dollars"""
    job_usd: Dollars | None
    """budget per job in dollars"""
    models: tuple[str, ...] | None
    """allowed models, ``provider:name`` or ``provider:*``"""
    calls: int | None
    """maximum concurrent calls"""
    requests_per_minute: int | None
    tokens_per_minute: int | None
    """tokens per minute, counted at the calls' bounds"""
    queued: int | None
    """maximum waiting jobs; null: the installation's limit"""
    stored_mib: int | None
    """maximum MiB of Redis that jobs occupy until their records expire; null: the installation's limit"""
    may_ingest: bool = False
    """whether the tenant may upload files, which are added to the index of all tenants"""


class ApiKeyOutput(Published):
    """An API key, without its secret."""

    id: str
    created: datetime
    expires: datetime | None
    """end of validity; null: until the key is replaced"""


class TenantSummary(Published):
    """A tenant and its limits."""

    name: str
    disabled: bool
    limits: LimitsOutput
    created: datetime
    changed: datetime
    keys: tuple[ApiKeyOutput, ...]
    """valid keys, oldest first"""


class TenantOutput(TenantSummary):
    """A tenant: output of ``posology tenants … --json``."""

    balances: tuple[BalanceOutput, ...]
    """balances per day, month and in total"""
    key: str | None
    """new API key, shown only once; null: no new key"""


class TenantList(Published):
    """Output of ``posology tenants list --json``."""

    tenants: tuple[TenantSummary, ...]
    """all tenants, by name"""
