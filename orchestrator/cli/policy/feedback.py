"""The commands ``policy feedback`` and ``policy promote``: score an answer, and add the scores to a Q-table."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import JsonOption, TenantOption, errors, print_json
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.jobs.store import with_store

if TYPE_CHECKING:
    from orchestrator.jobs.feedback import Collected
    from orchestrator.jobs.store import JobStore
    from posology.published.jobs import JobOutput


def feedback(
    job: Annotated[str, typer.Argument(metavar="ID", help="Job id.")],
    *,
    score: Annotated[float, typer.Option("--score", help="Quality of the answer, 0 to 1.")],
    comment: Annotated[str | None, typer.Option("--comment", help="Reason for the score.")] = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score the answer of a job. A new score replaces the old one.

    If a Q-table chose the share of the context, `posology policy promote` uses the score.
    """
    with errors(as_json=as_json):
        from orchestrator.jobs.feedback import give
        from orchestrator.question.sent import FeedbackRequest

        given = FeedbackRequest.parse({"score": score, "comment": comment})
        out = with_store(tenant, lambda store, tenant: give(store, job, given, tenant=tenant))
        if as_json:
            print_json(out)
        else:
            Console().print(Text(_describe(out)), soft_wrap=True)


def promote(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Q-table that made the decisions.")],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File of the new Q-table.")],
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a new Q-table that includes a tenant's feedback, and print what changes.

    To use it, set POSOLOGY_QTABLE. The feedback stays with the old table: promoting that one again counts it once.
    Exit status 1: there is no feedback.
    """
    with errors(as_json=as_json):
        from orchestrator.cli.policy.table_view import show_promotion
        from orchestrator.jobs.feedback import collect
        from orchestrator.question.qtables import load, save
        from orchestrator.training.qtable.promotion import merge

        table = load(file)

        async def work(store: JobStore, tenant: str) -> tuple[str, Collected]:
            return tenant, await collect(store, table.digest, tenant=tenant)

        owner, collected = with_store(tenant, work)
        promoted, promotion = merge(table, collected, tenant=owner, created=datetime.now(UTC))
        if promoted is not None:
            save(promoted, out)
        if as_json:
            print_json(promotion)
        else:
            show_promotion(Console(), promotion)
            if promoted is not None:
                sys.stderr.write(f"Q-table written to {out}. To use it: POSOLOGY_QTABLE={out}\n")
    if promoted is None:
        raise typer.Exit(SOME_BAD)


def _describe(job: JobOutput) -> str:
    given = job.feedback
    assert given is not None
    if given.table is None:
        return f"{job.id}: score {given.score:g} saved; no Q-table made the decision"
    return f"{job.id}: score {given.score:g} saved for state {given.state} of Q-table {given.table}"
