"""The store of tenants: limits and API keys."""

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
from posology.budget.tenants.api_keys import TenantKey
from posology.budget.tenants.limits import FIELDS
from posology.errors import (
    InvalidLimit,
    InvalidQuery,
    KeyRefused,
    TenantDisabled,
    TenantExists,
    TenantNotFound,
)
from posology.store import keys
from posology.store.connection import translated
from posology.store.keys import at
from posology.store.scripts import Scripts
from posology.types import Limits

#: maximum seconds for which replaced keys stay valid
MAX_GRACE = 30 * 86_400
#: seconds until an unassigned key is deleted
_STRAY = 3_600
#: maximum tenants of one round trip
_AT_ONCE = 100
_NO_LIMITS = Limits()


@dataclass(frozen=True, kw_only=True, slots=True)
class Tenant:
    """A tenant."""

    name: str
    limits: Limits
    #: whether its calls and keys are refused
    disabled: bool
    created: datetime
    #: last change of its limits, or of ``disabled``
    changed: datetime
    #: valid keys, oldest first
    keys: tuple[TenantKey, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Issued:
    """A tenant with its new key."""

    tenant: Tenant
    #: not stored anywhere: a lost key must be rotated
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
        """Create a tenant with a key. Its earlier spending counts.

        Raises:
            TenantExists: a tenant has that name already.
            InvalidQuery: the name is malformed.
            InvalidLimit: a limit is wrong.
            UnknownModel: an allowed model is unknown.
            StoreUnavailable: it is unknown whether it was created; if it was, rotate its key.
        """
        prefix = keys.prefix(name)
        limits.check(given)
        key = await self._prepared(name)
        with translated(self._url):
            # before the tenant is created: every tenant is in the list
            await self._redis.sadd(keys.REGISTERED, name)
        record = json.dumps(limits.written(given))
        if await self._run("create_tenant", prefix, key.id, record) == "exists":
            await self._forget([key.id])
            raise TenantExists(
                f"the tenant {name} exists already: change it with `posology tenants set {name}`",
                tenant=name,
            )
        await self._keep(key.id)
        return Issued(tenant=await self.get(name), key=key.text)

    async def get(self, name: str) -> Tenant:
        """Return a tenant.

        Raises:
            TenantNotFound: no tenant has that name.
            InvalidQuery: the name is malformed.
            StoreUnavailable: Redis is unreachable.
        """
        found = await self._read([name])
        if not found:
            raise _missing(name)
        return found[0]

    async def all(self) -> list[Tenant]:
        """Return all tenants, sorted by name.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        with translated(self._url):
            members = await cast("Awaitable[set[str]]", self._redis.smembers(keys.REGISTERED))
        names, found = sorted(members), list[Tenant]()
        for start in range(0, len(names), _AT_ONCE):
            found += await self._read(names[start : start + _AT_ONCE])
        return found

    async def some(self, cursor: int = 0, *, limit: int = 50) -> tuple[list[Tenant], int | None]:
        """Return some tenants, sorted by name, and the cursor of the next ones; ``None``: these are the last.

        Tenants that are created meanwhile may be missing.

        Args:
            cursor: of the tenants before; 0: the first ones.
            limit: about how many.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        with translated(self._url):
            following, found = await self._redis.sscan(keys.REGISTERED, cursor, count=limit)
        return await self._read(sorted(cast("list[str]", found))), following or None

    async def limit(self, name: str, to: Limits, *, only: Collection[str] = FIELDS) -> Tenant:
        """Change limits; in-flight calls continue.

        A limit below what is spent lets nothing more be spent in its scope.

        Args:
            name: name of the tenant.
            to: the limits.
            only: names of the limits to change; the others keep their values.

        Raises:
            TenantNotFound: no tenant has that name.
            InvalidQuery: the name is malformed.
            InvalidLimit: a limit is wrong.
            UnknownModel: an allowed model is unknown.
            StoreUnavailable: the result is unknown; repeat it.
        """
        limits.check(to)
        return await self._change(name, limits.written(to, only))

    async def disable(self, name: str) -> Tenant:
        """Refuse a tenant's keys and calls; in-flight calls settle.

        Raises:
            TenantNotFound: no tenant has that name.
            InvalidQuery: the name is malformed.
            StoreUnavailable: the result is unknown; repeat it.
        """
        return await self._change(name, {"disabled": "1"})

    async def enable(self, name: str) -> Tenant:
        """Enable a disabled tenant.

        Raises:
            TenantNotFound: no tenant has that name.
            InvalidQuery: the name is malformed.
            StoreUnavailable: the result is unknown; repeat it.
        """
        return await self._change(name, {"disabled": ""})

    async def rotate(self, name: str, *, grace: float = 0.0) -> Issued:
        """Create a new key for a tenant, and end its other keys.

        Args:
            name: name of the tenant.
            grace: seconds for which the old keys stay valid.

        Raises:
            TenantNotFound: no tenant has that name.
            InvalidQuery: the name is malformed.
            InvalidLimit: ``grace`` is negative, or longer than :data:`MAX_GRACE`.
            StoreUnavailable: it is unknown whether the old keys were ended; rotate again.
        """
        prefix = keys.prefix(name)
        if not (math.isfinite(grace) and 0 <= grace <= MAX_GRACE):
            raise InvalidLimit(
                f"grace must be 0 to {MAX_GRACE} seconds (got {grace:g})",
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

    async def revoke(self, name: str, key: str) -> Tenant:
        """End one key of a tenant now; its other keys stay valid.

        Args:
            name: name of the tenant.
            key: id of the key.

        Raises:
            TenantNotFound: no tenant has that name.
            InvalidQuery: the name is malformed, or the tenant has no such key.
            StoreUnavailable: the result is unknown; repeat it.
        """
        await self.get(name)
        with translated(self._url):
            ended = await self._redis.hdel(f"{keys.prefix(name)}keys", key)
        if not ended:
            raise InvalidQuery(
                f"{name} has no key with the id {key[:40]!r}: it may have ended already",
                field="key",
            )
        await self._forget([key])
        return await self.get(name)

    async def of_key(self, text: str) -> str:
        """Return the tenant of a key, read from Redis now.

        Raises:
            KeyRefused: the key is unknown or expired; the message does not say which.
            TenantDisabled: the tenant is disabled.
            StoreUnavailable: Redis is unreachable.
        """
        tenant = await self.of_bearer(text)
        if tenant is None:
            raise refused()
        return tenant

    async def of_bearer(self, text: str) -> str | None:
        """Return the tenant of a bearer token, read from Redis now; ``None``: it is the key of no tenant at all.

        Raises:
            KeyRefused: there is a key of this id, but the secret is wrong, or the key has ended.
            TenantDisabled: the tenant is disabled.
            StoreUnavailable: Redis is unreachable.
        """
        own = api_keys.id_of(text)
        if own is None:
            return None
        with translated(self._url):
            record = await cast("Awaitable[dict[str, str]]", self._redis.hgetall(keys.api_key(own)))
        right = api_keys.is_key_of(text, record.get("hash"))
        if not record:
            return None
        if not right:
            raise refused()
        tenant = record["tenant"]
        await self.check(tenant, own)
        return tenant

    async def check(self, tenant: str, key: str) -> None:
        """Check that a key, known by its id, is still one of a tenant's, read from Redis now.

        Raises:
            KeyRefused: the key has ended.
            TenantDisabled: the tenant is disabled.
            StoreUnavailable: Redis is unreachable.
        """
        match await self._run("check_key", keys.prefix(tenant), key):
            case "live":
                return
            case "disabled":
                raise _disabled(tenant)
            case _:
                raise refused()

    async def admit(self, tenant: str) -> None:
        """Check that a tenant, whose right another service has proven, may act, read from Redis now.

        Raises:
            KeyRefused: there is no such tenant.
            TenantDisabled: the tenant is disabled.
            StoreUnavailable: Redis is unreachable.
        """
        found = await self._read([tenant])
        if not found:
            raise KeyRefused(
                f"there is no tenant {tenant} here: ask the operator of this service",
                tenant=tenant,
            )
        if found[0].disabled:
            raise _disabled(tenant)

    async def _change(self, name: str, record: Mapping[str, str]) -> Tenant:
        if await self._run("change_tenant", keys.prefix(name), json.dumps(record)) == "gone":
            raise _missing(name)
        return await self.get(name)

    async def _read(self, names: Collection[str]) -> list[Tenant]:
        """Return the names that are tenants."""
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
        """Return a new key with a record of its tenant. It is valid once a script has assigned it."""
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
        """Delete the records of keys that have ended, or will; they have no other use."""
        with translated(self._url):
            async with self._redis.pipeline(transaction=False) as pipe:
                for place, own in enumerate(ids):
                    at = int(list(until)[place]) if until else 0
                    # a time that has passed deletes it at once
                    pipe.pexpireat(keys.api_key(own), at)
                await pipe.execute()


def refused() -> KeyRefused:
    """Return one error for a missing, malformed, unknown, wrong or expired key, so that it reveals nothing."""
    return KeyRefused("the API key is missing or invalid: send it as `Authorization: Bearer psl_…`")


def _disabled(tenant: str) -> TenantDisabled:
    return TenantDisabled(
        f"the tenant {tenant} is disabled: ask the operator of this service", tenant=tenant
    )


def _missing(name: str) -> TenantNotFound:
    return TenantNotFound(
        f"no tenant is called {name}: create it with `posology tenants create {name}`", tenant=name
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
    # of two in one millisecond the older is the one that ends first
    return key.created, key.expires or datetime.max.replace(tzinfo=UTC), key.id


def _key(own: str, value: str) -> TenantKey:
    created, _, expires = value.partition(":")
    return TenantKey(id=own, created=at(created), expires=at(expires) if expires else None)
