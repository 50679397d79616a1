"""The ``spend`` command: spending by group, and the remaining budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import (
    AllOption,
    SinceOption,
    TenantOption,
    UntilOption,
    errors,
    print_json,
)
from orchestrator.cli.jobs.store import one_or_all, whose, with_store
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.output.formats import TableFormat, TableOptions
from posology.types import Grouping

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore
    from posology.published.money import SpendOutput


@grouped
def spend(
    *,
    by: Annotated[Grouping, typer.Option(case_sensitive=False, help="Group by.")] = Grouping.DAY,
    tenant: TenantOption = None,
    all_tenants: AllOption = False,
    since: SinceOption = None,
    until: UntilOption = None,
    output: TableOptions,
) -> None:
    """Show spending and remaining budgets. --by tenant covers all tenants.

    Calls of unknown cost count at their bounds. --format csv prints the groups alone. Default period: the last 30 days.
    """
    from orchestrator.cli.money.ledger_view import show_spend, spend_csv
    from orchestrator.spending import spend_output, today
    from posology.budget.spending.periods import period, read_date

    one_or_all(tenant, all_tenants=all_tenants)
    form = output.chosen()
    with errors(as_json=form is TableFormat.JSON):
        days = period(
            None if since is None else read_date(since, "since"),
            None if until is None else read_date(until, "until"),
            today=today(),
        )
        everybody = all_tenants or (by is Grouping.TENANT and tenant is None)

        async def work(store: JobStore, tenant: str) -> SpendOutput:
            tenants = await whose(store, tenant, everybody=everybody)
            return await spend_output(
                store.redis, store.url, tenants, days, by, single=not everybody
            )

        out = with_store(tenant, work)
        if form is TableFormat.JSON:
            print_json(out)
        elif form is TableFormat.CSV:
            spend_csv(out)
        else:
            show_spend(Console(), out)
