"""Rate limits of a tenant in Redis: requests and tokens per minute, for all processes, by the ``limits`` library.

Requests use a *moving window* with the time of each request: no minute has more than the limit. It needs an entry for each
request. Tokens use a *sliding window counter* with two numbers: an entry for each token would take megabytes for each
tenant. It assumes that the last window's tokens were spread evenly. A burst at the end of one window and steady use of the
next can therefore reach almost twice the limit within one minute, as with the token buckets of providers.

The keys are ``posology:{TENANT}:rates:requests`` and ``posology:{TENANT}:rates:{tokens}``, the latter with ``/-1`` for the
window before. A cluster hashes the text in the first braces, so they share the tenant's slot. Unlike the library's own
keys they do not contain the limit, so a changed limit counts earlier use. The moving window uses the clocks of the
processes, which must agree to about a second; the counter uses the server's clock.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

import anyio
from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import (
    MovingWindowRateLimiter,
    RateLimiter,
    SlidingWindowCounterRateLimiter,
)
from redis.asyncio import Redis

from posology.budget.ledger.scripts import source
from posology.budget.tenants.limits import read
from posology.store import keys
from posology.store.connection import translated
from posology.store.scripts import Scripts
from posology.types import Limits, Scope, Taken

#: seconds
MINUTE = 60.0
#: seconds until a tenant's limits are read again, and a change takes effect
_LIMITS_KEPT = 1.0
#: maximum tenants in the cache
_TENANTS = 1_000


class Meters:
    """The meters of all tenants of one Redis, created on first use.

    Args:
        redis: the connection.
        url: for messages.
    """

    def __init__(self, redis: Redis, url: str) -> None:
        self._redis = redis
        self._url = url
        self._limits = TenantLimits(redis, url)
        self._run = Scripts(redis, url, source)
        self._known: dict[str, RedisMeter] = {}

    def of(self, tenant: str) -> RedisMeter:
        """Return the meter of a tenant.

        Raises:
            InvalidQuery: the name is malformed.
        """
        if tenant not in self._known:
            if len(self._known) >= _TENANTS:
                self._known.clear()
            self._known[tenant] = RedisMeter(
                self._redis, self._url, tenant=tenant, limits=self._limits, scripts=self._run
            )
        return self._known[tenant]


class RedisMeter:
    """A :class:`~posology.seams.Meter` in Redis. It may be shared by concurrent callers.

    Args:
        redis: the connection.
        url: for messages.
        tenant: name of the tenant.
        limits: reads the tenant's limits; ``None``: a reader of its own.
        scripts: runs the ledger's scripts; ``None``: on this connection.

    Raises:
        InvalidQuery: the name is malformed.
    """

    def __init__(
        self,
        redis: Redis,
        url: str,
        *,
        tenant: str,
        limits: TenantLimits | None = None,
        scripts: Scripts | None = None,
    ) -> None:
        self._url = url
        self._tenant = tenant
        self._prefix = keys.prefix(tenant)
        self._limits = limits or TenantLimits(redis, url)
        self._run = scripts or Scripts(redis, url, source)
        self._turn = anyio.Lock()
        self._storage = RedisStorage(
            # the address is never used: the pool has one
            "redis://",
            implementation="redispy",
            key_prefix=f"{self._prefix}rates",
            connection_pool=cast("Any", redis.connection_pool),
        )
        self._strategies: Mapping[Scope, RateLimiter] = {
            Scope.REQUESTS: MovingWindowRateLimiter(self._storage),
            Scope.TOKENS: SlidingWindowCounterRateLimiter(self._storage),
        }

    async def limits(self) -> Limits:
        """See :meth:`Meter.limits <posology.seams.Meter.limits>`."""
        return await self._limits(self._tenant)

    async def take(self, wanted: Mapping[Scope, int], limits: Limits, *, ticket: str) -> Taken:
        """See :meth:`Meter.take <posology.seams.Meter.take>`."""
        place, stood, kept = await self._line("ask", ticket)
        if place:
            return Taken(granted=frozenset(), refused="turn", place=place)
        granted, refused, after = list(kept & wanted.keys()), None, None
        if missing := {scope: cost for scope, cost in wanted.items() if scope not in kept}:
            with translated(self._url):
                more, refused = await self._hit(missing, limits)
                granted += more
                if refused is not None:
                    after = await self._after(refused, wanted[refused], limits)
        if refused is not None:
            place, *_ = await self._line("wait", ticket)
        elif stood:
            await self._line("leave", ticket)
        return Taken(granted=frozenset(granted), refused=refused, place=place, retry_after=after)

    async def keep(self, granted: Collection[Scope], seconds: float, *, ticket: str) -> None:
        """See :meth:`Meter.keep <posology.seams.Meter.keep>`."""
        await self._line("keep", ticket, ",".join(sorted(granted)), max(1, int(seconds * 1000)))

    async def _hit(
        self, wanted: Mapping[Scope, int], limits: Limits
    ) -> tuple[list[Scope], Scope | None]:
        """Take from one scope after the other.

        The library cannot return a grant. With two scopes it therefore tests before it takes, one call of this
        process at a time. Only another process can interfere, and its effect is kept for the call.
        """
        if len(wanted) == 1:
            return await self._hit_each(wanted, limits)
        async with self._turn:
            requests = _item(Scope.REQUESTS, limits)
            if not await self._strategies[Scope.REQUESTS].test(requests):
                return [], Scope.REQUESTS
            return await self._hit_each(wanted, limits)

    async def _hit_each(
        self, wanted: Mapping[Scope, int], limits: Limits
    ) -> tuple[list[Scope], Scope | None]:
        granted: list[Scope] = []
        for scope in (Scope.TOKENS, Scope.REQUESTS):
            if scope not in wanted:
                continue
            if not await self._strategies[scope].hit(_item(scope, limits), cost=wanted[scope]):
                return granted, scope
            granted.append(scope)
        return granted, None

    async def _after(self, scope: Scope, cost: int, limits: Limits) -> float:
        """Return the seconds until there is room, without further requests."""
        item = _item(scope, limits)
        if scope is Scope.REQUESTS:
            stats = await self._strategies[scope].get_window_stats(item)
            return max(0.0, stats.reset_time - time.time())
        previous, expires, current, ends = await self._storage.get_sliding_window(
            item.key_for(), item.get_expiry()
        )
        return until_room(cost, item.amount, previous, expires, current, ends)

    async def _line(
        self, word: str, ticket: str, *more: str | int
    ) -> tuple[int, bool, frozenset[Scope]]:
        place, stood, kept = await self._run("line", self._prefix, ticket, word, *more)
        return int(place), stood == "1", frozenset(Scope(one) for one in kept.split(",") if one)


def until_room(
    cost: int, limit: int, previous: int, expires: float, current: int, ends: float
) -> float:
    """Return the seconds until a sliding window counter has room for a cost; the library supports a cost of 1 only.

    A window's count has full weight while it runs, and falls to 0 in the minute after it.

    Args:
        cost: at most the limit.
        limit: of the window.
        previous: count of the last window.
        expires: seconds until that has no weight.
        current: count of this window.
        ends: seconds until *that* has no weight: a minute after its end.
    """
    room = limit - cost
    if current > room:
        previous, expires, current = current, ends, 0
    if not previous:
        return 0.0
    return max(0.0, expires - MINUTE * (room - current) / previous)


class _Minute(RateLimitItemPerMinute):
    """A limit whose key does not contain its amount."""

    def key_for(self, *_: object) -> str:
        return self.namespace


def _item(scope: Scope, limits: Limits) -> _Minute:
    amount = limits.requests_per_minute if scope is Scope.REQUESTS else limits.tokens_per_minute
    assert amount is not None
    return _Minute(amount, namespace=str(scope))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    limits: Limits
    until: float


class TenantLimits:
    """Reads tenants' limits, with a cache.

    Only rate limits are read here: the script that reserves reads the budgets itself.

    Args:
        redis: the connection.
        url: for messages.
    """

    def __init__(self, redis: Redis, url: str) -> None:
        self._redis = redis
        self._url = url
        self._known: dict[str, _Kept] = {}

    async def __call__(self, tenant: str) -> Limits:
        """Return the limits of a tenant; a tenant without a record has none.

        Raises:
            InvalidQuery: the name is malformed.
            StoreUnavailable: the limits are unknown.
        """
        now = time.monotonic()
        found = self._known.get(tenant)
        if found is not None and now < found.until:
            return found.limits
        with translated(self._url):
            reading = self._redis.hgetall(f"{keys.prefix(tenant)}tenant")
            record = await cast("Awaitable[dict[str, str]]", reading)
        of_tenant = read(record)
        if len(self._known) >= _TENANTS:
            self._known.clear()
        self._known[tenant] = _Kept(limits=of_tenant, until=now + _LIMITS_KEPT)
        return of_tenant
