"""The ``policy feedback`` command: score an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import JsonOption, TenantOption, errors, print_json
from orchestrator.cli.jobs.store import with_store

if TYPE_CHECKING:
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


def _describe(job: JobOutput) -> str:
    given = job.feedback
    assert given is not None
    if given.table is None:
        return f"{job.id}: score {given.score:g} saved; no Q-table made the decision"
    return f"{job.id}: score {given.score:g} saved for state {given.state} of Q-table {given.table}"
