"""Messages of webhooks that are due, for the processes that send them."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, cast

from orchestrator.jobs.tenants import Store
from orchestrator.webhooks.store import Endpoint
from posology.store import keys
from posology.store.connection import is_first, translated


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """An endpoint of a tenant."""

    tenant: str
    #: id of the endpoint
    webhook: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Due:
    """A message that is to be sent now."""

    endpoint: Endpoint
    #: what it is about; messages about the same are delivered in order
    subject: str
    #: its id, the same in every attempt
    message: str
    #: type of the event; a newer version may have written one that this version does not know
    type: str
    #: time of the event, POSIX milliseconds
    at: str
    data: dict[str, Any]
    #: attempts, this one included
    tries: int


class Outbox:
    """Messages of all tenants.

    Args:
        store: the job store: the scripts that end a job queue its messages in the same step.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def due(self) -> list[Place]:
        """Return the endpoints of all tenants that are owed a message now; idle ones cost nothing.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        found = await self._store.run("due_webhooks", keys.DUE)
        places = (one.split("|", 1) for one in found)
        return [Place(tenant=tenant, webhook=webhook) for tenant, webhook in places]

    async def is_turn(self, seconds: float) -> bool:
        """Return whether no process has looked at all endpoints for a while; from now on this one has.

        Args:
            seconds: length of that while.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        return await is_first(self._store.redis, self._store.url, keys.LOOKED, seconds)

    async def plan(self, tenant: str, *, held: float) -> list[Place]:
        """List what a tenant's endpoints are owed for :meth:`due`, and return those that are owed a message now.

        Scripts of the version before do not list it, and a cluster does not let a tenant's script do so. What is due
        later than it could be was written before the clock of Redis was put back, and is due now.

        Args:
            tenant: name of the tenant.
            held: seconds for which an endpoint is held at most, or a message that was never tried.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        found = await self._store.run("plan_webhooks", keys.prefix(tenant), int(held * 1000))
        return [Place(tenant=tenant, webhook=webhook) for webhook in found]

    async def tenants(self) -> list[str]:
        """Return the tenants that have endpoints, and drop those that have none.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        with translated(self._store.url):
            listed = sorted(
                await cast("Awaitable[set[str]]", self._store.redis.smembers(keys.WEBHOOKS))
            )
            if not listed:
                return []
            async with self._store.redis.pipeline(transaction=False) as pipe:
                for tenant in listed:
                    pipe.exists(f"{keys.prefix(tenant)}webhooks")
                exist = await pipe.execute()
            empty = [tenant for tenant, some in zip(listed, exist, strict=True) if not some]
            for tenant in empty:
                await self._drop(tenant)
        return [tenant for tenant in listed if tenant not in empty]

    async def _drop(self, tenant: str) -> None:
        redis = self._store.redis
        await redis.srem(keys.WEBHOOKS, tenant)
        # read after the removal: an endpoint that is created later adds the tenant after itself, too
        if await redis.exists(f"{keys.prefix(tenant)}webhooks"):
            await redis.sadd(keys.WEBHOOKS, tenant)

    async def take(self, place: Place, *, most: int, seconds: float, patience: float) -> list[Due]:
        """Take messages of an endpoint that are due.

        Args:
            place: the endpoint.
            most: maximum number.
            seconds: time for which no other process takes them.
            patience: seconds from an event after which its message is given up.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        raw, *found = await self._store.run(
            "take_messages",
            keys.prefix(place.tenant),
            place.webhook,
            int(seconds * 1000),
            most,
            int(patience * 1000),
        )
        return [_due(raw, *one) for one in found]

    async def settle(
        self,
        tenant: str,
        due: Due,
        outcome: str,
        *,
        delay: float,
        status: int | None,
        error: str,
        hold: tuple[float, float],
    ) -> bool:
        """Record what became of an attempt; return false where another process did, or the endpoint is deleted.

        Args:
            tenant: name of the tenant.
            due: the message.
            outcome: ``delivered``, ``again``, ``failed`` (given up), ``gone`` (the endpoint wants no more) or ``unknown``
                (not tried, and no fault of the endpoint).
            delay: seconds until the next attempt.
            status: HTTP status; ``None``: no response.
            error: why it was not delivered; empty: it was.
            hold: seconds for which no message is sent to the endpoint after a first failure, and at most.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        told = await self._store.run(
            "settle_message",
            keys.prefix(tenant),
            due.endpoint.id,
            due.subject,
            due.message,
            outcome,
            int(delay * 1000),
            "" if status is None else status,
            error,
            *(int(one * 1000) for one in hold),
        )
        return bool(told != "over")


def _due(raw: str, subject: str, message: str) -> Due:
    read = json.loads(message)
    return Due(
        endpoint=Endpoint(raw=raw),
        subject=subject,
        message=read["id"],
        type=read["type"],
        at=read["at"],
        data=read["data"],
        tries=int(read["tries"]),
    )
