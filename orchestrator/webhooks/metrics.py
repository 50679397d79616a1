"""Metrics of waiting messages, read from Redis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.jobs.tenants import Store
from orchestrator.webhooks.outbox import Outbox
from posology.store import keys
from posology.store.connection import translated

#: tenants that are asked for in one round trip
_AT_ONCE = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Backlog:
    """Messages that are to be delivered, of all tenants."""

    pending: int = 0
    #: seconds for which the oldest waits; those of paused endpoints do not count; 0: none waits
    oldest: float = 0.0


async def backlog(store: Store) -> Backlog:
    """Read the waiting messages of all tenants.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    tenants = await Outbox(store).tenants()
    pending, since = 0, list[float]()
    for start in range(0, len(tenants), _AT_ONCE):
        some = await _endpoints(store, tenants[start : start + _AT_ONCE])
        with translated(store.url):
            async with store.redis.pipeline(transaction=False) as pipe:
                for name in some:
                    pipe.hmget(name, "queued", "paused")
                    pipe.zrange(f"{name}:since", 0, 0, withscores=True)
                found = iter(await pipe.execute())
        for (queued, paused), first in zip(found, found, strict=True):
            pending += int(queued or 0)
            since += [score for _, score in first if paused is None]
    with translated(store.url):
        seconds, micros = await store.redis.time()
    now = seconds + micros / 1e6
    return Backlog(pending=pending, oldest=max(0.0, now - min(since) / 1000) if since else 0.0)


async def _endpoints(store: Store, tenants: Sequence[str]) -> list[str]:
    with translated(store.url):
        async with store.redis.pipeline(transaction=False) as pipe:
            for tenant in tenants:
                pipe.hkeys(f"{keys.prefix(tenant)}webhooks")
            found = await pipe.execute()
    return [
        f"{keys.prefix(tenant)}webhook:{webhook}"
        for tenant, some in zip(tenants, found, strict=True)
        for webhook in some
    ]
