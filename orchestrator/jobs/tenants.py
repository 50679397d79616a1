"""Lists of tenants with work, so that an idle tenant costs nothing.

The lists hold all tenants, so no script of one tenant can change them together with its records. A submission
therefore writes to them before and after; :func:`tidy` repairs one that is interrupted in between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from posology.store import keys
from posology.store.connection import translated

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from posology.store.scripts import Scripts

#: minimum time in the list, milliseconds: longer than any submission takes from its first command to its last
LISTED = 3_600_000
#: tenants read in one round trip
_AT_ONCE = 100


class Store(Protocol):
    """A Redis, its address for messages, and its scripts."""

    @property
    def redis(self) -> Redis:
        """The connection."""
        ...

    @property
    def url(self) -> str:
        """The address."""
        ...

    @property
    def run(self) -> Scripts:
        """The scripts of jobs."""
        ...


async def enlist(store: Store, tenant: str) -> None:
    """List a tenant before anything is written for it, so that maintenance finds every record.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    # by the server's clock, as tenants are taken off the list: a submitter's may be hours behind
    await store.run("list", keys.TENANTS, tenant)


async def wake(store: Store, tenant: str) -> None:
    """Wake the workers that wait for jobs: a tenant has one.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    # again: the submitter may have been suspended since the tenant was listed
    await enlist(store, tenant)
    with translated(store.url):
        async with store.redis.pipeline(transaction=False) as pipe:
            pipe.sadd(keys.WAITING, tenant)
            pipe.lpush(keys.WAKE, "1")
            pipe.ltrim(keys.WAKE, 0, 0)
            await pipe.execute()


async def waiting(store: Store) -> list[str]:
    """Return the tenants that may have waiting jobs, sorted.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    with translated(store.url):
        return sorted(await cast("Awaitable[set[str]]", store.redis.smembers(keys.WAITING)))


async def emptied(store: Store, tenant: str) -> None:
    """Remove a tenant from the waiting list, unless a job has come meanwhile.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    with translated(store.url):
        async with store.redis.pipeline(transaction=False) as pipe:
            pipe.srem(keys.WAITING, tenant)
            # read after the removal: a later job adds the tenant again
            pipe.llen(f"{keys.prefix(tenant)}waiting")
            pipe.zcard(f"{keys.prefix(tenant)}parked")
            _, *lengths = await pipe.execute()
            if any(lengths):
                await store.redis.sadd(keys.WAITING, tenant)


async def listed(store: Store) -> list[str]:
    """Return the tenants that may have records, sorted.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    with translated(store.url):
        return sorted(cast("list[str]", await store.redis.zrange(keys.TENANTS, 0, -1)))


async def newest(store: Store, *, limit: int) -> list[str]:
    """Return the tenants that submitted last, newest first.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    with translated(store.url):
        return cast("list[str]", await store.redis.zrevrange(keys.TENANTS, 0, limit - 1))


async def past(store: Store) -> list[str]:
    """Return the tenants that were removed from the list at some time, sorted; their metrics still count.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    with translated(store.url):
        return sorted(await cast("Awaitable[set[str]]", store.redis.smembers(keys.PAST)))


async def tidy(store: Store) -> None:
    """Remove tenants without records from the list, and find waiting jobs and calls without a wake-up.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    async for names, lengths in _lengths(store, await listed(store)):
        missed = [name for name, (jobs, parked, *_) in zip(names, lengths, strict=True) if jobs or parked]  # fmt: skip
        laned = [name for name, (*_, wanted, sent) in zip(names, lengths, strict=True) if wanted or sent]  # fmt: skip
        idle = [name for name, some in zip(names, lengths, strict=True) if not any(some)]
        with translated(store.url):
            if missed:
                await store.redis.sadd(keys.WAITING, *missed)
            if laned:
                await store.redis.sadd(keys.LANE, *laned)
            if idle:
                # first, so that their metrics always count
                await store.redis.sadd(keys.PAST, *idle)
        if idle:
            await store.run("unlist", keys.TENANTS, LISTED, *idle)


async def _lengths(
    store: Store, names: Sequence[str]
) -> AsyncIterator[tuple[Sequence[str], list[tuple[int, ...]]]]:
    """Yield numbers of some tenants at a time: waiting jobs, parked units, jobs, batches, calls of the lane, batches of it."""
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        with translated(store.url):
            async with store.redis.pipeline(transaction=False) as pipe:
                for prefix in map(keys.prefix, some):
                    pipe.llen(f"{prefix}waiting")
                    pipe.zcard(f"{prefix}parked")
                    pipe.zcard(f"{prefix}jobs")
                    # tenants with a stored job may be missing there
                    pipe.zcard(f"{prefix}batches")
                    pipe.zcard(f"{prefix}lane:wanted")
                    pipe.zcard(f"{prefix}lane:batches")
                found = iter(await pipe.execute())
        yield some, list(zip(*[found] * 6, strict=True))
