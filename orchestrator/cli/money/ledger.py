"""The ``ledger`` commands: verify, rebuild, settle-orphans, export, archive, mirror."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from orchestrator.cli.common import (
    AllOption,
    JsonOption,
    SinceOption,
    TenantOption,
    UntilOption,
    errors,
    print_json,
)
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.jobs.store import one_or_all, whose, with_store
from orchestrator.cli.output.tables import print_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from orchestrator.jobs.store import JobStore
    from posology.budget.books.archive.moving import Archived

T = TypeVar("T")

app = typer.Typer(
    help="Check, repair, export, archive and mirror the ledger of model calls (docs/how-to/ledger.md).",
)


@app.command()
def verify(
    *,
    archive: Annotated[
        Path | None,
        typer.Option(
            "--archive",
            metavar="DIR",
            file_okay=False,
            help="Folder of the archive. Its files are checked as well.",
        ),
    ] = None,
    tenant: TenantOption = None,
    all_tenants: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check that every counter equals the sum of its ledger entries.

    With --archive, also check that no archived entry was changed, dropped, moved or cut off. Jobs may run meanwhile.
    Exit status 1: a counter differs, or the archive is wrong.
    """
    from orchestrator.cli.money.ledger_view import show_audit
    from orchestrator.spending import audit_output
    from posology.budget.books.archive.inspection import Inspector
    from posology.budget.books.audit import Auditor
    from posology.budget.books.form import LedgerAudit, LedgerOutput

    one_or_all(tenant, all_tenants=all_tenants)
    with errors(as_json=as_json):

        async def verified(store: JobStore, name: str) -> LedgerAudit:
            place = store.redis, store.url, name
            inspected = None if archive is None else await Inspector(*place, archive)()
            return audit_output(await Auditor(*place).verify(), inspected)

        audits = _each(tenant, verified, all_tenants=all_tenants)
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
    """Set every counter to the sum of its ledger entries, and print the changes.

    Jobs may run meanwhile. Exit status 1: problems remain. Orphaned reservations, and attempts in flight without a
    reservation, are reported and not changed; settle-orphans ends the former.
    """
    from orchestrator.cli.money.ledger_view import show_audit
    from orchestrator.spending import rebuilt_output
    from posology.budget.books.audit import Auditor
    from posology.budget.books.form import LedgerRebuilt, RebuiltOutput

    one_or_all(tenant, all_tenants=all_tenants)
    with errors(as_json=as_json):

        async def corrected(store: JobStore, name: str) -> LedgerRebuilt:
            return rebuilt_output(await Auditor(store.redis, store.url, name).rebuild())

        rebuilt = _each(tenant, corrected, all_tenants=all_tenants)
        out = RebuiltOutput(right=all(one.right for one in rebuilt), tenants=rebuilt)
        if as_json:
            print_json(out)
        else:
            for one in rebuilt:
                show_audit(Console(), one, one.changed)
    if not out.right:
        raise typer.Exit(SOME_BAD)


