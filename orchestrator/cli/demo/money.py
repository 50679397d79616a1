"""The part of the demonstration that is about money: what it came to, what a cap does, and that the books agree."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from orchestrator.cli.money.ledger_view import show_audit, show_spend
from orchestrator.cli.terminal import money
from orchestrator.jobs.store import JobStore
from orchestrator.spending import audit_output, spend_output, today
from posology.budget.books.audit import Auditor
from posology.budget.spending.periods import period
from posology.budget.tenants.store import TenantStore
from posology.errors import TenantExists
from posology.published.jobs import JobOutput
from posology.types import Grouping, Limits

#: what the offline reader is billed as, so that there is something to see
SHADOW = ("offline:extractive", "openai:gpt-4o-mini")
#: dollars that the demonstration may spend on one day
DAY = Decimal(1)
#: dollars that pay for no call to any model that costs anything
TOO_LITTLE = Decimal("0.000001")


def shadow_prices(folder: Path) -> Path:
    """A file of prices by which the offline reader is billed as if it were another model."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "prices.toml"
    reader, other = SHADOW
    path.write_text(f'[shadow]\n"{reader}" = "{other}"\n', encoding="utf-8")
    return path


async def limit(store: JobStore, tenant: str) -> None:
    """Give the demonstration's tenant a budget."""
    tenants = TenantStore(store.redis, store.url)
    try:
        await tenants.create(tenant, Limits(day=DAY))
    except TenantExists:
        await tenants.limit(tenant, Limits(day=DAY), only=("day",))


async def show_account(console: Console, store: JobStore, tenant: str, capped: JobOutput) -> None:
    """What was spent and how the limits stand, what became of a job with too low a cap, and an audit.

    Args:
        console: to print to.
        store: of the jobs.
        tenant: whose.
        capped: a job that might cost no more than :data:`TOO_LITTLE`.
    """
    console.print(Rule("Money: reserved before every call, settled after it", style="dim"))
    days = period(today(), None, today=today())
    show_spend(
        console,
        await spend_output(store.redis, store.url, [tenant], days, Grouping.STRATEGY, one=True),
    )
    said = capped.error.message if capped.error else f"it has {capped.state}"
    console.print(Text(f"a job that may cost {money(TOO_LITTLE)}: {said}"))
    show_audit(console, audit_output(await Auditor(store.redis, store.url, tenant).verify()))
