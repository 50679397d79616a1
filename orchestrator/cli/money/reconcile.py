"""Compares the ledger with what a provider says that was used."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import (
    AllOption,
    JsonOption,
    SinceOption,
    TenantOption,
    UntilOption,
    errors,
    fail,
    print_json,
)
from orchestrator.cli.jobs.store import one_or_all, whose, with_store

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore
    from posology.budget.reconcile.reconciler import Reconciler
    from posology.budget.reconcile.report import Reconciliation
    from posology.published.reconciliation import ReconcileOutput

_LAST = date.max - timedelta(days=1)


def reconcile(
    exports: Annotated[
        list[Path],
        typer.Argument(metavar="EXPORT…", help="Usage or costs as the provider exports them."),
    ],
    *,
    provider: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="openai or anthropic, where a file does not say."),
    ] = None,
    tenant: TenantOption = None,
    all_tenants: AllOption = False,
    since: SinceOption = None,
    until: UntilOption = None,
    threshold: Annotated[
        str, typer.Option(metavar="SHARE", help="Of an amount, up to which a drift passes.")
    ] = "0.01",
    tolerance: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0, max=3_600, help="By which clocks may differ at midnight."
        ),
    ] = 60.0,
    archive: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Entries that `ledger archive` moved; repeat for each."),
    ] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the report as JSON, too.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the ledger with a provider's own account of what was used and paid.

    Several files may be given: pages, days, usage and costs. The exit status is 14 where something
    drifts that calls of unknown cost do not explain. docs/how-to/reconciliation.md says how to fetch exports.
    """
    from orchestrator.cli.money.reconcile_view import reconcile_output, show_reconcile
    from posology.budget.books.files import written
    from posology.budget.ledger.windows import midnight
    from posology.budget.reconcile.formats.exports import PROVIDERS
    from posology.budget.reconcile.reconciler import Reconciler
    from posology.budget.spending.periods import read_date

    one_or_all(tenant, all_tenants=all_tenants)
    if provider not in (None, *PROVIDERS):
        raise typer.BadParameter(f"--provider is one of {', '.join(PROVIDERS)}")
    with errors(as_json=as_json):
        first = None if since is None else read_date(since, "since")
        # the end is the midnight after, which the last of all days does not have
        last = None if until is None else min(read_date(until, "until"), _LAST)
        made = Reconciler(
            exports,
            provider=provider,
            since=None if first is None else midnight(first).timestamp(),
            until=None if last is None else midnight(last + timedelta(days=1)).timestamp(),
            threshold=_share(threshold),
            tolerance=tolerance,
        )

        async def work(store: JobStore, tenant: str) -> Reconciliation:
            tenants = await whose(store, tenant, everybody=all_tenants)
            return await _compared(made, store, tenants, archive or [])

        out = reconcile_output(with_store(tenant, work))
        if out_file is not None:
            with written(out_file) as file:
                file.write(out.model_dump_json(indent=2).encode() + b"\n")
        if as_json:
            print_json(out)
        else:
            show_reconcile(Console(), out)
    _end(out, as_json=as_json)


async def _compared(
    made: Reconciler, store: JobStore, tenants: list[str], archive: list[Path]
) -> Reconciliation:
    from posology.budget.books.reader import Reader
    from posology.budget.reconcile.ours import attempts

    notes: list[str] = []
    for name in tenants:
        async for attempt in attempts(
            Reader(store.redis, store.url, name), archive, since=made.since, notes=notes
        ):
            made.add(attempt)
    return made.result(tenants, notes)


def _end(out: ReconcileOutput, *, as_json: bool) -> None:
    """End with the status of :class:`~posology.errors.DriftFound` where something drifts."""
    from orchestrator.cli.money.reconcile_view import drift

    found = drift(out)
    if found is None:
        return
    if not as_json:
        fail(found.message)
    raise typer.Exit(found.exit_code)


def _share(text: str) -> Decimal:
    try:
        share = Decimal(text)
    except InvalidOperation:
        share = Decimal(-1)
    if not share.is_finite() or not 0 <= share <= 1:
        raise typer.BadParameter("--threshold is a share, such as 0.01 for a hundredth")
    return share
