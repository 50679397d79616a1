"""A Redis that is there and does not serve: what was paid for is kept until it does."""

from __future__ import annotations

import pytest

from posology.errors import StoreUnavailable
from posology.types import JobState
from tests.integration.jobs_store.helpers import Bench

pytestmark = pytest.mark.anyio


async def test_a_reply_outlasts_a_store_that_is_full(bench: Bench) -> None:
    held = await bench.running()
    name = bench.key(f"job:{held.unit.job}")
    await bench.open(held, "a1")
    await bench.redis.config_set("maxmemory-policy", "noeviction")
    await bench.redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(StoreUnavailable, match="memory"):
            await bench.submit()
        with pytest.raises(StoreUnavailable, match="memory"):
            await bench.open(held, "a2")
        # what was spent is written down also where there is no room for anything new
        await bench.close(held, "a1")
        assert await bench.redis.scard(f"{name}:open") == 0
        # and what is there can be read
        assert await bench.state(held.unit.job) is JobState.RUNNING
        assert len((await bench.get(held.unit.job)).spending.attempts) == 1
    finally:
        await bench.redis.config_set("maxmemory", 0)
    out = await bench.get(held.unit.job)
    assert len(out.spending.attempts) == 1
    assert out.unknown_costs == 0
