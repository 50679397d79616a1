"""Published form and terminal view of tenants."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from orchestrator.cli.money.tenants_form import (
    LimitsOutput,
    TenantOutput,
    TenantSummary,
)
from orchestrator.cli.output.tables import print_facts, print_form
from orchestrator.rendering.forms.columns import Value, enabled, table
from orchestrator.rendering.forms.money import TENANTS, limits
from orchestrator.rendering.forms.money import balances as balances_table
from orchestrator.rendering.words import moment
from orchestrator.spending import balance_outputs
from posology.budget.ledger.refusals import plain
from posology.budget.tenants.limits import FIELDS, MONEY
from posology.budget.tenants.store import Tenant
from posology.types import Balance

#: names in the published form, where they have a unit
_PUBLISHED = {**{name: f"{name}_usd" for name in MONEY}, "stored": "stored_mib"}
_LISTED = "tenant, state, day, month, total, job, keys"


def tenant_summary(tenant: Tenant) -> TenantSummary:
    """Return the published form of a tenant."""
    fields = {_PUBLISHED.get(name, name): getattr(tenant.limits, name) for name in FIELDS}
    return TenantSummary(
        name=tenant.name,
        disabled=tenant.disabled,
        limits=LimitsOutput(**fields),
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
        balances=balance_outputs(tenant.name, balances),
        key=key,
    )


def show_tenants(console: Console, tenants: Sequence[Tenant]) -> None:
    """Print a table of tenants."""
    print_form(console, table(TENANTS, tenants, _LISTED))


def show_tenant(console: Console, tenant: Tenant, balances: Sequence[Balance]) -> None:
    """Print the limits, balances and keys of a tenant."""
    found: list[tuple[str, Value]] = [
        ("state", enabled(disabled=tenant.disabled)),
        ("created", tenant.created),
        ("changed", tenant.changed),
        *((name, value) for _, name, value in limits(tenant.limits)),
    ]
    for key in tenant.keys:
        ends = "" if key.expires is None else f", expires {moment(key.expires)} UTC"
        found.append(("key", f"{key.id}, created {moment(key.created)} UTC{ends}"))
    print_facts(console, found, title=tenant.name)
    print_form(console, balances_table(balance_outputs(tenant.name, balances)))


def exhausted(balances: Sequence[Balance]) -> list[str]:
    """Return a line for each spent budget."""
    found = []
    for one in balances:
        if one.cap is not None and one.left == 0:
            until = "" if one.resets is None else f" until {moment(one.resets)} UTC"
            reserved = f" and ${plain(one.reserved)} reserved" if one.reserved else ""
            found.append(
                f"{one.scope} budget of ${plain(one.cap)}: ${plain(one.spent)} spent{reserved}. "
                f"Paid calls fail{until}."
            )
    return found
