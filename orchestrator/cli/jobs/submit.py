"""A question that is put into the queue."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.common import JsonOption, TenantOption, errors, print_json
from orchestrator.cli.jobs.store import exit_as, followed, show_end, with_store
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.question_options import JobOptions
from orchestrator.settings import load_settings
from posology.errors import StoreUnavailable

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore
    from posology.published.jobs import JobOutput


@grouped
def submit(
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="The question. -: standard input.")
    ],
    *,
    tenant: TenantOption = None,
    key: Annotated[
        str | None,
        typer.Option(help="Idempotency key: equal key and question are the same job."),
    ] = None,
    options: JobOptions,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the answer and show it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Put a question into the queue and print the job id."""
    from orchestrator.question.request import JobRequest
    from posology.store.connection import unanswered

    with errors(as_json=as_json):
        settings = load_settings()
        request = JobRequest.parse(options.fields(question)).settled(settings)

        async def work(store: JobStore, tenant: str) -> JobOutput:
            try:
                job = (await store.submit(request, tenant=tenant, key=key)).job
            except StoreUnavailable as error:
                if unanswered(error):
                    error.add_note(_perhaps_queued(key))
                raise
            return await store.get(job, tenant=tenant)

        job = with_store(tenant, work)
        if wait:
            # for the case that the wait is interrupted
            sys.stderr.write(f"{job.id}\n")
            job = followed(tenant, job.id, lambda _: None)
        if as_json:
            print_json(job)
        elif wait:
            show_end(job)
        else:
            sys.stdout.write(f"{job.id}\n")
    if wait:
        exit_as(job)


def _perhaps_queued(key: str | None) -> str:
    said = "The job may still be in the queue"
    if key is None:
        return f"{said}: look for it with `posology jobs list`; with a --key, it is safe to repeat the command"
    return f"{said}: repeat the command with the same --key, which makes no second job"
