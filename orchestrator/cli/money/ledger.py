"""The ledger: held against its counters, put right, exported, archived."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import (
    SOME_BAD,
    AllOption,
    JsonOption,
    SinceOption,
    TenantOption,
    UntilOption,
    errors,
    print_json,
)
from orchestrator.cli.jobs.store import one_or_all, whose, with_store

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore
    from posology.budget.books.archive import Archived
    from posology.budget.books.audit import Audit, Rebuilt

app = typer.Typer(
    help="Looks after the ledger of model calls: docs/how-to/ledger.md.", no_args_is_help=True
)


@app.command()
def verify(
    *, tenant: TenantOption = None, all_tenants: AllOption = False, as_json: JsonOption = False
) -> None:
    """Compare every counter of money with the entries that it is the sum of.

    Spending may go on meanwhile. The exit status is 1 where something is wrong.
    """
    from orchestrator.cli.money.ledger_view import show_audit
    from orchestrator.spending import audit_output
    from posology.budget.books.audit import Auditor
    from posology.published.money import LedgerOutput

    one_or_all(tenant, all_tenants=all_tenants)
    with errors(as_json=as_json):

        async def work(store: JobStore, tenant: str) -> list[Audit]:
            tenants = await whose(store, tenant, everybody=all_tenants)
            return [await Auditor(store.redis, store.url, name).verify() for name in tenants]

        audits = tuple(audit_output(audit) for audit in with_store(tenant, work))
        out = LedgerOutput(right=all(audit.right for audit in audits), tenants=audits)
        if as_json:
            print_json(out)
        else:
            for audit in audits:
                show_audit(Console(), audit)
    if not out.right:
        raise typer.Exit(SOME_BAD)


@app.command()
def rebuild(
    *, tenant: TenantOption = None, all_tenants: AllOption = False, as_json: JsonOption = False
) -> None:
    """Make every counter of money what the entries add up to, and say what was changed.

    Spending may go on meanwhile. The exit status is 1 where something is still wrong: attempts that
    were reserved and are lost, or under way and never reserved, are told and left as they are.
    """
    from orchestrator.cli.money.ledger_view import show_audit
    from orchestrator.spending import rebuilt_output
    from posology.budget.books.audit import Auditor
    from posology.published.money import RebuiltOutput

    one_or_all(tenant, all_tenants=all_tenants)
    with errors(as_json=as_json):

        async def work(store: JobStore, tenant: str) -> list[Rebuilt]:
            tenants = await whose(store, tenant, everybody=all_tenants)
            return [await Auditor(store.redis, store.url, name).rebuild() for name in tenants]

        rebuilt = tuple(rebuilt_output(one) for one in with_store(tenant, work))
        out = RebuiltOutput(right=all(one.right for one in rebuilt), tenants=rebuilt)
        if as_json:
            print_json(out)
        else:
            for one in rebuilt:
                show_audit(Console(), one, one.changed)
    if not out.right:
        raise typer.Exit(SOME_BAD)


@app.command()
def export(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Its name ends in .jsonl, .csv or .parquet.")
    ],
    *,
    tenant: TenantOption = None,
    all_tenants: AllOption = False,
    since: SinceOption = None,
    until: UntilOption = None,
    job: Annotated[
        str | None, typer.Option(metavar="ID", help="Only attempts of this job or run.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a row for every attempt at a model call. Its columns are in docs/how-to/ledger.md."""
    from posology.budget.books.export import Wanted
    from posology.budget.books.export import export as write
    from posology.budget.spending.periods import read_date
    from posology.published.money import ExportOutput

    one_or_all(tenant, all_tenants=all_tenants)
    with errors(as_json=as_json):
        wanted = Wanted(
            since=None if since is None else read_date(since, "since"),
            until=None if until is None else read_date(until, "until"),
            job=job,
        )

        async def work(store: JobStore, tenant: str) -> ExportOutput:
            tenants = await whose(store, tenant, everybody=all_tenants)
            count = await write(store.redis, store.url, file, tenants, wanted)
            return ExportOutput(path=str(file), tenants=tuple(tenants), attempts=count)

        out = with_store(tenant, work)
        if as_json:
            print_json(out)
        else:
            _say(f"{out.attempts:,} attempts in {out.path}")


@app.command()
def archive(
    *,
    before: Annotated[
        str,
        typer.Option(
            "--before", metavar="DAY", help="Entries of earlier days are moved, e.g. 2026-01-15."
        ),
    ],
    folder: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            file_okay=False,
            help="Always the same: an interrupted run is completed there.",
        ),
    ],
    tenant: TenantOption = None,
    all_tenants: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Move old entries of the ledger into files, one a tenant and run. Counters stay what they are.

    Spending may go on meanwhile. A run that was interrupted has lost nothing: run it again.
    """
    from posology.budget.books.archive import Archive
    from posology.budget.ledger.windows import midnight
    from posology.budget.spending.periods import read_date
    from posology.errors import BadFile
    from posology.published.money import ArchivedFile, ArchiveOutput

    one_or_all(tenant, all_tenants=all_tenants)
    with errors(as_json=as_json):
        start = midnight(read_date(before, "before"))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadFile(error.strerror or str(error), path=str(folder)) from None

        async def work(store: JobStore, tenant: str) -> list[Archived]:
            found: list[Archived] = []
            for name in await whose(store, tenant, everybody=all_tenants):
                move = Archive(store.redis, store.url, tenant=name, folder=folder)
                found += await move(start)
            return found

        out = ArchiveOutput(
            files=tuple(
                ArchivedFile(
                    tenant=one.tenant,
                    path=str(one.path),
                    entries=one.entries,
                    removed=one.removed,
                )
                for one in with_store(tenant, work)
            )
        )
        if as_json:
            print_json(out)
        else:
            for one in out.files:
                _say(f"{one.tenant}: {one.entries:,} entries in {one.path}")
            if not out.files:
                _say(f"there is nothing from before {before}")


def _say(line: str) -> None:
    from orchestrator.cli.terminal import safe

    Console().print(Text(safe(line)), soft_wrap=True)
