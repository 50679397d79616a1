"""The ledger of whoever runs a command, where the settings say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchestrator.jobs.place import known_store
from orchestrator.settings import Settings
from posology.budget.ledger import Ledger
from posology.budget.memory_ledger import MemoryLedger
from posology.budget.redis_ledger import RedisLedger
from posology.store.connection import connect

#: tries at each command while Redis is out of reach, for somebody who looks on
_TRIES = 8


@asynccontextmanager
async def open_ledger(settings: Settings, tenant: str | None = None) -> AsyncIterator[Ledger]:
    """A tenant's money: in Redis where one is configured or a stack runs, else in this process alone.

    Args:
        settings: say where Redis is.
        tenant: ``None``: as configured.

    Raises:
        ConfigurationError: the address cannot be one.
    """
    url = known_store(settings)
    if url is None:
        yield MemoryLedger()
        return
    redis = connect(url, patience=_TRIES)
    try:
        yield RedisLedger(redis, url, tenant=tenant or settings.tenant)
    finally:
        await redis.aclose()
