"""``posology ingest-uploads`` and ``posology uploads``."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from orchestrator.cli.common import IndexOption, errors, run
from orchestrator.settings import load_settings
from posology.errors import IngestNotFound

if TYPE_CHECKING:
    from orchestrator.ingest.uploads.uploads import Uploads
    from posology.published.ingests import IngestOutput

_T = TypeVar("_T")

app = typer.Typer(help="List and cancel ingests of uploaded files, of all tenants.")


@app.command("list")
def list_() -> None:
    """List the ingests that wait or run, oldest first of each tenant."""
    with errors(as_json=False):
        for tenant, ingests in sorted(_with_uploads(_pending).items()):
            for ingest in ingests:
                total = "?" if ingest.total is None else f"{ingest.total:,}"
                sys.stdout.write(
                    f"{ingest.id}  {tenant}  {ingest.state}  {ingest.done:,} of {total} records  {ingest.bytes:,} bytes  "
                    f"{ingest.name}\n"
                )


@app.command()
def cancel(
    ingest: Annotated[str, typer.Argument(metavar="ID", help="Id of the ingest.")],
) -> None:
    """Cancel an ingest of any tenant. The process that ingests ends it; records that were written before stay."""

    async def cancelled(uploads: Uploads) -> str:
        for tenant, ingests in (await uploads.pending()).items():
            if any(pending.id == ingest for pending in ingests):
                await uploads.cancel(ingest, tenant=tenant)
                return tenant
        raise IngestNotFound(f"no ingest {ingest} waits or runs", ingest=ingest)

    with errors(as_json=False):
        tenant = _with_uploads(cancelled)
        sys.stdout.write(f"{ingest} of {tenant} is cancelled\n")


async def _pending(uploads: Uploads) -> dict[str, list[IngestOutput]]:
    return await uploads.pending()


def _with_uploads(work: Callable[[Uploads], Awaitable[_T]]) -> _T:
    """Return what a function makes of the configured uploads."""
    from orchestrator.ingest.uploads.process import open_stores
    from posology.store.connection import FEW_TRIES

    async def opened() -> _T:
        async with open_stores(load_settings(), patience=FEW_TRIES) as stores:
            return await work(stores.uploads)

    return run(opened)


def ingest_uploads(
    *,
    index: IndexOption = None,
    distributed: Annotated[
        bool,
        typer.Option(
            "--distributed",
            help="Encode on the running workers of the queue posology.ingest. They must reach the index and "
            "POSOLOGY_REDIS_URL.",
        ),
    ] = False,
) -> None:
    """Ingest the files that tenants upload over HTTP, one after the other, and read their tables, until Ctrl-C.

    Files and tables wait in POSOLOGY_UPLOADS, which the API must share, and in Redis. A file or table that is being read when
    the process ends resumes at the next start; a second process takes over when the first one ends.
    """
    from orchestrator.ingest.shards.processes import Spread
    from orchestrator.ingest.uploads.process import serve
    from orchestrator.logs.configuration import configure
    from orchestrator.service import index_place

    with errors(as_json=False):
        settings = load_settings()
        if index is not None:
            settings = settings.model_copy(update={"index": str(index_place(settings, index))})
        configure(settings)
        serve(settings, Spread() if distributed else None)
