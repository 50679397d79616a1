"""Processes killed with reservations, and Redis killed under traffic: nothing is lost, nothing counts twice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from redis.asyncio import Redis

from posology.budget.books.audit import Auditor
from posology.budget.ledger.base import nano
from posology.budget.ledger.redis import RedisLedger
from posology.errors import HeadroomReserved, StoreUnavailable
from posology.store.connection import connect
from posology.types import Limits, Scope
from tests.integration.ledger.helpers import (
    Server,
    asked,
    counters,
    ended,
    figures,
    fold,
    fold_figures,
    last_words,
    lasting_redis,
    stream,
    write_limits,
)

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
#: seconds
LEASE = 3.0
#: seconds by which a busy machine may be late; an idle one is not by a tenth of that
LATE = 30.0
#: tasks of the traffic, and attempts of each
TASKS, EACH = 12, 40


@contextmanager
def _holder(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.integration.ledger.holder", *map(str, arguments)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


async def test_what_a_killed_process_held_is_billed_within_one_lease(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    await write_limits(redis, tenant, Limits(total=Decimal(4), calls=3))
    ledger = RedisLedger(redis, redis_url, tenant=tenant, lease=LEASE)
    with _holder(redis_url, tenant, LEASE, 3, "1") as process:
        # longer than a lease: whoever lives keeps what is reserved
        await anyio.sleep(1.5 * LEASE)
        assert await ledger.sweep() == []
        with pytest.raises(HeadroomReserved):
            await ledger.reserve(asked("mine", "1"))
        process.kill()
        killed = time.monotonic()
        swept: list[str] = []
        while True:
            # as housekeeping does
            swept += await ledger.sweep()
            try:
                await ledger.reserve(asked("mine", "1"))
            except HeadroomReserved:
                assert time.monotonic() - killed < LEASE + LATE
                await anyio.sleep(0.02)
            else:
                break
    assert time.monotonic() - killed < LEASE + LATE
    assert sorted(swept) == ["held0", "held1", "held2"]
    entries = await stream(redis, tenant)
    lost = [entry for entry in entries if entry["kind"] == "lose"]
    assert sorted(entry["id"] for entry in lost) == sorted(swept)
    for entry in lost:
        assert (entry["known"], entry["outcome"], entry["charged"]) == ("0", "lost", "1000000000")
        assert json.loads(entry["entry"])["id"] == entry["id"]
    (total,) = (b for b in await ledger.balances() if b.scope is Scope.TOTAL)
    assert [total.spent, total.reserved, total.left] == [Decimal(n) for n in (3, 1, 0)]
    # and should it have lived after all, what it tells puts that right
    await ledger.settle(ended("held0", "0.25"))
    (total,) = (b for b in await ledger.balances() if b.scope is Scope.TOTAL)
    assert total.left == Decimal("0.75")


@pytest.mark.parametrize(
    ("fsync", "kill"), [("everysec", False), ("always", False), ("always", True)]
)
async def test_redis_may_restart_in_the_middle_of_it_all(
    tmp_path: Path, tenant: str, fsync: str, kill: bool
) -> None:
    with lasting_redis(tmp_path, fsync) as server:
        traffic = _Traffic(server, tenant)
        await write_limits(traffic.redis, tenant, Limits(total=Decimal(1_000), calls=12))
        try:
            with anyio.fail_after(240):
                async with anyio.create_task_group() as group:
                    for i in range(TASKS):
                        group.start_soon(traffic.run, i)
                    for done in (TASKS * EACH // 4, TASKS * EACH // 2):
                        while traffic.done < done:  # noqa: ASYNC110 - many tasks count
                            await anyio.sleep(0.002)
                        assert traffic.under_way, "it is stopped in the middle of something"
                        await anyio.to_thread.run_sync(_restart, server, kill)
            await traffic.check()
            # and once more, from the file alone
            _restart(server, kill=True)
            await traffic.check()
        finally:
            await traffic.redis.aclose()


async def test_a_full_redis_lets_nothing_be_sent_and_takes_every_end(
    tmp_path: Path, tenant: str
) -> None:
    with lasting_redis(tmp_path, "everysec") as server:
        async with connect(server.url) as redis:
            ledger = RedisLedger(redis, server.url, tenant=tenant, lease=1.0)
            for attempt in ("a", "b", "c"):
                await ledger.reserve(asked(attempt))
            await redis.config_set("maxmemory", 1)
            before = await stream(redis, tenant)
            with pytest.raises(StoreUnavailable, match="memory"):
                await ledger.reserve(asked("d"))
            with pytest.raises(StoreUnavailable, match="memory"):
                await ledger.reserve(asked("d", run="run_new"))
            assert await stream(redis, tenant) == before
            await ledger.settle(ended("a", "0.5"))
            await ledger.release("b")
            await anyio.sleep(1.1)
            assert await ledger.sweep() == ["c"]
            await ledger.settle(ended("c", "0.25"))
            await redis.config_set("maxmemory", 0)
            entries = await stream(redis, tenant)
            assert last_words(entries) == {"a": "settle", "b": "release", "c": "correct"}
            assert await counters(redis, tenant, "run_a", "run_new") == fold(entries)


def _restart(server: Server, kill: bool) -> None:
    """Stop and start again."""
    server.stop(kill=kill)
    server.start()


class _Traffic:
    """Reservations and settlements, and an account of them that no Redis keeps."""

    def __init__(self, server: Server, tenant: str) -> None:
        self.redis = connect(server.url)
        self._url = server.url
        self.tenant = tenant
        self.done = 0
        self._ledger = RedisLedger(self.redis, server.url, tenant=tenant, lease=600)
        #: nano-dollars by attempt; nothing for those that were released
        self._spent: dict[str, int] = {}
        #: attempts that have begun and not ended
        self.under_way = 0

    async def run(self, task: int) -> None:
        draw = random.Random(task)
        for i in range(EACH):
            attempt, bound = f"t{task}-{i}", Decimal(draw.randint(1, 999_999)) / 10**7
            self.under_way += 1
            await self._reserve(attempt, bound, f"run_{task}")
            await anyio.lowlevel.checkpoint()
            cost = draw.choice([bound, bound / 2, bound / 3, None, "nothing"])
            await self._end(attempt, bound, cost)
            self.under_way -= 1
            self.done += 1

    async def _reserve(self, attempt: str, bound: Decimal, run: str) -> None:
        while True:
            try:
                await self._ledger.reserve(asked(attempt, bound, run=run))
            except HeadroomReserved:
                await anyio.sleep(0.005)
            else:
                return

    async def _end(self, attempt: str, bound: Decimal, cost: Any) -> None:
        if cost == "nothing":
            await self._ledger.release(attempt)
            self._spent[attempt] = 0
            return
        await self._ledger.settle(ended(attempt, cost, bound))
        self._spent[attempt] = nano(bound if cost is None else cost)

    async def check(self) -> None:
        """What Redis has is what its entries add up to, and what this account says."""
        entries = await stream(self.redis, self.tenant)
        live = await counters(self.redis, self.tenant, *{entry["job"] for entry in entries})
        assert live == fold(entries)
        assert live["spent:total"] == sum(self._spent.values())
        assert live["reserved:total"] == 0
        days = {entry["day"] for entry in entries}
        assert await figures(self.redis, self.tenant, *days) == fold_figures(entries)
        assert last_words(entries).keys() == self._spent.keys()
        ends = Counter(entry["id"] for entry in entries if entry["kind"] != "reserve")
        assert set(ends.values()) == {1}, "each attempt ends once"
        charged = {e["id"]: int(e["charged"]) for e in entries if e["kind"] != "reserve"}
        assert charged == self._spent
        # the ledger's own check comes to the same
        audit = await Auditor(self.redis, self._url, self.tenant).verify()
        assert audit.right
        assert (audit.entries, audit.open) == (len(entries), 0)
