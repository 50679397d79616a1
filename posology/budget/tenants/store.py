"""Tenants: who may spend, how much, and with which API keys."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

from redis.asyncio import Redis

from posology.budget.ledger.scripts import source
from posology.budget.tenants import api_keys, limits
from posology.budget.tenants.limits import FIELDS
from posology.errors import InvalidLimit, KeyRefused, TenantDisabled, TenantExists, TenantNotFound
from posology.store import keys
from posology.store.connection import translated
from posology.store.keys import at
from posology.store.scripts import Scripts
from posology.types import Limits

#: seconds for which ended keys may go on at most
MAX_GRACE = 30 * 86_400
#: seconds after which a key is forgotten that was made and never given to its tenant
_STRAY = 3_600
#: tenants that are asked for in one round trip
_AT_ONCE = 100
_NO_LIMITS = Limits()


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantKey:
    """An API key of a tenant, without its secret."""

    id: str
    created: datetime
    #: ``None``: it goes on until another one takes its place
    expires: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Tenant:
    """A tenant that was created."""

    name: str
    limits: Limits
    #: nothing is spent for it, and its keys are refused
    disabled: bool
    created: datetime
    #: when its limits were last changed, or whether it is disabled
    changed: datetime
    #: those that are accepted, the oldest first
    keys: tuple[TenantKey, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Issued:
    """A tenant with a key that it was just given."""

    tenant: Tenant
    #: it is nowhere kept: whoever loses it needs another
    key: str = field(repr=False)


class TenantStore:
    """All tenants on one Redis. It may be shared by concurrent callers.

    What a key's own record says is whose the key is. Whether it still is one of the tenant's stands with the
    tenant, so that one script changes it: there is no time at which a key that was ended is accepted.

    Args:
        redis: the connection.
        url: for messages.
        clock: milliseconds; ``None``: the server's own, which all processes share.
    """

    def __init__(self, redis: Redis, url: str, *, clock: Callable[[], int] | None = None) -> None:
        self._redis = redis
        self._url = url
        self._clock = clock
        self._run = Scripts(redis, url, source, clock)

    async def create(self, name: str, given: Limits = _NO_LIMITS) -> Issued:
        """Create a tenant, and give it a key. What it spent before it was created counts.

        Raises:
            TenantExists: there is one of that name.
            InvalidQuery: no tenant can have that name.
            InvalidLimit: a limit cannot be one.
            UnknownModel: likewise.
            StoreUnavailable: it is not known whether it was created; if so, rotate its key.
        """
        prefix = keys.prefix(name)
        limits.check(given)
        key = await self._prepared(name)
        with translated(self._url):
            # before the tenant is there: none is ever without a place in the list
            await self._redis.sadd(keys.REGISTERED, name)
        record = json.dumps(limits.written(given))
        if await self._run("create_tenant", prefix, key.id, record) == "exists":
            await self._forget([key.id])
            raise TenantExists(f"there is a tenant {name} already: change it with set", tenant=name)
        await self._keep(key.id)
        return Issued(tenant=await self.get(name), key=key.text)

    async def get(self, name: str) -> Tenant:
        """A tenant as it is now.

        Raises:
            TenantNotFound: it was not created.
            InvalidQuery: no tenant can have that name.
            StoreUnavailable: Redis is out of reach.
        """
        found = await self._read([name])
        if not found:
            raise _missing(name)
        return found[0]

    async def all(self) -> list[Tenant]:
        """All tenants, sorted by their names.

        Raises:
            StoreUnavailable: Redis is out of reach.
        """
        with translated(self._url):
            members = await cast("Awaitable[set[str]]", self._redis.smembers(keys.REGISTERED))
        names, found = sorted(members), list[Tenant]()
        for start in range(0, len(names), _AT_ONCE):
            found += await self._read(names[start : start + _AT_ONCE])
        return found

    async def limit(self, name: str, to: Limits, *, only: Collection[str] = FIELDS) -> Tenant:
        """Change limits; calls that are under way go on.

        A limit below what is spent lets nothing more be spent in its scope.

        Args:
            name: the tenant's.
            to: the limits.
            only: names of those that are changed; the others stay as they are, whoever changes them meanwhile.

        Raises:
            TenantNotFound: it was not created.
            InvalidQuery: no tenant can have that name.
            InvalidLimit: a limit cannot be one.
            UnknownModel: likewise.
            StoreUnavailable: it is not known whether they were changed; to repeat it does no harm.
        """
        limits.check(to)
        return await self._change(name, limits.written(to, only))

    async def disable(self, name: str) -> Tenant:
        """Refuse a tenant's keys, and let nothing more be spent for it; calls under way settle.

        Raises:
            TenantNotFound: it was not created.
            InvalidQuery: no tenant can have that name.
            StoreUnavailable: it is not known whether it was done; to repeat it does no harm.
        """
        return await self._change(name, {"disabled": "1"})

    async def enable(self, name: str) -> Tenant:
        """Take :meth:`disable` back.

        Raises:
            TenantNotFound: it was not created.
            InvalidQuery: no tenant can have that name.
            StoreUnavailable: it is not known whether it was done; to repeat it does no harm.
        """
        return await self._change(name, {"disabled": ""})

    async def rotate(self, name: str, *, grace: float = 0.0) -> Issued:
        """Give a tenant another key, and end those that it has.

        Args:
            name: the tenant's.
            grace: seconds for which those go on to be accepted.

        Raises:
            TenantNotFound: it was not created.
            InvalidQuery: no tenant can have that name.
            InvalidLimit: ``grace`` is negative, or longer than :data:`MAX_GRACE`.
            StoreUnavailable: it is not known whether the old keys were ended; rotate again.
        """
        prefix = keys.prefix(name)
        if not (math.isfinite(grace) and 0 <= grace <= MAX_GRACE):
            raise InvalidLimit(
                f"grace: {grace:g} is no time to go on: write 0 to {MAX_GRACE} seconds",
                field="grace",
            )
        key = await self._prepared(name)
        said, *ended = cast(
            "list[str]", await self._run("rotate_key", prefix, key.id, int(grace * 1000))
        )
        if said == "gone":
            await self._forget([key.id])
            raise _missing(name)
        await self._keep(key.id)
        await self._forget(ended[::2], until=ended[1::2])
        return Issued(tenant=await self.get(name), key=key.text)

    async def of_key(self, text: str) -> str:
        """The tenant whose key that is, by what stands in Redis at this moment.

        Raises:
            KeyRefused: it is nobody's, or no longer; the message does not tell which.
            TenantDisabled: it is its tenant's, who is disabled.
            StoreUnavailable: Redis is out of reach.
        """
        own = api_keys.id_of(text)
        if own is None:
            raise refused()
        with translated(self._url):
            record = await cast("Awaitable[dict[str, str]]", self._redis.hgetall(keys.api_key(own)))
        if not api_keys.is_key_of(text, record.get("hash")):
            raise refused()
        tenant = record["tenant"]
        match await self._run("check_key", keys.prefix(tenant), own):
            case "live":
                return tenant
            case "disabled":
                raise TenantDisabled(
                    f"the tenant {tenant} is disabled: ask whoever runs this service", tenant=tenant
                )
            case _:
                raise refused()

    async def _change(self, name: str, record: Mapping[str, str]) -> Tenant:
        if await self._run("change_tenant", keys.prefix(name), json.dumps(record)) == "gone":
            raise _missing(name)
        return await self.get(name)

    async def _read(self, names: Collection[str]) -> list[Tenant]:
        """Those of the names that are tenants."""
        with translated(self._url):
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.time()
                for name in names:
                    prefix = keys.prefix(name)
                    pipe.hgetall(f"{prefix}tenant")
                    pipe.hgetall(f"{prefix}keys")
                (seconds, micros), *found = await pipe.execute()
        now = self._clock() if self._clock else seconds * 1000 + micros // 1000
        pairs = zip(names, found[::2], found[1::2], strict=True)
        return [
            _tenant(name, record, own, now) for name, record, own in pairs if "created" in record
        ]

    async def _prepared(self, name: str) -> api_keys.NewKey:
        """A key of which is written down whose it is to be. It is none until a script has given it to the tenant."""
        key = api_keys.make()
        with translated(self._url):
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.hset(
                    keys.api_key(key.id),
                    mapping={"tenant": name, "hash": api_keys.digest(key.text)},
                )
                pipe.expire(keys.api_key(key.id), _STRAY)
                await pipe.execute()
        return key

    async def _keep(self, key: str) -> None:
        with translated(self._url):
            await self._redis.persist(keys.api_key(key))

    async def _forget(self, ids: Collection[str], until: Collection[str] = ()) -> None:
        """Forget whose keys were that are none any more, or will not be: nothing depends on it."""
        with translated(self._url):
            async with self._redis.pipeline(transaction=False) as pipe:
                for place, own in enumerate(ids):
                    at = int(list(until)[place]) if until else 0
                    # a time that has passed deletes it at once
                    pipe.pexpireat(keys.api_key(own), at)
                await pipe.execute()


def refused() -> KeyRefused:
    """One error for a key that is missing, malformed, unknown, wrong or ended: it tells nothing of keys that there are."""
    return KeyRefused(
        "the API key is missing or not valid: send it as `Authorization: Bearer psl_…`"
    )


def _missing(name: str) -> TenantNotFound:
    return TenantNotFound(
        f"there is no tenant {name}: create it with `posology tenants create {name}`", tenant=name
    )


def _tenant(name: str, record: Mapping[str, str], own: Mapping[str, str], now: int) -> Tenant:
    found = [_key(key, value) for key, value in own.items()]
    present = at(now)
    live = [key for key in found if key.expires is None or key.expires > present]
    return Tenant(
        name=name,
        limits=limits.read(record),
        disabled=bool(record.get("disabled")),
        created=at(record["created"]),
        changed=at(record["changed"]),
        keys=tuple(sorted(live, key=_age)),
    )


def _age(key: TenantKey) -> tuple[datetime, datetime, str]:
    # of two of one millisecond the older is the one that ends first
    return key.created, key.expires or datetime.max.replace(tzinfo=UTC), key.id


def _key(own: str, value: str) -> TenantKey:
    created, _, expires = value.partition(":")
    return TenantKey(id=own, created=at(created), expires=at(expires) if expires else None)
