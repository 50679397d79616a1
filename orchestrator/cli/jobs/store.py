"""Shared by commands around jobs and money: store, tenant, and waiting for a job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import typer
from rich.console import Console

from orchestrator.cli.common import fail, run
from orchestrator.settings import load_settings
from posology.errors import JobError
from posology.types import JobState

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore
    from posology.published.jobs import JobEvent, JobOutput

_Found = TypeVar("_Found")


def with_store(tenant: str | None, work: Callable[[JobStore, str], Awaitable[_Found]]) -> _Found:
    """Do something with the job store of this environment."""
    from orchestrator.jobs.place import open_jobs

    settings = load_settings()

    async def opened() -> _Found:
        async with open_jobs(settings) as store:
            return await work(store, tenant or settings.tenant)

    return run(opened)


def one_or_all(tenant: str | None, *, all_tenants: bool) -> None:
    """Refuse a command line that asks for one tenant and for all.

    Raises:
        BadParameter: it does.
    """
    if all_tenants and tenant is not None:
        raise typer.BadParameter("--all and --tenant exclude each other")


async def whose(store: JobStore, tenant: str, *, everybody: bool) -> list[str]:
    """The tenants that a command is about."""
    from posology.budget.books.reader import spenders

    return await spenders(store.redis, store.url) if everybody else [tenant]


def followed(tenant: str | None, job: str, show: Callable[[JobEvent], None]) -> JobOutput:
    """Wait for the end of a job; an outage of Redis is reported and waited for."""
    from orchestrator.cli.jobs.collection import PATIENCE, Patience, follow

    settings = load_settings()
    patience = Patience(PATIENCE, fail)
    return run(
        lambda: follow(
            settings, job, tenant=tenant or settings.tenant, patience=patience, show=show
        )
    )


def show_end(job: JobOutput) -> None:
    """An answer or a refusal on standard output, or why there is none on standard error."""
    from orchestrator.cli.jobs.view import show_cancelled
    from orchestrator.cli.terminal import show_answer, show_attempts

    if job.result is not None:
        show_answer(Console(), job.result)
    elif job.error is not None:
        fail(f"job {job.id} has {job.state}: {job.error.message}")
        show_attempts(Console(stderr=True), job.spending)
    else:
        show_cancelled(Console(stderr=True), job)


def exit_as(job: JobOutput) -> None:
    """End as ``posology ask`` would have with the same outcome."""
    if job.state is not JobState.SUCCEEDED:
        raise typer.Exit(job.error.exit_code if job.error else JobError.exit_code)
