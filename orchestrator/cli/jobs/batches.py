"""``posology batches``: batches are listed, inspected and cancelled."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, TenantOption, errors, print_json
from orchestrator.cli.jobs.store import with_store
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.output.formats import OutputOptions
from orchestrator.cli.output.streams import takes_all
from orchestrator.cli.output.write import write_form
from orchestrator.rendering.kinds import Format
from orchestrator.settings import load_settings
from posology.types import BatchState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from orchestrator.jobs.batches import Batches
    from posology.published.jobs import BatchOutput, BatchPage, BatchRow

_Found = TypeVar("_Found")
app = typer.Typer(help="List, inspect and cancel batches in the queue.")

#: rows that are read at a time
_PAGE = 100
BatchArgument = Annotated[str, typer.Argument(metavar="ID", help="Batch id.")]


@app.command("list")
def list_(
    *,
    tenant: TenantOption = None,
    state: Annotated[
        BatchState | None, typer.Option(help="Only batches in this state.", case_sensitive=False)
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=500, help="Maximum number of batches. Default: 20.")
    ] = 20,
    after: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Cursor that the previous page ends with."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show batches, newest first."""
    from orchestrator.cli.jobs.view import show_batches

    with errors(as_json=as_json):

        async def work(batches: Batches, tenant: str) -> BatchPage:
            return await batches.page(tenant=tenant, state=state, cursor=after, limit=limit)

        page = _with_batches(tenant, work)
        if as_json:
            print_json(page)
            return
        show_batches(Console(), page.batches)
        if page.next:
            sys.stderr.write(f"more: --after {page.next}\n")


@app.command()
@grouped
def show(batch: BatchArgument, *, tenant: TenantOption = None, output: OutputOptions) -> None:
    """Show a batch: the number of jobs in each state, and the cost so far.

    With --format, print its rows as they are now instead: an evidence table, or each quoted article once.
    """
    form = output.chosen()
    with errors(as_json=form is Format.JSON):
        if form not in (Format.TEXT, Format.JSON):
            _with_batches(tenant, lambda batches, tenant: _export(batches, batch, tenant, form))
            return
        _print(
            _with_batches(tenant, lambda batches, tenant: batches.get(batch, tenant=tenant)),
            as_json=form is Format.JSON,
        )


@app.command()
def cancel(
    batch: BatchArgument, *, tenant: TenantOption = None, as_json: JsonOption = False
) -> None:
    """Cancel the jobs of a batch that have not ended, and submit no more of its rows.

    Answers that exist are kept. Run an interrupted cancellation again: it continues.
    """
    with errors(as_json=as_json):
        _print(
            _with_batches(tenant, lambda batches, tenant: batches.cancel(batch, tenant=tenant)),
            as_json=as_json,
        )


async def _export(batches: Batches, batch: str, tenant: str, form: Format) -> None:
    """Write the rows of a batch to standard output."""
    from orchestrator.rendering.exports import export_pages

    async def pages() -> AsyncIterator[list[BatchRow]]:
        after = -1
        while page := await batches.rows(batch, tenant=tenant, after=after, limit=_PAGE):
            yield page
            after = page[-1].row

    texts = export_pages(pages(), form)
    if not takes_all():
        # one encoding for all pages
        write_form("".join([text async for text in texts]), form)
        return
    async for text in texts:
        write_form(text, form)


def _print(batch: BatchOutput, *, as_json: bool) -> None:
    from orchestrator.cli.jobs.view import show_batches

    if as_json:
        print_json(batch)
    else:
        show_batches(Console(), [batch])


def _with_batches(tenant: str | None, work: Callable[[Batches, str], Awaitable[_Found]]) -> _Found:
    from orchestrator.jobs.batches import Batches

    settings = load_settings()
    return with_store(tenant, lambda store, tenant: work(Batches(store, settings), tenant))
