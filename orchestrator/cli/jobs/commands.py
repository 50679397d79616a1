"""Jobs: looked at, watched, cancelled, tried again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import anyio
import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, TenantOption, errors, fail, print_json
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.jobs.store import exit_as, followed, show_end, with_store
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.output.formats import OutputOptions
from orchestrator.rendering.kinds import Format
from posology.errors import JobError, JobNotFailed, JobNotSucceeded
from posology.types import JobState

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore
    from posology.published.jobs import JobEvent, JobOutput, JobSummary

app = typer.Typer(help="List, inspect, cancel and retry jobs in the queue.")

#: what stands in the dead-letter list
_DEAD = (JobState.FAILED, JobState.EXPIRED)
#: seconds in which calls in flight may settle after a cancellation
_SETTLE = 30.0

JobArgument = Annotated[str, typer.Argument(metavar="ID", help="Job id.")]


@app.command("list")
def list_(
    *,
    tenant: TenantOption = None,
    state: Annotated[
        JobState | None,
        typer.Option(
            metavar="STATE",
            help=f"Only jobs in this state: {', '.join(JobState)}.",
            case_sensitive=False,
        ),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only the dead-letter list: failed and expired jobs.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=500)] = 20,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="Id of the last job of the previous page.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show jobs, newest first."""
    from orchestrator.cli.jobs.view import show_jobs
    from posology.published.jobs import JobPage

    if failed and state is not None:
        raise typer.BadParameter("--failed and --state exclude each other")
    with errors(as_json=as_json):
        states = _DEAD if failed else (state,)

        async def work(store: JobStore, tenant: str) -> JobPage:
            pages = [
                await store.page(tenant=tenant, state=one, cursor=after, limit=limit)
                for one in states
            ]
            jobs = sorted((job for page in pages for job in page.jobs), key=lambda job: job.id)
            found = tuple(jobs[::-1][:limit])
            more = len(jobs) > limit or any(page.next for page in pages)
            return JobPage(jobs=found, next=found[-1].id if more and found else None)

        page = with_store(tenant, work)
        if as_json:
            print_json(page)
        else:
            show_jobs(Console(), page.jobs)
            if page.next:
                sys.stderr.write(f"more: --after {page.next}\n")


@app.command()
@grouped
def show(
    job: JobArgument,
    *,
    why: Annotated[
        bool, typer.Option("--why", help="Explain the decision instead, step by step.")
    ] = False,
    tenant: TenantOption = None,
    output: OutputOptions,
) -> None:
    """Show a job; with --json, everything about it."""
    from orchestrator.cli.ask.explanation import why_job
    from orchestrator.cli.jobs.view import show_job
    from orchestrator.cli.output.write import write_answer

    form = output.chosen()
    with errors(as_json=form is Format.JSON):
        out = with_store(tenant, lambda store, tenant: store.get(job, tenant=tenant))
        if form is Format.JSON:
            print_json(out)
        elif form is not Format.TEXT:
            if out.result is None:
                raise JobNotSucceeded(
                    f"job {job} has no answer to print as {form} (it is {out.state})", job=job
                )
            write_answer(out.result, form)
        elif why:
            why_job(Console(), out)
        else:
            show_job(Console(), out)


@app.command()
def watch(
    job: JobArgument,
    *,
    tenant: TenantOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each event.")
    ] = False,
) -> None:
    """Show the events of a job until it ends, then its answer or error."""
    from orchestrator.cli.jobs.view import show_event

    with errors(as_json=as_json):
        console = Console()

        def show(event: JobEvent) -> None:
            if as_json:
                print_json(event, indent=None)
            else:
                show_event(console, event)

        out = followed(tenant, job, show)
        if not as_json:
            show_end(out)
    exit_as(out)


@app.command()
def cancel(job: JobArgument, *, tenant: TenantOption = None, as_json: JsonOption = False) -> None:
    """Cancel a job: make no further calls, and print what it spent and saved."""
    from orchestrator.cli.jobs.view import show_cancelled

    with errors(as_json=as_json):

        async def work(store: JobStore, tenant: str) -> JobOutput:
            out = await store.cancel(job, tenant=tenant)
            with anyio.move_on_after(_SETTLE):
                # what it spent is known when what is on its way has settled
                return await store.wait(job, tenant=tenant)
            return out

        out = with_store(tenant, work)
        if as_json:
            print_json(out)
        else:
            show_cancelled(Console(), out)


@app.command()
def retry(
    jobs: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Job ids.")] = None,
    *,
    all_failed: Annotated[
        bool, typer.Option("--all-failed", help="Retry the whole dead-letter list.")
    ] = False,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Retry failed, expired or cancelled jobs. Calls that were paid for are not paid for again.

    Exit status 1: some jobs cannot be retried; they are listed.
    """
    from orchestrator.cli.jobs.view import show_jobs
    from posology.published.jobs import JobPage

    if bool(jobs) == all_failed:
        raise typer.BadParameter("name jobs, or say --all-failed")
    with errors(as_json=as_json):

        async def work(store: JobStore, tenant: str) -> tuple[list[JobSummary], int]:
            if jobs:
                return await _retry_each(store, tenant, jobs)
            return await _retry_dead(store, tenant)

        queued, refused = with_store(tenant, work)
        page = JobPage(jobs=tuple(queued), next=None)
        if as_json:
            print_json(page)
        elif queued:
            show_jobs(Console(), page.jobs)
        else:
            sys.stderr.write("no job was tried again\n")
    if refused:
        raise typer.Exit(SOME_BAD)


async def _retry_each(
    store: JobStore, tenant: str, jobs: Sequence[str]
) -> tuple[list[JobSummary], int]:
    queued: list[JobSummary] = []
    for job in jobs:
        try:
            queued.append(_summary(await store.retry(job, tenant=tenant)))
        except JobError as error:
            if len(jobs) == 1:
                raise
            fail(error.message)
    return queued, len(jobs) - len(queued)


async def _retry_dead(store: JobStore, tenant: str) -> tuple[list[JobSummary], int]:
    queued: list[JobSummary] = []
    for state in _DEAD:
        cursor = None
        while True:
            page = await store.page(tenant=tenant, state=state, cursor=cursor, limit=500)
            for job in page.jobs:
                try:
                    queued.append(_summary(await store.retry(job.id, tenant=tenant)))
                except JobError as error:
                    # somebody else tried it again, or it is forgotten by now
                    if not isinstance(error, JobNotFailed):
                        fail(error.message)
            cursor = page.next
            if cursor is None:
                break
    return queued, 0


def _summary(job: JobOutput) -> JobSummary:
    from posology.published.jobs import JobSummary

    return JobSummary(**{name: getattr(job, name) for name in JobSummary.model_fields})
