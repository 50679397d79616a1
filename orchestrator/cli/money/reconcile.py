"""The ``reconcile`` command: compare the ledger with a provider's account."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import (
    AllOption,
    SinceOption,
    TenantOption,
    UntilOption,
    errors,
    fail,
    print_json,
)
from orchestrator.cli.jobs.store import one_or_all, whose, with_store
from orchestrator.cli.option_groups import Group, grouped
from orchestrator.cli.output.formats import TableFormat, TableOptions

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore
    from posology.budget.reconcile.reconciler import Reconciler
    from posology.budget.reconcile.report import ReconcileOutput

_LAST = date.max - timedelta(days=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonOptions(Group):
    """Scope of a comparison, and tolerated differences."""

    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            metavar="NAME",
            help="Provider of files that do not name it: openai or anthropic.",
        ),
    ] = None
    since: SinceOption = None
    until: UntilOption = None
    threshold: Annotated[
        str,
        typer.Option("--threshold", metavar="SHARE", help="Relative difference to tolerate."),
    ] = "0.01"
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            metavar="SECONDS",
            min=0,
            max=3_600,
            help="Maximum clock difference at midnight in seconds.",
        ),
    ] = 60.0

    def reconciler(self, exports: list[Path]) -> Reconciler:
        """Read the exports.

        Raises:
            BadFile: an export cannot be read.
        """
        from posology.budget.ledger.windows import midnight
        from posology.budget.reconcile.reconciler import Reconciler
        from posology.budget.spending.periods import read_date

        first = None if self.since is None else read_date(self.since, "since")
        # the period ends at the next midnight, which the last possible day lacks
        last = None if self.until is None else min(read_date(self.until, "until"), _LAST)
        return Reconciler(
            exports,
            provider=self.provider,
            since=None if first is None else midnight(first).timestamp(),
            until=None if last is None else midnight(last + timedelta(days=1)).timestamp(),
            threshold=_share(self.threshold),
            tolerance=self.tolerance,
        )


@grouped
def reconcile(
    exports: Annotated[
        list[Path],
        typer.Argument(metavar="EXPORT", help="Usage or cost exports of the provider."),
    ],
    *,
    tenant: TenantOption = None,
    all_tenants: AllOption = False,
    options: ComparisonOptions,
    archive: Annotated[
        list[Path] | None,
        typer.Option(
            "--archive", metavar="FILE", help="Archive file of `ledger archive`. Repeatable."
        ),
    ] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Also write the report as JSON.")
    ] = None,
    output: TableOptions,
) -> None:
    """Compare the ledger with a provider's usage and cost exports.

    Several files may be given: pages, days, usage and costs. Exit status 14: there is a difference that calls of
    unknown cost do not explain. docs/how-to/reconciliation.md explains how to get exports.
    """
    from orchestrator.cli.money.reconcile_view import reconcile_csv, show_reconcile
    from posology.budget.books.archive.files import written
    from posology.budget.reconcile.records import PROVIDERS

    one_or_all(tenant, all_tenants=all_tenants)
    if options.provider not in (None, *PROVIDERS):
        names = ", ".join(PROVIDERS)
        raise typer.BadParameter(f"--provider must be one of {names} (got {options.provider!r})")
    form = output.chosen()
    with errors(as_json=form is TableFormat.JSON):
        reconciler = options.reconciler(exports)

        async def work(store: JobStore, tenant: str) -> ReconcileOutput:
            tenants = await whose(store, tenant, everybody=all_tenants)
            return await _compare(reconciler, store, tenants, archive or [])

        out = with_store(tenant, work)
        if out_file is not None:
            with written(out_file) as file:
                file.write(out.model_dump_json(indent=2).encode() + b"\n")
        if form is TableFormat.JSON:
            print_json(out)
        elif form is TableFormat.CSV:
            reconcile_csv(out)
        else:
            show_reconcile(Console(), out)
    if found := out.drift():
        if form is not TableFormat.JSON:
            fail(found.message)
        raise typer.Exit(found.exit_code)


async def _compare(
    reconciler: Reconciler, store: JobStore, tenants: list[str], archive: list[Path]
) -> ReconcileOutput:
    from posology.budget.books.reader import Reader
    from posology.budget.reconcile.ours import attempts

    notes: list[str] = []
    for name in tenants:
        async for attempt in attempts(
            Reader(store.redis, store.url, name), archive, since=reconciler.since, notes=notes
        ):
            reconciler.add(attempt)
    return reconciler.result(tenants, notes)


def _share(text: str) -> Decimal:
    try:
        share = Decimal(text)
    except InvalidOperation:
        share = Decimal(-1)
    if not share.is_finite() or not 0 <= share <= 1:
        raise typer.BadParameter(f"--threshold must be from 0 to 1, e.g. 0.01 (got {text!r})")
    return share
