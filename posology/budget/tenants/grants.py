"""Grants of collections: a tenant reads the default index, and the collections that its record names."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import cast

from redis.asyncio import Redis

from posology.budget.tenants import limits
from posology.errors import CollectionNotFound
from posology.store import keys
from posology.store.connection import translated


async def granted(redis: Redis, url: str, tenant: str) -> tuple[str, ...]:
    """Return the collections that a tenant may read, from Redis now; a tenant without a record may read none.

    Raises:
        InvalidQuery: the tenant's name is malformed.
        StoreUnavailable: Redis is unreachable.
    """
    with translated(url):
        reading = redis.hget(f"{keys.prefix(tenant)}tenant", "collections")
        record = await cast("Awaitable[str | None]", reading)
    return limits.read({"collections": record or ""}).collections


async def check_grants(
    redis: Redis, url: str, tenant: str, collections: Iterable[str | None]
) -> None:
    """Check that a tenant may read some collections now; ``None``: the default index, which each may read.

    Raises:
        CollectionNotFound: it may not read one.
        StoreUnavailable: Redis is unreachable.
    """
    wanted = sorted({one for one in collections if one is not None})
    if not wanted:
        return
    allowed = await granted(redis, url, tenant)
    for collection in wanted:
        if collection not in allowed:
            raise CollectionNotFound(collection=collection)
