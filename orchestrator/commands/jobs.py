"""Jobs: put into the queue, looked at, watched, cancelled, tried again."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import anyio
import typer
from rich.console import Console

from orchestrator.commands.common import (
    SOME_BAD,
    DeadlineOption,
    FormOption,
    JsonOption,
    KOption,
    MaxTokensOption,
    ModelOption,
    ModeOption,
    OptionOption,
    PartitionOption,
    RetractedOption,
    StrategyOption,
    TenantOption,
    errors,
    fail,
    print_json,
    question_fields,
    run,
)
from orchestrator.settings import load_settings
from posology.errors import JobError, JobNotFailed
from posology.types import Form, JobState

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore
    from posology.published.jobs import JobEvent, JobOutput, JobSummary

app = typer.Typer(help="Looks after jobs in the queue.", no_args_is_help=True)

_Found = TypeVar("_Found")
#: what stands in the dead-letter list
_DEAD = (JobState.FAILED, JobState.EXPIRED)
#: seconds to let what is on its way settle after a cancellation
_SETTLE = 30.0

JobArgument = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]


def submit(
    question: Annotated[str, typer.Argument(help="The question; - reads it from standard input.")],
    *,
    tenant: TenantOption = None,
    key: Annotated[
        str | None,
        typer.Option(help="An idempotency key: the same key and question are the same job."),
    ] = None,
    deadline: DeadlineOption = None,
    model: ModelOption = None,
    k: KOption = 8,
    mode: ModeOption = "fused",
    form: FormOption = Form.FREE.value,
    option: OptionOption = None,
    max_tokens: MaxTokensOption = None,
    strategy: StrategyOption = None,
    partition_size: PartitionOption = None,
    retracted: RetractedOption = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the answer and show it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Put a question into the queue, and print the job's id."""
    from orchestrator.input import JobRequest

    with errors(as_json=as_json):
        settings = load_settings()
        fields = question_fields(
            question,
            model=model,
            k=k,
            mode=mode,
            form=form,
            option=option,
            max_tokens=max_tokens,
            retracted=retracted,
            strategy=strategy,
            partition_size=partition_size,
        )
        patience = {} if deadline is None else {"deadline_seconds": deadline}
        request = JobRequest.parse({**fields, **patience}).settled(settings)

        async def work(store: JobStore, tenant: str) -> JobOutput:
            job = (await store.submit(request, tenant=tenant, key=key)).job
            return await store.get(job, tenant=tenant)

        job = _with_store(tenant, work)
        if wait:
            # for the case that the wait is interrupted
            sys.stderr.write(f"{job.id}\n")
            job = _followed(tenant, job.id, lambda _: None)
        if as_json:
            print_json(job)
        elif wait:
            _show_end(job)
        else:
            sys.stdout.write(f"{job.id}\n")
    if wait:
        _exit_as(job)


@app.command("list")
def list_(
    *,
    tenant: TenantOption = None,
    state: Annotated[
        JobState | None, typer.Option(help="Only jobs in this state.", case_sensitive=False)
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="The dead-letter list: failed or expired.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=500)] = 20,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on after this job of the page before.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show jobs, newest first."""
    from orchestrator.show_jobs import show_jobs
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

        page = _with_store(tenant, work)
        if as_json:
            print_json(page)
        else:
            show_jobs(Console(), page.jobs)
            if page.next:
                sys.stderr.write(f"more: --after {page.next}\n")


@app.command()
def show(job: JobArgument, *, tenant: TenantOption = None, as_json: JsonOption = False) -> None:
    """Show everything about a job."""
    from orchestrator.show_jobs import show_job

    with errors(as_json=as_json):
        out = _with_store(tenant, lambda store, tenant: store.get(job, tenant=tenant))
        if as_json:
            print_json(out)
        else:
            show_job(Console(), out)


@app.command()
def watch(
    job: JobArgument,
    *,
    tenant: TenantOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each event instead.")
    ] = False,
) -> None:
    """Show what happens to a job until it is over, then its answer or error."""
    from orchestrator.show_jobs import show_event

    with errors(as_json=as_json):
        console = Console()

        def show(event: JobEvent) -> None:
            if as_json:
                sys.stdout.write(event.model_dump_json() + "\n")
                sys.stdout.flush()
            else:
                show_event(console, event)

        out = _followed(tenant, job, show)
        if not as_json:
            _show_end(out)
    _exit_as(out)


@app.command()
def cancel(job: JobArgument, *, tenant: TenantOption = None, as_json: JsonOption = False) -> None:
    """Send nothing more for a job, and say what it spent and what it did not."""
    from orchestrator.show_jobs import show_cancelled

    with errors(as_json=as_json):

        async def work(store: JobStore, tenant: str) -> JobOutput:
            out = await store.cancel(job, tenant=tenant)
            with anyio.move_on_after(_SETTLE):
                # what it spent is known when what is on its way has settled
                return await store.wait(job, tenant=tenant)
            return out

        out = _with_store(tenant, work)
        if as_json:
            print_json(out)
        else:
            show_cancelled(Console(), out)


@app.command()
def retry(
    jobs: Annotated[list[str] | None, typer.Argument(metavar="ID…", help="The jobs' ids.")] = None,
    *,
    all_failed: Annotated[
        bool, typer.Option("--all-failed", help="The whole dead-letter list.")
    ] = False,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try failed, expired or cancelled jobs again; what they paid for is not paid for again.

    Jobs that cannot be tried again are told, and the exit status is then 1.
    """
    from orchestrator.show_jobs import show_jobs
    from posology.published.jobs import JobPage

    if bool(jobs) == all_failed:
        raise typer.BadParameter("name jobs, or say --all-failed")
    with errors(as_json=as_json):

        async def work(store: JobStore, tenant: str) -> tuple[list[JobSummary], int]:
            if jobs:
                return await _retry_each(store, tenant, jobs)
            return await _retry_dead(store, tenant)

        queued, refused = _with_store(tenant, work)
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


def _with_store(tenant: str | None, work: Callable[[JobStore, str], Awaitable[_Found]]) -> _Found:
    """Do something with the job store of this environment."""
    from orchestrator.jobs.place import open_jobs

    settings = load_settings()

    async def with_store() -> _Found:
        async with open_jobs(settings) as store:
            return await work(store, tenant or settings.tenant)

    return run(with_store)


def _followed(tenant: str | None, job: str, show: Callable[[JobEvent], None]) -> JobOutput:
    from orchestrator.commands.collecting import PATIENCE, Patience, follow

    settings = load_settings()
    patience = Patience(PATIENCE, fail)
    return run(
        lambda: follow(
            settings, job, tenant=tenant or settings.tenant, patience=patience, show=show
        )
    )


def _show_end(job: JobOutput) -> None:
    from orchestrator.show_jobs import show_cancelled
    from orchestrator.terminal import show_answer, show_attempts

    if job.result is not None:
        show_answer(Console(), job.result)
    elif job.error is not None:
        fail(f"job {job.id} has {job.state}: {job.error.message}")
        show_attempts(Console(stderr=True), job.spending)
    else:
        show_cancelled(Console(stderr=True), job)


def _exit_as(job: JobOutput) -> None:
    """End as ``posology ask`` would have with the same outcome."""
    if job.state is not JobState.SUCCEEDED:
        raise typer.Exit(job.error.exit_code if job.error else JobError.exit_code)
