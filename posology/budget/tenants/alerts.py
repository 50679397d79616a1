"""Budgets that are nearly spent: found for all tenants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from redis.asyncio import Redis

from posology.budget.ledger.base import dollars
from posology.budget.ledger.windows import WINDOWS, day_of, window
from posology.store import keys
from posology.store.connection import translated
from posology.types import Scope

#: fraction of a budget from which an operator is warned
NEAR = Decimal("0.8")
#: tenants that are asked for in one round trip
_AT_ONCE = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class NearLimit:
    """A budget of which at least :data:`NEAR` is spent."""

    tenant: str
    scope: Scope
    #: dollars
    cap: Decimal
    #: dollars
    spent: Decimal
    #: its counters: the day, the month, or ``total``
    window: str


async def near_limits(redis: Redis, url: str, names: Sequence[str]) -> list[NearLimit]:
    """Return the budgets of tenants that are nearly or wholly spent; budgets of 0 are none.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    budgets: list[NearLimit] = []
    windows = [window(scope, day_of(datetime.now(UTC))) for scope in WINDOWS]
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        with translated(url):
            async with redis.pipeline(transaction=False) as pipe:
                for prefix in map(keys.prefix, some):
                    pipe.hmget(f"{prefix}tenant", [str(scope) for scope in WINDOWS])
                    pipe.hmget(f"{prefix}money", [f"spent:{name}" for name in windows])
                replies = iter(await pipe.execute())
        for tenant, caps, sums in zip(some, replies, replies, strict=True):
            for scope, name, cap, spent in zip(WINDOWS, windows, caps, sums, strict=True):
                most, now = dollars(cap or 0), dollars(spent or 0)
                if most and now >= NEAR * most:
                    budgets.append(
                        NearLimit(tenant=tenant, scope=scope, cap=most, spent=now, window=name)
                    )
    return budgets
