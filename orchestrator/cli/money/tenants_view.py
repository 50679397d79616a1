"""Published form and terminal view of tenants."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from rich.console import Console
from rich.text import Text

from orchestrator.cli.money.tenants_form import (
    LimitsOutput,
    TenantOutput,
    TenantSummary,
)
from orchestrator.cli.output.tables import plain_table, print_facts, print_table
from orchestrator.rendering.words import safe
from orchestrator.spending import balance_fields
from posology.budget.ledger.refusals import plain
from posology.budget.tenants.limits import FIELDS
from posology.budget.tenants.store import Tenant
from posology.published.money import BalanceOutput
from posology.types import Balance, Limits

_MONEY = ("day", "month", "total", "job")
_NAMES = {
    "day": "budget per day (UTC)",
    "month": "budget per month (UTC)",
    "total": "total budget",
    "job": "budget per job",
    "models": "models",
    "calls": "concurrent calls",
    "requests_per_minute": "requests per minute",
    "tokens_per_minute": "tokens per minute",
    "queued": "waiting jobs",
    "stored": "MiB of records in Redis",
    "may_ingest": "may add literature",
}
#: names in the published form, where they have a unit
_PUBLISHED = {**{name: f"{name}_usd" for name in _MONEY}, "stored": "stored_mib"}
#: text of a limit that is not set
_UNSET = {"models": "all", "queued": "the installation's", "stored": "the installation's"}
_NONE = "–"


def tenant_summary(tenant: Tenant) -> TenantSummary:
    """Return the published form of a tenant."""
    limits = {_PUBLISHED.get(name, name): getattr(tenant.limits, name) for name in FIELDS}
    return TenantSummary(
        name=tenant.name,
        disabled=tenant.disabled,
        limits=LimitsOutput(**limits),
        created=tenant.created,
        changed=tenant.changed,
        keys=tenant.keys,
    )


def tenant_output(
    tenant: Tenant, balances: Sequence[Balance], *, key: str | None = None
) -> TenantOutput:
    """Return the published form of a tenant with its balances.

    Args:
        tenant: to publish.
        balances: of its budgets.
        key: a new API key.
    """
    summary = tenant_summary(tenant)
    return TenantOutput(
        **{name: getattr(summary, name) for name in TenantSummary.model_fields},
        balances=tuple(BalanceOutput(**balance_fields(tenant.name, one)) for one in balances),
        key=key,
    )


def show_tenants(console: Console, tenants: Sequence[Tenant]) -> None:
    """Print a table of tenants."""
    table = plain_table(
        "tenant",
        "state",
        "$/day",
        "$/month",
        "$ total",
        "$/job",
        "keys",
        left=("tenant", "state", "keys"),
    )
    for tenant in tenants:
        caps = [getattr(tenant.limits, name) for name in _MONEY]
        table.add_row(
            Text(safe(tenant.name)),
            _state(disabled=tenant.disabled),
            *(_NONE if cap is None else plain(cap) for cap in caps),
            str(len(tenant.keys)),
        )
    print_table(console, table)


def show_tenant(console: Console, tenant: Tenant, balances: Sequence[Balance]) -> None:
    """Print the limits, balances and keys of a tenant."""
    facts: list[tuple[str, str | Text]] = [
        ("state", _state(disabled=tenant.disabled)),
        ("created", _time(tenant.created)),
        ("changed", _time(tenant.changed)),
        *((_NAMES[name], _limit(tenant.limits, name)) for name in FIELDS),
    ]
    for key in tenant.keys:
        ends = "" if key.expires is None else f", expires {_time(key.expires)}"
        facts.append(("key", f"{key.id}, created {_time(key.created)}{ends}"))
    print_facts(console, facts, title=tenant.name)
    money = plain_table(
        "budget", "limit", "spent", "reserved", "remaining", "resets", left=("budget",)
    )
    for one in balances:
        amounts = (one.cap, one.spent, one.reserved, one.left)
        money.add_row(
            one.scope.value,
            *(_NONE if amount is None else f"${plain(amount)}" for amount in amounts),
            _NONE if one.resets is None else f"{one.resets:%Y-%m-%d %H:%M} UTC",
        )
    print_table(console, money)


def exhausted(balances: Sequence[Balance]) -> list[str]:
    """Return a line for each spent budget."""
    found = []
    for one in balances:
        if one.cap is not None and one.left == 0:
            until = "" if one.resets is None else f" until {one.resets:%Y-%m-%d %H:%M} UTC"
            reserved = f" and ${plain(one.reserved)} reserved" if one.reserved else ""
            found.append(
                f"{one.scope} budget of ${plain(one.cap)}: ${plain(one.spent)} spent{reserved}. "
                f"Paid calls fail{until}."
            )
    return found


def _state(*, disabled: bool) -> Text:
    return Text("disabled", style="red") if disabled else Text("active", style="green")


def _limit(limits: Limits, name: str) -> Text:
    value = getattr(limits, name)
    if value is None:
        return Text(_UNSET.get(name, "no limit"), style="dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, Decimal):
        return Text(f"${plain(value)}")
    return Text(safe(", ".join(value)) if name == "models" else f"{value:,}")


def _time(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}"
