"""The ledger of whoever runs a command, where the settings say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from orchestrator.jobs.place import known_store
from orchestrator.settings import Settings
from posology.budget.ledger.base import LEASE, Ledger
from posology.budget.ledger.memory import MemoryLedger
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.meter import RedisMeter
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
