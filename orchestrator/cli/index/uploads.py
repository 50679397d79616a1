"""``posology ingest-uploads`` and ``posology uploads``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.common import IndexOption, errors
from orchestrator.settings import load_settings
from posology.errors import IngestNotFound

if TYPE_CHECKING:
    from orchestrator.ingest.uploads.folder import Uploads

app = typer.Typer(help="List and cancel ingests of uploaded files, of all tenants.")


@app.command("list")
def list_() -> None:
    """List the ingests that wait or run in the folder of POSOLOGY_UPLOADS, oldest first of each tenant."""
    with errors(as_json=False):
        for tenant, ones in sorted(_uploads().pending().items()):
            for one in ones:
                total = "?" if one.total is None else f"{one.total:,}"
                sys.stdout.write(
                    f"{one.id}  {tenant}  {one.state}  {one.done:,} of {total} records  {one.bytes:,} bytes  {one.name}\n"
                )


@app.command()
def cancel(
    ingest: Annotated[str, typer.Argument(metavar="ID", help="Id of the ingest.")],
) -> None:
    """Cancel an ingest of any tenant. The process that ingests ends it; records that were written before stay."""
    with errors(as_json=False):
        uploads = _uploads()
        for tenant, ones in uploads.pending().items():
            if any(one.id == ingest for one in ones):
                uploads.cancel(ingest, tenant=tenant)
                sys.stdout.write(f"{ingest} of {tenant} is cancelled\n")
                return
        raise IngestNotFound(f"no ingest {ingest} waits or runs", ingest=ingest)


def _uploads() -> Uploads:
    from orchestrator.ingest.uploads.folder import Uploads
    from orchestrator.ingest.uploads.process import uploads_folder

    return Uploads(uploads_folder(load_settings()))


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

    Files and tables wait in the folder of POSOLOGY_UPLOADS, which the API must share. One process of a folder does this; a
    file or table that is being read when it ends resumes at the next start.
    """
    from orchestrator.ingest.shards.processes import Spread
    from orchestrator.ingest.uploads.process import serve
    from orchestrator.logs.configuration import configure

    with errors(as_json=False):
        settings = load_settings()
        if index is not None:
            settings = settings.model_copy(update={"index": index})
        configure(settings)
        serve(settings, Spread() if distributed else None)
