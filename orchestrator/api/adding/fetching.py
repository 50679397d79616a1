"""Fetches for tenants: put beside the uploaded files, for the process that ingests them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio
from anyio import to_thread

from orchestrator.api.adding.files import arriving
from orchestrator.api.context import Context
from orchestrator.api.problems import RETRY_AFTER, RequestProblem, status_of
from orchestrator.ingest.live.request import FETCH, FetchRequest
from orchestrator.ingest.uploads.uploads import unknown_ingest
from orchestrator.logs.events import note
from posology import errors
from posology.errors import IngestNotFound, InvalidQuery
from posology.published.ingests import FetchOutput, IngestOutput
from posology.store import keys
from posology.store.bucket import Bucket

#: how long a fetch stands for the same one that a question asks for
FRESH = timedelta(hours=1)
#: seconds between two looks at an ingest that a request waits for
_LOOK = 0.25
_HOUR = 3_600.0


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
    most = api.settings.fetch_records
    if max(asked.max_records, len(asked.pmids), len(asked.trials)) > most:
        raise InvalidQuery(f"max_records must be ≤ {most} here", field="max_records")
    content = asked.asked().model_dump_json().encode()
    async with api.files.of(tenant), arriving(api, tenant, FETCH) as (uploads, arrival):
        await to_thread.run_sync(arrival.write, content)
        if fresh:
            after = datetime.now(UTC) - FRESH
            digest = arrival.digest.hexdigest()
            known = await uploads.known(tenant, digest, after=after)
            if known is not None and known.error is None:
                return known, False
        await _count(api, tenant)
        made, new = await uploads.complete(arrival)
    if new:
        note("fetch requested", tenant=tenant, ingest=made.id, service=asked.service)
    return made, new


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


async def _count(api: Context, tenant: str) -> None:
    """Count a fetch in the tenant's limit.

    Raises:
        RequestProblem: the tenant has fetched too often.
    """
    store, most = api.jobs(), api.settings.fetches_per_hour
    bucket = Bucket(
        store.redis,
        store.url,
        key=f"{keys.prefix(tenant)}rates:fetches",
        seconds=_HOUR / most,
        size=most,
    )
    if after := await bucket.try_take():
        raise RequestProblem(
            429,
            "TooManyFetches",
            "The tenant has fetched too often",
            f"a tenant may fetch {most} times in an hour: retry later",
            headers={"Retry-After": str(int(after) + 1)},
            limit=most,
        )
