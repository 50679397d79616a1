"""JSON output of ``posology tenants``."""

from __future__ import annotations

from datetime import datetime

from posology.budget.tenants.api_keys import TenantKey
from posology.published.base import Dollars, Published
from posology.published.money import BalanceOutput


class LimitsOutput(Published):
    """Limits of a tenant; null: no limit."""

    day_usd: Dollars | None
    """Budget per day (UTC) in dollars."""
    month_usd: Dollars | None
    """Budget per month (UTC) in dollars."""
    total_usd: Dollars | None
    """Total budget in dollars."""
    job_usd: Dollars | None
    """Budget per job in dollars."""
    models: tuple[str, ...] | None
    """Allowed models, ``provider:name`` or ``provider:*``."""
    calls: int | None
    """Maximum concurrent calls."""
    requests_per_minute: int | None
    tokens_per_minute: int | None
    """Tokens per minute, counted at the calls' bounds."""
    queued: int | None
    """Maximum waiting jobs; null: the installation's limit."""
    stored_mib: int | None
    """Maximum MiB of Redis that jobs occupy until their records expire; null: the installation's limit."""
    may_ingest: bool = False
    """Whether the tenant may upload files, which are added to the index of all tenants."""
    collections: tuple[str, ...] = ()
    """Collections that the tenant may read besides the default index."""


class TenantSummary(Published):
    """A tenant and its limits."""

    name: str
    disabled: bool
    limits: LimitsOutput
    created: datetime
    changed: datetime
    keys: tuple[TenantKey, ...]
    """Valid keys, oldest first."""


class TenantOutput(TenantSummary):
    """A tenant: output of ``posology tenants … --json``."""

    balances: tuple[BalanceOutput, ...]
    """Balances per day, month and in total."""
    key: str | None
    """New API key, shown only once; null: no new key."""


class TenantList(Published):
    """Output of ``posology tenants list --json``."""

    tenants: tuple[TenantSummary, ...]
    """All tenants, by name."""
