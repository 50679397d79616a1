"""``posology ingest-uploads``."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.cli.common import IndexOption, errors
from orchestrator.settings import load_settings


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
