"""Makes a new Q-table of one and of the feedback that came to it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import SOME_BAD, JsonOption, TenantOption, errors, print_json
from orchestrator.cli.jobs.store import with_store

if TYPE_CHECKING:
    from orchestrator.jobs.feedback import Collected
    from orchestrator.jobs.store import JobStore


def promote(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The Q-table that answers.")],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the new one goes.")],
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a Q-table that has learned from a tenant's feedback, too, and say what it chooses otherwise.

    Nothing decides by it until POSOLOGY_QTABLE names it. The feedback stays with the table that it came to:
    promoting that one again counts it once. The exit status is 1 where none came.
    """
    with errors(as_json=as_json):
        from orchestrator.cli.policy.table_view import show_promotion
        from orchestrator.jobs.feedback import collect
        from orchestrator.question.qtables import load, save
        from orchestrator.training.qtable.promotion import merge

        table = load(file)

        async def work(store: JobStore, tenant: str) -> tuple[str, Collected]:
            return tenant, await collect(store, table.digest, tenant=tenant)

        whose, collected = with_store(tenant, work)
        promoted, said = merge(table, collected, tenant=whose, created=datetime.now(UTC))
        if promoted is not None:
            save(promoted, out)
        if as_json:
            print_json(said)
        else:
            show_promotion(Console(), said)
            if promoted is not None:
                sys.stderr.write(f"written to {out}: POSOLOGY_QTABLE={out}\n")
    if promoted is None:
        raise typer.Exit(SOME_BAD)
