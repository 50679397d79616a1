"""Pages of a tenant's batches, and of a batch's rows."""

from __future__ import annotations

import re
from typing import cast

from orchestrator.jobs.batches.records import find, output
from orchestrator.jobs.rows import output_row
from orchestrator.jobs.store import MAX_PAGE, JobStore
from posology.errors import BatchCancelled, InvalidQuery
from posology.published.jobs import BatchOutput, BatchPage, BatchRow
from posology.store import keys
from posology.store.connection import translated
from posology.types.jobs import BatchState

#: place in a tenant's list: milliseconds of the submission, and the id
_PLACE = re.compile(r"[0-9]{13}-batch_[0-9a-f]{28}")
#: pages of the list that a search for a state reads for one page of its own
_SCANS = 20


async def page_of_batches(
    store: JobStore,
    *,
    tenant: str,
    state: BatchState | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> BatchPage:
    """Return some batches, newest first.

    Args:
        store: of the jobs.
        tenant: name of the tenant.
        state: only batches in this state; a page may then be short although more follow.
        cursor: ``next`` of the previous page; batches that are submitted meanwhile do not shift the pages.
        limit: maximum number, up to :data:`~orchestrator.jobs.store.MAX_PAGE`.

    Raises:
        InvalidQuery: ``cursor`` or ``limit`` is invalid.
        StoreUnavailable: Redis is unreachable.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidQuery(f"limit must be 1 to {MAX_PAGE} (got {limit})", field="limit")
    if cursor is not None and not _PLACE.fullmatch(cursor):
        raise InvalidQuery(
            f"unknown cursor {cursor!r}: use `next` of the previous page", field="cursor"
        )
    prefix = keys.prefix(tenant)
    batches: list[BatchOutput] = []
    for _ in range(_SCANS):
        with translated(store.url):
            places = cast(
                "list[str]",
                await store.redis.zrevrangebylex(
                    f"{prefix}batches:listed", f"({cursor}" if cursor else "+", "-", 0, limit
                ),
            )
            async with store.redis.pipeline(transaction=False) as pipe:
                for place in places:
                    pipe.hgetall(f"{prefix}batch:{_id(place)}")
                records = await pipe.execute()
        for place, record in zip(places, records, strict=True):
            # forgotten since the list was read
            if "digest" not in record:
                cursor = place
                continue
            out = output(_id(place), tenant, record)
            if state in (None, out.state):
                if len(batches) == limit:
                    return BatchPage(batches=tuple(batches), next=cursor)
                batches.append(out)
            cursor = place
        if len(places) < limit:
            return BatchPage(batches=tuple(batches), next=None)
        if state is None:
            break
    return BatchPage(batches=tuple(batches), next=cursor)


async def page_of_rows(
    store: JobStore, batch: str, *, tenant: str, after: int = -1, limit: int = 100
) -> list[BatchRow]:
    """Some rows in the order of the input, each as it is now.

    A row has a result or an error once it is over, and neither before.

    Args:
        store: of the jobs.
        batch: its id.
        tenant: name of the tenant.
        after: the number of the last row that is known.
        limit: rows at most, up to :data:`~orchestrator.jobs.store.MAX_PAGE`.

    Raises:
        BatchNotFound: the tenant has no such batch, or its record has expired.
        InvalidQuery: ``limit`` cannot be one.
        StoreUnavailable: Redis is unreachable.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidQuery(f"limit must be 1 to {MAX_PAGE} (got {limit})", field="limit")
    record = await find(store, batch, tenant)
    total = int(record["total"])
    cancelled = (
        BatchCancelled(f"batch {batch} was cancelled before this row was submitted", batch=batch)
        if "cancelled" in record
        else None
    )
    first = max(after + 1, 0)
    numbers = range(first, min(first + limit, total))
    if not numbers:
        return []
    prefix = keys.prefix(tenant)
    name, fields = f"{prefix}batch:{batch}", [str(number) for number in numbers]
    with translated(store.url):
        async with store.redis.pipeline(transaction=False) as pipe:
            for part in ("jobs", "rejected", "ids"):
                pipe.hmget(f"{name}:{part}", fields)
            jobs, rejected, ids = await pipe.execute()
        async with store.redis.pipeline(transaction=False) as pipe:
            for job in filter(None, jobs):
                pipe.hgetall(f"{prefix}job:{job}")
                pipe.hgetall(f"{prefix}job:{job}:calls")
            found = iter(await pipe.execute())
    return [
        output_row(
            number,
            own,
            error,
            job,
            next(found) if job else {},
            next(found) if job else {},
            cancelled=cancelled,
            advice=store.advice,
        )
        for number, own, error, job in zip(numbers, ids, rejected, jobs, strict=True)
    ]


def _id(place: str) -> str:
    return place.partition("-")[2]
