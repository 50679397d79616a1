"""A question that is put into the queue."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.commands.common import (
    CompressorOption,
    DeadlineOption,
    FormOption,
    JournalsOption,
    JsonOption,
    KeepOption,
    KOption,
    LanguagesOption,
    MaxCostOption,
    MaxTokensOption,
    MeshOption,
    ModelOption,
    ModeOption,
    OptionOption,
    PartitionOption,
    PolicyOption,
    RetractedOption,
    StrategyOption,
    TenantOption,
    TypesOption,
    UntilYearOption,
    VersionOption,
    YearOption,
    errors,
    filter_fields,
    print_json,
    question_fields,
)
from orchestrator.commands.store import exit_as, followed, show_end, with_store
from orchestrator.settings import load_settings
from posology.types import Form

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore
    from posology.published.jobs import JobOutput


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
    keep: KeepOption = None,
    compressor: CompressorOption = None,
    policy: PolicyOption = None,
    partition_size: PartitionOption = None,
    retracted: RetractedOption = False,
    since: YearOption = None,
    until: UntilYearOption = None,
    publication_type: TypesOption = None,
    journal: JournalsOption = None,
    mesh: MeshOption = None,
    language: LanguagesOption = None,
    index_version: VersionOption = None,
    max_cost: MaxCostOption = None,
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
            keep=keep,
            compressor=compressor,
            policy=policy,
            partition_size=partition_size,
            max_cost=max_cost,
            index_version=index_version,
            filters=filter_fields(
                since=since,
                until=until,
                publication_type=publication_type,
                journal=journal,
                mesh=mesh,
                language=language,
            ),
        )
        patience = {} if deadline is None else {"deadline_seconds": deadline}
        request = JobRequest.parse({**fields, **patience}).settled(settings)

        async def work(store: JobStore, tenant: str) -> JobOutput:
            job = (await store.submit(request, tenant=tenant, key=key)).job
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
