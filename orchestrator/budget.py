"""The ledger of whoever runs a command, where the settings say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal

from orchestrator.jobs.place import known_store
from orchestrator.question.decider import Left, Means, left
from orchestrator.settings import Settings
from posology.budget.ledger.base import LEASE, Ledger
from posology.budget.ledger.memory import MemoryLedger
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.meter import RedisMeter
from posology.llm.accounting import Account
from posology.seams import Meter
from posology.store.connection import connect

#: tries at each command while Redis is out of reach, for somebody who looks on
_TRIES = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Purse:
    """What a tenant spends from."""

    ledger: Ledger
    #: of its minute; ``None``: it is not limited
    meter: Meter | None

    def means(self, account: Account, cap: Decimal | None) -> Means:
        """Looks up what is left for one run.

        Args:
            account: of the run.
            cap: dollars for the run; the tenant's limit for one job holds, too.
        """

        async def look() -> Left | None:
            caps = [one for one in (cap, await self.ledger.job_limit()) if one is not None]
            own = max(Decimal(0), min(caps) - account.charged) if caps else None
            balances = await self.ledger.balances()
            if any(one.cap is not None and one.reserved for one in balances):
                # what holds it may be of a process that is gone, and no worker may be there to find out
                await self.ledger.sweep()
                balances = await self.ledger.balances()
            return left(balances, own)

        return look


@asynccontextmanager
async def open_purse(settings: Settings, tenant: str | None = None) -> AsyncIterator[Purse]:
    """What a tenant may spend: in Redis where one is configured or a stack runs, else in this process alone.

    Args:
        settings: say where Redis is.
        tenant: ``None``: as configured.

    Raises:
        ConfigurationError: the address cannot be one.
    """
    url, name = known_store(settings), tenant or settings.tenant
    # nobody extends the lease of a command's call
    lease = max(LEASE, 2 * settings.call_timeout)
    if url is None:
        yield Purse(ledger=MemoryLedger(tenant=name, lease=lease), meter=None)
        return
    redis = connect(url, patience=_TRIES)
    try:
        yield Purse(
            ledger=RedisLedger(redis, url, tenant=name, lease=lease),
            meter=RedisMeter(redis, url, tenant=name),
        )
    finally:
        await redis.aclose()
