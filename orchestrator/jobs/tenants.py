"""List of tenants with work to do: an idle tenant costs nothing.

The lists below are of all tenants, so that no script of one tenant can change them together with its records.
A submission therefore writes to them before and after; interrupted submissions are found by :func:`tidy`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import TYPE_CHECKING, cast

from posology.store import keys
from posology.store.connection import translated

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore

#: milliseconds for which a tenant is listed at least: longer than any submission takes, from its first
#: command to its last
LISTED = 3_600_000
#: tenants that are asked for in one round trip
_AT_ONCE = 100


async def enlist(store: JobStore, tenant: str) -> None:
    """List a tenant before anything is written for it, so that maintenance finds every record.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    with translated(store.url):
        await store.redis.zadd(keys.TENANTS, {tenant: _now()})


async def wake(store: JobStore, tenant: str) -> None:
    """Wake the dispatcher: a tenant has a job.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    with translated(store.url):
        async with store.redis.pipeline(transaction=False) as pipe:
            # once more: whoever submits may have been suspended since it was listed
            pipe.zadd(keys.TENANTS, {tenant: _now()})
            pipe.sadd(keys.WAITING, tenant)
            pipe.lpush(keys.WAKE, "1")
            pipe.ltrim(keys.WAKE, 0, 0)
            await pipe.execute()


async def waiting(store: JobStore) -> list[str]:
    """Tenants that may have waiting jobs, sorted.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    with translated(store.url):
        return sorted(await cast("Awaitable[set[str]]", store.redis.smembers(keys.WAITING)))


async def emptied(store: JobStore, tenant: str) -> None:
    """Note that no job of a tenant waits any more.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    with translated(store.url):
        async with store.redis.pipeline(transaction=False) as pipe:
            pipe.srem(keys.WAITING, tenant)
            # asked after it was taken off: a job that comes later is told of later, too
            pipe.llen(f"{keys.prefix(tenant)}waiting")
            pipe.zcard(f"{keys.prefix(tenant)}parked")
            _, *lengths = await pipe.execute()
            if any(lengths):
                await store.redis.sadd(keys.WAITING, tenant)


async def listed(store: JobStore) -> list[str]:
    """Tenants that may have records, sorted.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    with translated(store.url):
        return sorted(cast("list[str]", await store.redis.zrange(keys.TENANTS, 0, -1)))


async def past(store: JobStore) -> list[str]:
    """Tenants that were taken off the list at some time, sorted; their figures go on to count.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    with translated(store.url):
        return sorted(await cast("Awaitable[set[str]]", store.redis.smembers(keys.PAST)))


async def tidy(store: JobStore) -> None:
    """Remove tenants without records from the list, and find waiting jobs that were not announced.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    async for names, lengths in _lengths(store, await listed(store)):
        untold = [
            name for name, (jobs, parked, *_) in zip(names, lengths, strict=True) if jobs or parked
        ]
        idle = [name for name, some in zip(names, lengths, strict=True) if not any(some)]
        with translated(store.url):
            if untold:
                await store.redis.sadd(keys.WAITING, *untold)
            if idle:
                # first, so that there is no time at which their figures do not count
                await store.redis.sadd(keys.PAST, *idle)
        if idle:
            await store.run("unlist", keys.TENANTS, LISTED, *idle)


async def _lengths(
    store: JobStore, names: Sequence[str]
) -> AsyncIterator[tuple[Sequence[str], list[tuple[int, int, int, int]]]]:
    """How many jobs wait, units are parked, jobs and batches are kept, for some tenants at a time."""
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        with translated(store.url):
            async with store.redis.pipeline(transaction=False) as pipe:
                for prefix in map(keys.prefix, some):
                    pipe.llen(f"{prefix}waiting")
                    pipe.zcard(f"{prefix}parked")
                    pipe.zcard(f"{prefix}jobs")
                    # those with a kept job need not stand there
                    pipe.zcard(f"{prefix}batches")
                found = iter(await pipe.execute())
        yield some, list(zip(found, found, found, found, strict=True))


def _now() -> int:
    return time.time_ns() // 1_000_000
