"""The budget of a tenant: its ledger and rate limits, in Redis or in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

import anyio

from orchestrator.jobs.place import known_store
from orchestrator.question.decider import remaining_budget
from orchestrator.question.machine import Remaining, RemainingBudget
from orchestrator.settings import Settings
from posology.budget.ledger.base import LEASE, Ledger
from posology.budget.ledger.memory import MemoryLedger
from posology.llm.providers.table import PROVIDERS
from posology.seams import Meter


class Charged(Protocol):
    """One or more accounts."""

    @property
    def charged(self) -> Decimal:
        """Dollars charged so far."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """A tenant's ledger and rate limits."""

    ledger: Ledger
    #: rate limits; ``None``: there are none
    meter: Meter | None

    def remaining(self, account: Charged, cap: Decimal | None) -> Remaining:
        """Return a function that looks up the remaining budget of one run.

        Args:
            account: account of the run.
            cap: budget of the run, dollars; the tenant's limit for one job applies, too. ``None``: that limit only.
        """

        async def look() -> RemainingBudget | None:
            caps = [one for one in (cap, await self.ledger.job_limit()) if one is not None]
            own = max(Decimal(0), min(caps) - account.charged) if caps else None
            balances = await self.ledger.balances()
            if any(one.cap is not None and one.reserved for one in balances):
                # the reservations may be of a dead process, and perhaps no worker sweeps
                await self.ledger.sweep()
                balances = await self.ledger.balances()
            return remaining_budget(balances, own)

        return look


@asynccontextmanager
async def open_budget(settings: Settings, tenant: str | None = None) -> AsyncIterator[Budget]:
    """Open a tenant's budget: in Redis if one is configured or a stack runs, else in this process alone.

    Args:
        settings: have the address of Redis.
        tenant: name of the tenant; ``None``: as configured.

    Raises:
        ConfigurationError: the address is invalid.
    """
    url, name = known_store(settings), tenant or settings.tenant
    lease, floor = lease_for(settings), _floor(settings)
    if url is None:
        yield Budget(ledger=MemoryLedger(tenant=name, lease=lease, floor=floor), meter=None)
        return
    # a process without Redis imports neither its client nor that of the rate limits
    from posology.budget.ledger.redis import RedisLedger
    from posology.budget.tenants.meter import RedisMeter
    from posology.store.connection import FEW_TRIES, connect

    redis = connect(url, tries=FEW_TRIES)
    try:
        yield Budget(
            ledger=RedisLedger(redis, url, tenant=name, lease=lease, floor=floor),
            meter=RedisMeter(redis, url, tenant=name),
        )
    finally:
        # also while this is being cancelled
        with anyio.CancelScope(shield=True):
            await redis.aclose()


def lease_for(settings: Settings) -> float:
    """Return the seconds of a reservation that no heartbeat extends: of a command's or a request's call.

    Until the call's deadline, an attempt goes on as long as its reply does.
    """
    return max(LEASE, settings.call_deadline + settings.call_timeout)


def _floor(settings: Settings) -> float | None:
    """Return the fewest tokens a second of the slowest provider that anything is reserved for; ``None``: none is slow."""
    # a price file may charge what is free for another model's price
    paid = (row.name for row in PROVIDERS.values() if settings.prices or not row.free)
    floors = map(settings.floor, paid)
    return min((floor for floor in floors if floor is not None), default=None)
