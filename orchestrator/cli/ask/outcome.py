"""Outcomes of ``ask``, the same whether this process or a stack answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.console import Console

from orchestrator.cli.common import fail, print_json
from orchestrator.cli.output.streams import write_surely
from orchestrator.cli.output.write import write_answer
from orchestrator.rendering.kinds import Format
from posology.errors import JobCancelled
from posology.published.calls import ErrorOutput

if TYPE_CHECKING:
    from posology.published.answers import AskOutput
    from posology.published.calls import ErrorBody
    from posology.published.jobs import JobOutput


def write_explained(out: AskOutput, form: Format, *, why: bool, job: str | None = None) -> None:
    """Print an answer or a refusal, and explain its decision if that was asked for.

    Args:
        out: the answer or refusal, which has been paid for.
        form: its format.
        why: whether the decision is explained.
        job: id of the job that keeps it; ``None``: nothing does.
    """

    def write() -> None:
        write_answer(out, form)
        if why and form is Format.TEXT:
            from orchestrator.cli.ask.explanation import why_answer

            why_answer(Console(), out)

    elsewhere = "" if job is None else f"`posology jobs show {job}` prints the answer again. "
    write_surely(write, elsewhere=elsewhere)


def write_job(job: JobOutput, form: Format, *, why: bool) -> None:
    """Print the outcome of a job that has ended, and end as a command would that answered itself.

    Raises:
        Exit: the job has failed, with the status of its error.
        JobCancelled: it was cancelled elsewhere.
    """
    if job.result is not None:
        write_explained(job.result, form, why=why, job=job.id)
    elif job.error is not None:
        _fail(job.error, as_json=form is Format.JSON)
    else:
        raise JobCancelled(f"job {job.id} was cancelled", job=job.id)


def _fail(error: ErrorBody, *, as_json: bool) -> None:
    if as_json:
        print_json(ErrorOutput(error=error))
    else:
        fail(error.message)
        if error.spending is not None and error.spending.attempts:
            from orchestrator.cli.terminal import show_attempts

            show_attempts(Console(stderr=True), error.spending)
    raise typer.Exit(error.exit_code)
