"""Scripts run on a Redis that may restart, and so forget them, between any two commands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from posology.store import keys
from posology.store.scripts import Scripts, read_together

pytestmark = pytest.mark.anyio

COUNT = "return redis.call('INCRBY', KEYS[1] .. 'count', ARGV[2])"


class Forgetful(Redis):
    """A client whose server knows no script when a command comes."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        await super().execute_command("SCRIPT FLUSH")  # type: ignore[no-untyped-call]  # redis-py's own
        return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]  # redis-py's own


@pytest.fixture
async def forgetful(redis_url: str) -> AsyncIterator[Redis]:
    redis = Forgetful.from_url(redis_url, decode_responses=True)
    yield redis
    await redis.aclose()


async def test_a_script_that_is_forgotten_each_time_runs_once_a_call(
    forgetful: Redis, redis_url: str, tenant: str
) -> None:
    run = Scripts(forgetful, redis_url, lambda _: COUNT, clock=lambda: 0)
    assert [await run("count", keys.prefix(tenant), 2) for _ in range(3)] == [2, 4, 6]


async def test_hashes_are_read_together_where_the_script_is_forgotten(
    forgetful: Redis, tenant: str
) -> None:
    names = [f"{keys.prefix(tenant)}{name}" for name in ("one", "other")]
    await forgetful.hset(names[0], "a", "1")
    assert await read_together(forgetful, *names) == ({"a": "1"}, {})
