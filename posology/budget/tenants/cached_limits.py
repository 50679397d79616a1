"""What tenants may do, read now and then and kept for a moment."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from redis.asyncio import Redis

from posology.budget.tenants import limits
from posology.store import keys
from posology.store.connection import translated
from posology.types import Limits

#: seconds after which a tenant's limits are read again: as long may a change take to count
KEPT = 1.0
#: tenants whose limits are kept at once
_TENANTS = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    limits: Limits
    until: float


class TenantLimits:
    """Reads limits of tenants for whoever asks at every call.

    For limits whose change may take a second: those of money are read by the script that reserves.

    Args:
        redis: the connection.
        url: for messages.
        kept: seconds after which limits are read again.
        clock: seconds, from any origin.
    """

    def __init__(
        self,
        redis: Redis,
        url: str,
        *,
        kept: float = KEPT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._redis = redis
        self._url = url
        self._keep = kept
        self._clock = clock
        self._known: dict[str, _Kept] = {}

    async def __call__(self, tenant: str) -> Limits:
        """The limits of a tenant; one that nobody created has none.

        Raises:
            InvalidQuery: no tenant can have that name.
            StoreUnavailable: it is not known what the tenant may do.
        """
        now = self._clock()
        found = self._known.get(tenant)
        if found is not None and now < found.until:
            return found.limits
        with translated(self._url):
            reading = self._redis.hgetall(f"{keys.prefix(tenant)}tenant")
            record = await cast("Awaitable[dict[str, str]]", reading)
        read = limits.read(record)
        if len(self._known) >= _TENANTS:
            self._known.clear()
        self._known[tenant] = _Kept(limits=read, until=now + self._keep)
        return read
