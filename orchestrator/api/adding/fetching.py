"""Fetches for tenants: put beside the uploaded files, for the process that ingests them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import anyio

from orchestrator.api.adding.files import arriving
from orchestrator.api.context import Context
from orchestrator.api.problems import RETRY_AFTER, RequestProblem, status_of
from orchestrator.ingest.live.request import FETCH, FetchRequest
from orchestrator.ingest.uploads.fetches import Fetches, FetchesSpent, as_made
from orchestrator.ingest.uploads.uploads import unknown_ingest
from orchestrator.jobs.records import job_of
from posology import errors
from posology.errors import IngestNotFound, InvalidQuery, JobNotFound
from posology.published.ingests import FetchOutput, IngestOutput

#: how long a fetch stands for the same one that a question asks for
FRESH = timedelta(hours=1)
#: seconds between two looks at an ingest that a request waits for
_LOOK = 0.25


async def request_fetch(
    api: Context, tenant: str, asked: FetchRequest, *, fresh: bool = False
) -> tuple[IngestOutput, bool]:
    """Let a fetch wait to be made.

    Args:
        api: the app.
        tenant: may add literature.
        asked: what to fetch.
        fresh: whether an ended fetch of the last hour stands for it.

    Returns:
        The ingest, and whether it is new: one of the same content that waits already stands for it.

    Raises:
        InvalidQuery: it asks for more records than the service allows, or its question has no word.
        RequestProblem: 429 if the tenant has fetched too often, or its uploads leave no room.
        StoreUnavailable: Redis is out of reach.
    """
    as_made(asked, api.settings)
    after = datetime.now(UTC) - FRESH if fresh else None
    async with api.files.of(tenant), arriving(api, tenant, FETCH) as (uploads, arrival):
        fetches = Fetches(uploads=uploads, settings=api.settings)
        try:
            return await fetches.complete(arrival, asked, after=after)
        except FetchesSpent as spent:
            raise RequestProblem(
                429,
                "TooManyFetches",
                "The tenant has fetched too often",
                f"a tenant may fetch {spent.limit} times in an hour: retry later",
                headers={"Retry-After": str(int(spent.seconds) + 1)},
                limit=spent.limit,
            ) from None


async def check_own(api: Context, tenant: str, ingest: str) -> None:
    """Check that an ingest, which a job names as that of its literature, is one of the tenant's.

    Raises:
        InvalidQuery: the tenant has none of that id, or it has expired.
    """
    uploads = api.uploaded
    try:
        if uploads is not None:
            await uploads.get(ingest, tenant=tenant)
            return
    except IngestNotFound:
        pass
    raise InvalidQuery(
        f"the tenant has no ingest {ingest}, or it has expired: leave it out", field="fetch"
    )


async def fetched(
    api: Context, tenant: str, asked: FetchRequest, *, seconds: float
) -> tuple[str, FetchOutput]:
    """Fetch into the index, or find the same fetch of the last hour.

    Args:
        api: the app.
        tenant: may add literature.
        asked: what to fetch.
        seconds: maximum wait for its end.

    Returns:
        The id of the ingest, and what was fetched.

    Raises:
        RequestProblem: 503 if it has not ended, which continues it; as for :func:`request_fetch`; or its own error.
    """
    made, _ = await request_fetch(api, tenant, asked, fresh=True)
    ingest = await _ended(api, tenant, made.id, seconds=seconds)
    if ingest.error is not None:
        kind = getattr(errors, ingest.error.type, errors.PosologyError)
        raise RequestProblem(
            status_of(kind) or 500,
            ingest.error.type,
            (kind.__doc__ or ingest.error.type).splitlines()[0].rstrip("."),
            ingest.error.message,
            ingest=ingest.id,
        )
    if ingest.fetch is None or not ingest.over:
        raise RequestProblem(
            503,
            "FetchUnfinished",
            "The fetch for the question has not ended",
            f"the ingest {ingest.id} continues: send the same request again, or wait for it first",
            headers={"Retry-After": str(RETRY_AFTER)},
            ingest=ingest.id,
        )
    return ingest.id, ingest.fetch


async def fetched_before(
    api: Context, tenant: str, key: str | None
) -> tuple[str, FetchOutput | None] | None:
    """Return the ingest of the job that an idempotency key stands for, and what was fetched if that is still stored.

    ``None``: the key stands for no job, or for one without literature of its own.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    jobs = api.jobs()
    job = None if key is None else await job_of(jobs.redis, jobs.url, key=key, tenant=tenant)
    if job is None:
        return None
    try:
        ingest = (await jobs.get(job, tenant=tenant)).request.get("fetch")
    except JobNotFound:
        return None
    if ingest is None:
        return None
    with suppress(IngestNotFound):
        if api.uploaded is not None:
            return ingest, (await api.uploaded.get(ingest, tenant=tenant)).fetch
    return ingest, None


async def _ended(api: Context, tenant: str, ingest: str, *, seconds: float) -> IngestOutput:
    """Return an ingest when it has ended, or as it is after some seconds.

    Raises:
        IngestNotFound: it has expired.
    """
    uploads = api.uploaded
    if uploads is None:
        raise unknown_ingest(ingest)
    until = anyio.current_time() + seconds
    while True:
        found = await uploads.get(ingest, tenant=tenant)
        if found.over or anyio.current_time() >= until:
            return found
        await anyio.sleep(_LOOK)
