"""Requests that wait for the end of a job."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated

import anyio
from fastapi import Query, Request

from orchestrator.api.bodies import unless_left
from orchestrator.api.context import Context
from orchestrator.api.problems import RequestProblem
from orchestrator.jobs.store import JobStore
from posology.published.jobs import JobOutput

#: maximum seconds that a request waits
MAX_WAIT = 300.0
Wait = Annotated[
    float,
    Query(
        ge=0,
        le=MAX_WAIT,
        allow_inf_nan=False,
        description="Seconds to wait for the end of the job, 0 to 300. Default: 0. The response comes at once if too "
        "many requests wait already.",
    ),
]


@asynccontextmanager
async def held(api: Context, tenant: str, wait: float) -> AsyncIterator[float]:
    """Hold a place for a request that may wait, and yield the seconds that it waits; 0 if no place is left."""
    async with AsyncExitStack() as stack:
        if wait > 0:
            try:
                await stack.enter_async_context(api.waits.of(tenant))
            except RequestProblem:
                wait = 0.0
        yield wait


async def job_after(
    request: Request, store: JobStore, job: str, *, tenant: str, seconds: float
) -> JobOutput:
    """Return a job when it ends, at the latest after some seconds.

    It waits for events of the job.

    Args:
        request: its body has been read.
        store: store of the job.
        job: id of the job.
        tenant: name of the tenant.
        seconds: maximum time; 0: the job as it is now.

    Raises:
        JobNotFound: the tenant has no such job, or its record has expired.
        StoreUnavailable: Redis is unreachable.
        ClientDisconnect: the client has left; the job continues.
    """
    if seconds > 0:
        with anyio.move_on_after(seconds):
            return await unless_left(request, lambda: store.wait(job, tenant=tenant))
    return await store.get(job, tenant=tenant)
