"""Money in the demonstration: spending, a cap, and an audit of the ledger."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from orchestrator.cli.money.ledger_view import show_audit, show_spend
from orchestrator.jobs.store import JobStore
from orchestrator.rendering.words import money
from orchestrator.spending import audit_output, spend_output, today
from posology.budget.books.audit import Auditor
from posology.budget.spending.periods import period
from posology.budget.tenants.store import TenantStore
from posology.errors import TenantExists
from posology.published.jobs import JobOutput
from posology.types import Grouping, Limits

#: the offline reader and the model whose prices it is billed at
SHADOW = ("offline:extractive", "openai:gpt-6-luna")
#: dollars per day for the demonstration
DAY = Decimal(1)
#: dollars that no paid call fits into
TOO_LITTLE = Decimal("0.000001")


def shadow_prices(folder: Path) -> Path:
    """Write a price file that bills the offline reader as another model; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "prices.toml"
    reader, other = SHADOW
    path.write_text(f'[shadow]\n"{reader}" = "{other}"\n', encoding="utf-8")
    return path


async def limit(store: JobStore, tenant: str) -> None:
    """Set the budget of the demonstration's tenant."""
    tenants = TenantStore(store.redis, store.url)
    try:
        await tenants.create(tenant, Limits(day=DAY))
    except TenantExists:
        await tenants.limit(tenant, Limits(day=DAY), only=("day",))


async def show_account(console: Console, store: JobStore, tenant: str, capped: JobOutput) -> None:
    """Print spending, remaining budgets, the end of a job with too low a cap, and an audit.

    Args:
        console: to print to.
        store: of the jobs.
        tenant: of the demonstration.
        capped: a job with a cap of :data:`TOO_LITTLE`.
    """
    console.print(Rule("Money: reserved before every call, settled after it", style="dim"))
    days = period(today(), None, today=today())
    show_spend(
        console,
        await spend_output(store.redis, store.url, [tenant], days, Grouping.STRATEGY, single=True),
    )
    ending = capped.error.message if capped.error else str(capped.state)
    console.print(Text(f"job with a cap of {money(TOO_LITTLE)}: {ending}"))
    show_audit(console, audit_output(await Auditor(store.redis, store.url, tenant).verify()))
