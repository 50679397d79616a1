"""Questions that continue that of an earlier job, and the collections that questions name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from posology.budget.tenants.grants import check_grants
from posology.errors import InvalidQuery, JobNotFound
from posology.text.follow_ups import continued

if TYPE_CHECKING:
    from orchestrator.jobs.tenants import Store
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


async def completed(request: JobRequest, tenant: str, get: Get, store: Store) -> JobRequest:
    """Return a request with what a parent adds: its question, if this one continues it, and its collection.

    Raises:
        InvalidQuery: the tenant has no such job, or its record has expired.
        CollectionNotFound: the tenant may not read the collection.
        StoreUnavailable: Redis does not answer.
    """
    if request.parent is not None:
        before = await request_of(request.parent, tenant, get)
        question = " ".join(continued([before["question"], request.question]))
        collection = request.collection or before.get("collection")
        request = request.model_copy(update={"question": question, "collection": collection})
    await check_grants(store.redis, store.url, tenant, [request.collection])
    return request
