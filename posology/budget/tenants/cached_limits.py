"""Tenants' limits, cached for a second."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import cast

from redis.asyncio import Redis

from posology.budget.tenants import limits
from posology.store import keys
from posology.store.connection import translated
from posology.types import Limits

#: seconds until a tenant's limits are read again, and a change takes effect
KEPT = 1.0
#: maximum tenants in the cache
_TENANTS = 1_000


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
        read = limits.read(record)
        if len(self._known) >= _TENANTS:
            self._known.clear()
        self._known[tenant] = _Kept(limits=read, until=now + KEPT)
        return read
