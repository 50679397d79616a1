"""Questions that continue that of an earlier job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from posology.errors import InvalidQuery, JobNotFound
from posology.text.follow_ups import continued

if TYPE_CHECKING:
    from orchestrator.question.request import JobRequest
    from posology.published.jobs import JobOutput

    #: returns a job by its id and ``tenant``
    Get = Callable[..., Awaitable[JobOutput]]


async def request_of(parent: str, tenant: str, get: Get) -> dict[str, Any]:
    """Return the request of an earlier job.

    Raises:
        InvalidQuery: the tenant has no such job, or its record has expired.
        StoreUnavailable: Redis does not answer.
    """
    try:
        return (await get(parent, tenant=tenant)).request
    except JobNotFound as error:
        raise InvalidQuery(f"parent: {error.message}", field="parent") from None


async def completed(request: JobRequest, tenant: str, get: Get) -> JobRequest:
    """Return a request that has a parent with the question of that before its own, if it continues it.

    Raises:
        InvalidQuery: the tenant has no such job, or its record has expired.
        StoreUnavailable: Redis does not answer.
    """
    assert request.parent is not None
    before = await request_of(request.parent, tenant, get)
    parts = continued([before["question"], request.question])
    return request.model_copy(update={"question": " ".join(parts)}) if len(parts) > 1 else request
