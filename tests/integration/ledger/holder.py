"""A process that reserves and does no more: whoever started it kills it.

Usage: ``python -m tests.integration.ledger.holder URL TENANT LEASE COUNT DOLLARS``.
"""

from __future__ import annotations

import asyncio
import sys

from posology.budget.ledger.redis import RedisLedger
from posology.store.connection import connect
from tests.integration.ledger.helpers import asked


async def _hold(url: str, tenant: str, lease: float, count: int, amount: str) -> None:
    ledger = RedisLedger(connect(url), url, tenant=tenant, lease=lease)
    held = [f"held{i}" for i in range(count)]
    for attempt in held:
        await ledger.reserve(asked(attempt, amount, run="run_held"))
    print("ready", flush=True)  # noqa: T201 - that is how it tells
    while True:
        # as long as it lives its leases do
        await asyncio.sleep(lease / 4)
        await ledger.extend(held)


if __name__ == "__main__":
    url, tenant, lease, count, amount = sys.argv[1:]
    asyncio.run(_hold(url, tenant, float(lease), int(count), amount))
