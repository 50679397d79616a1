"""Backup and restore as the documentation tells: files copied from under a running Redis, and all of it wiped."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import anyio
import pytest
from redis.asyncio import Redis

from posology.budget.books.audit import Auditor
from posology.budget.ledger.redis import RedisLedger
from posology.errors import BudgetExhausted
from posology.store.connection import connect
from posology.types import Limits, Scope
from tests.integration.ledger.helpers import (
    Server,
    asked,
    ended,
    lasting_redis,
    stream,
    write_limits,
)

pytestmark = pytest.mark.anyio


async def test_a_copy_of_the_files_restores_the_books(tmp_path: Path, tenant: str) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    with lasting_redis(old, "always") as server:
        redis = connect(server.url)
        ledger = RedisLedger(redis, server.url, tenant=tenant, lease=600.0)
        await write_limits(redis, tenant, Limits(total=Decimal(4)))
        for attempt in ("a", "b", "held"):
            await ledger.reserve(asked(attempt))
        await ledger.settle(ended("a", "0.25"))
        await _rewritten(redis)
        await ledger.settle(ended("b", "0.75"))
        before = await stream(redis, tenant)
        balances = await ledger.balances()
        shutil.copytree(old, new, ignore=shutil.ignore_patterns("*.sock"))
        # after the backup: these are missing in it
        await ledger.reserve(asked("late"))
        await redis.aclose()
    shutil.rmtree(old)

    with lasting_redis(new, "always") as server:
        redis = connect(server.url)
        try:
            await _check(redis, server, tenant)
            assert await stream(redis, tenant) == before
            ledger = RedisLedger(redis, server.url, tenant=tenant, lease=600.0)
            assert await ledger.balances() == balances
            # what was under way at the time of the backup can still be settled, once
            await ledger.settle(ended("held", "0.5"))
            (total,) = (b for b in await ledger.balances() if b.scope is Scope.TOTAL)
            assert (total.spent, total.reserved) == (Decimal("1.5"), Decimal(0))
            # and the limit still holds
            for attempt in ("c", "d"):
                await ledger.reserve(asked(attempt))
                await ledger.settle(ended(attempt, "1"))
            with pytest.raises(BudgetExhausted):
                await ledger.reserve(asked("e"))
            await _check(redis, server, tenant)
        finally:
            await redis.aclose()


async def _rewritten(redis: Redis) -> None:
    await redis.bgrewriteaof()
    with anyio.fail_after(90):
        while (await redis.info("persistence"))["aof_rewrite_in_progress"]:  # noqa: ASYNC110 - Redis tells nobody
            await anyio.sleep(0.02)


async def _check(redis: Redis, server: Server, tenant: str) -> None:
    audit = await Auditor(redis, server.url, tenant).verify()
    assert audit.right, audit