@app.command("settle-orphans")
def settle_orphans(
    *,
    attempts: Annotated[
        list[str] | None,
        typer.Option("--attempt", metavar="ID", help="Settle only this attempt. Repeatable."),
    ] = None,
    hours: Annotated[
        float,
        typer.Option(
            "--hours",
            min=1,
            metavar="N",
            help="Minimum age of a reservation, hours, at least 1. A younger one may still be in use.",
        ),
    ] = 24,
    not_billed: Annotated[
        bool,
        typer.Option(
            "--not-billed",
            help="Free the money: the provider did not bill these attempts.",
        ),
    ] = False,
    archive: Annotated[
        Path | None,
        typer.Option(
            "--archive",
            metavar="DIR",
            file_okay=False,
            help="Folder of the archive, for reservations whose entries are archived.",
        ),
    ] = None,
    tenant: TenantOption = None,
    all_tenants: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Charge orphaned reservations at their bounds, by an entry for each.

    Jobs may run meanwhile, and the command may be repeated: each is settled once. A late report within a day still
    corrects a charge. Exit status 1: problems remain.
    """
    from orchestrator.cli.money.ledger_view import show_settled
    from orchestrator.spending import settled_output
    from posology.budget.books.form import LedgerSettled, SettledOutput
    from posology.budget.books.orphans import Orphans

    one_or_all(tenant, all_tenants=all_tenants)
    with errors(as_json=as_json):

        async def ended(store: JobStore, name: str) -> LedgerSettled:
            settle = Orphans(store.redis, store.url, name, archive=archive)
            orphans = await settle(billed=not not_billed, age=hours * 3600, only=attempts or ())
            return settled_output(orphans, billed=not not_billed)

        settled = _each(tenant, ended, all_tenants=all_tenants)
        out = SettledOutput(right=all(one.right for one in settled), tenants=settled)
        if as_json:
            print_json(out)
        else:
            for one in out.tenants:
                show_settled(Console(), one)
    if not out.right:
        raise typer.Exit(SOME_BAD)


@app.command()
def export(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File to write: .jsonl, .csv or .parquet.")
    ],
    *,
    tenant: TenantOption = None,
    all_tenants: AllOption = False,
    since: SinceOption = None,
    until: UntilOption = None,
    job: Annotated[
        str | None, typer.Option(metavar="ID", help="Export only attempts of this job or run.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Export one row per attempt of a model call. docs/how-to/ledger.md lists the columns."""
    from posology.budget.books.export import Wanted
    from posology.budget.books.export import export as write
    from posology.budget.books.form import ExportOutput
    from posology.budget.spending.periods import read_date

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
            _print(f"{out.attempts:,} attempts written to {out.path}")


@app.command()
def archive(
    *,
    before: Annotated[
        str,
        typer.Option(
            "--before",
            metavar="DAY",
            help="Archive entries of days before this one, e.g. 2026-01-15.",
        ),
    ],
    folder: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            file_okay=False,
            help="Folder of the archive. Always use the same one: an interrupted run is completed there.",
        ),
    ],
    tenant: TenantOption = None,
    all_tenants: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Move old ledger entries to files, one per tenant and run. Counters do not change.

    Jobs may run meanwhile. If a run is interrupted, no entry is lost: run the command again.
    """
    from posology.budget.books.archive.moving import Archive
    from posology.budget.books.form import ArchivedFile, ArchiveOutput
    from posology.budget.ledger.windows import midnight
    from posology.budget.spending.periods import read_date
    from posology.errors import BadFile

    one_or_all(tenant, all_tenants=all_tenants)
    with errors(as_json=as_json):
        start = midnight(read_date(before, "before"))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadFile(error.strerror or str(error), path=str(folder)) from None

        async def moved(store: JobStore, name: str) -> list[Archived]:
            return await Archive(store.redis, store.url, tenant=name, folder=folder)(start)

        out = ArchiveOutput(
            files=tuple(
                ArchivedFile(
                    tenant=one.tenant,
                    path=str(one.path),
                    entries=one.entries,
                    removed=one.removed,
                )
                for files in _each(tenant, moved, all_tenants=all_tenants)
                for one in files
            )
        )
        if as_json:
            print_json(out)
        else:
            for one in out.files:
                _print(f"{one.tenant}: {one.entries:,} entries moved to {one.path}")
            if not out.files:
                _print(f"no entries before {before}")


@app.command()
def mirror(
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="URL",
            help="Database, as postgresql://USER@HOST/DATABASE. The password: PGPASSWORD or ~/.pgpass.",
        ),
    ],
    archive: Annotated[
        Path | None,
        typer.Option(
            "--archive",
            metavar="DIR",
            file_okay=False,
            help="Folder of the archive, for archived entries that the mirror lacks.",
        ),
    ] = None,
    tenant: TenantOption = None,
    all_tenants: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Copy new ledger entries to a Postgres database, one row per entry.

    The tables are created. Jobs may run meanwhile. If a run is interrupted, run the command again: no entry is lost or
    doubled. Exit status 1: the sums of a mirror differ from its ledger's.
    """
    from orchestrator.spending import mirror_output
    from posology.budget.books.form import MirrorOutput
    from posology.budget.books.mirror import Mirror, Mirrored, open_mirror

    one_or_all(tenant, all_tenants=all_tenants)
    with errors(as_json=as_json):

        async def work(store: JobStore, tenant: str) -> list[Mirrored]:
            tenants = await whose(store, tenant, everybody=all_tenants)
            async with open_mirror(to) as database:
                copy = Mirror(store.redis, store.url, database, folder=archive)
                return [await copy(name) for name in tenants]

        found = tuple(mirror_output(one) for one in with_store(tenant, work))
        out = MirrorOutput(right=all(one.right for one in found), tenants=found)
        if as_json:
            print_json(out)
        else:
            for one in found:
                word = "correct" if one.right else "DIFFERS"
                _print(
                    f"{one.tenant}  {word}  {one.written:,} entries written, {one.mirror.entries:,} in the mirror, "
                    f"{one.ledger.entries:,} in the ledger; ${one.mirror.spent_usd} and ${one.ledger.spent_usd} spent"
                )
    if not out.right:
        raise typer.Exit(SOME_BAD)


def _each(
    tenant: str | None, work: Callable[[JobStore, str], Awaitable[T]], *, all_tenants: bool
) -> tuple[T, ...]:
    """Do some work for the ledger of a tenant, or of each."""

    async def of_each(store: JobStore, tenant: str) -> tuple[T, ...]:
        names = await whose(store, tenant, everybody=all_tenants)
        return tuple([await work(store, name) for name in names])

    return with_store(tenant, of_each)


def _print(line: str) -> None:
    print_line(Console(), line)
