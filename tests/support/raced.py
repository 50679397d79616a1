"""A real stack with one tenant whose cap many calls race for."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from anyio.from_thread import start_blocking_portal

from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.budget.tenants.store import TenantStore
from posology.client import Client
from posology.store.connection import connect
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub
from posology.types import Limits
from tests.support.indices import groups, index_of

CAP = Decimal("0.0015")
_Found = TypeVar("_Found")


async def raced(
    folder: Path, encoder: Path, race: Callable[[str, str], Awaitable[_Found]], **settings: str
) -> tuple[_Found, Decimal]:
    """Run a race, given the service's address and a key, and return what it found and the dollars spent and reserved."""
    place = str(index_of(folder, encoder, groups(16)))
    with LoadStub(Faults(latency=(0.2, 0.2))) as stub:
        options = StackOptions(
            environment=os.environ,
            folder=folder / "stack",
            workers=1,
            concurrency=20,
            api=True,
            port=0,
            index=place,
            overrides={
                "POSOLOGY_EMBEDDER": str(encoder),
                "POSOLOGY_MODEL": "openai:gpt-4o-mini",
                "OPENAI_API_KEY": "sk-test",
                "OPENAI_BASE_URL": stub.openai_url,
                **settings,
            },
        )
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(running_stack(options)) as info,
        ):
            redis = connect(info.redis_url)
            try:
                issued = await TenantStore(redis, info.redis_url).create("acme", Limits(day=CAP))
            finally:
                await redis.aclose()
            url = str(info.api_url)
            found = await race(url, issued.key)
            async with Client(url, api_key=issued.key) as client:
                spend = await client.spend()
    (day,) = [balance for balance in spend.balances if balance.scope == "day"]
    return found, day.spent_usd + day.reserved_usd
