"""Says how good an answer is."""

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
    job: Annotated[str, typer.Argument(metavar="ID", help="The job's id.")],
    *,
    score: Annotated[float, typer.Option("--score", help="How good its answer is, 0 to 1.")],
    comment: Annotated[str | None, typer.Option("--comment", help="Why.")] = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say how good a job's answer is; said again, it takes the place of what was said before.

    Where a Q-table was asked how much of the passages to show, a copy of it learns from the score.
    """
    with errors(as_json=as_json):
        from orchestrator.jobs.feedback import give
        from orchestrator.question.request import FeedbackRequest

        said = FeedbackRequest.parse({"score": score, "comment": comment})
        out = with_store(tenant, lambda store, tenant: give(store, job, said, tenant=tenant))
        if as_json:
            print_json(out)
        else:
            Console().print(Text(_told(out)), soft_wrap=True)


def _told(job: JobOutput) -> str:
    said = job.feedback
    assert said is not None
    if said.table is None:
        return f"{job.id}: {said.score:g} is kept; no Q-table decided, so none learns from it"
    return f"{job.id}: {said.score:g} is kept; Q-table {said.table} learns from it in state {said.state}"
