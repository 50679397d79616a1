"""The options of what is encoded by workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orchestrator.ingest.shards.processes import Spread

WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        metavar="N",
        help="Encode in this many processes of this machine, which end with the command.",
    ),
]
DistributedOption = Annotated[
    bool,
    typer.Option(
        "--distributed",
        help="Let the workers of the queue posology.ingest encode, on any machines that reach the index and "
        "POSOLOGY_REDIS_URL.",
    ),
]


def spread(workers: int | None, *, distributed: bool) -> Spread | None:
    """Who encodes; ``None``: the command itself.

    Raises:
        BadParameter: both are asked for.
    """
    if workers is None and not distributed:
        return None
    if workers is not None and distributed:
        raise typer.BadParameter("say --workers N or --distributed, not both")
    from orchestrator.ingest.shards.processes import Spread

    return Spread(workers=workers)
