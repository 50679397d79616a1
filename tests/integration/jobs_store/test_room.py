"""How many jobs of a tenant may wait, and how much of Redis they may occupy."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from orchestrator.jobs.admission import MIB, Room
from orchestrator.jobs.batches import Batches
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.errors import QueueFull
from tests.integration.jobs_store.helpers import RETENTION, Bench, answer, refused, request

pytestmark = pytest.mark.anyio


def store(bench: Bench, **room: int) -> JobStore:
    return JobStore(
        bench.redis, bench.url, clock=bench.clock, retention=RETENTION, room=Room(**room)
    )


def lines(count: int, **fields: Any) -> list[str]:
    return [json.dumps({"question": f"Is it {i}?", **fields}) for i in range(count)]


async def stored(bench: Bench) -> int:
    return int(await bench.redis.get(bench.key("stored")) or 0)


async def test_of_a_hundred_submissions_as_many_wait_as_may(bench: Bench) -> None:
    jobs = store(bench, queued=7)
    tried = (refused(jobs.submit(request(f"{i}?"), tenant=bench.tenant)) for i in range(100))
    found = await asyncio.gather(*tried)
    assert (found.count(None), found.count(QueueFull)) == (7, 93)
    assert len((await jobs.page(tenant=bench.tenant, limit=500)).jobs) == 7


async def test_a_job_that_runs_makes_room_and_another_tenant_has_its_own(bench: Bench) -> None:
    jobs = store(bench, queued=1)
    first = await jobs.submit(request(), tenant=bench.tenant, key="k")
    with pytest.raises(QueueFull) as caught:
        await jobs.submit(request(), tenant=bench.tenant)
    full = caught.value
    assert (full.limit, full.allowed, full.used, full.asked) == ("queued", 1, 1, 1)
    assert full.retry_after > 0
    # the same submission again asks for no room
    assert (await jobs.submit(request(), tenant=bench.tenant, key="k")).job == first.job
    await jobs.submit(request(), tenant=f"{bench.tenant}x")
    assert await bench.worker().take(bench.tenant) is not None
    await bench.claimed(first.job)
    await jobs.submit(request(), tenant=bench.tenant)


async def test_the_tenants_own_limit_comes_first(bench: Bench) -> None:
    record = bench.key("tenant")
    await bench.redis.hset(record, "queued", "2")
    jobs = store(bench, queued=1)
    for _ in range(2):
        await jobs.submit(request(), tenant=bench.tenant)
    with pytest.raises(QueueFull) as caught:
        await jobs.submit(request(), tenant=bench.tenant)
    assert caught.value.allowed == 2
    await bench.redis.hset(record, mapping={"queued": "100", "stored": "1"})
    await bench.redis.set(bench.key("stored"), MIB)
    with pytest.raises(QueueFull) as caught:
        await jobs.submit(request(), tenant=bench.tenant)
    assert (caught.value.limit, caught.value.allowed, caught.value.used) == ("stored", 1, 1)


async def test_a_batch_has_room_for_all_its_rows_or_is_refused(bench: Bench) -> None:
    batches = Batches(store(bench, queued=10), Settings())
    made = await batches.submit(lines(6), tenant=bench.tenant, key="a")
    with pytest.raises(QueueFull) as caught:
        await batches.submit(lines(5), tenant=bench.tenant, key="b")
    assert (caught.value.used, caught.value.asked) == (6, 5)
    assert len((await bench.store.page(tenant=bench.tenant, limit=500)).jobs) == 6
    # found again by its key, and the rest of the room is still there
    assert (await batches.submit(lines(6), tenant=bench.tenant, key="a")).id == made.id
    assert (await batches.submit(lines(4), tenant=bench.tenant, key="c")).total == 4


async def test_rejected_rows_take_room_too(bench: Bench) -> None:
    batches = Batches(store(bench, stored=1), Settings())
    bad = ["{}"] * 2_500
    await batches.submit(bad, tenant=bench.tenant)
    assert await stored(bench) > 0
    with pytest.raises(QueueFull) as caught:
        await batches.submit([*bad, "{"], tenant=bench.tenant)
    assert caught.value.limit == "stored"


async def test_what_is_stored_is_what_redis_holds_until_it_is_forgotten(bench: Bench) -> None:
    async def held() -> int:
        found = 0
        async for name in bench.redis.scan_iter(match=bench.key("*"), count=1_000):
            found += await bench.redis.memory_usage(name, samples=0) or 0
        return found

    batches = Batches(store(bench), Settings())
    await batches.submit([*lines(40), *["{}"] * 40], tenant=bench.tenant)
    # idempotency keys and lists are left out
    assert 0.6 < await stored(bench) / await held() < 1.4
    while unit := await bench.worker().take(bench.tenant):
        result = answer("It helps. " * 2_000)
        await bench.worker().succeed(await bench.claimed(unit.job), result)
    # results count, too
    assert await stored(bench) > 40 * 20_000
    assert 0.6 < await stored(bench) / await held() < 1.4
    bench.clock.forward(10 * 86_400)
    await bench.sweep()
    assert not await bench.redis.exists(bench.key("stored"))


async def test_the_events_of_a_waiting_job_take_what_they_hold(bench: Bench) -> None:
    job = await bench.submit()
    # and not the 4 kB that Redis reserves for the beginning of a stream
    held = await bench.redis.memory_usage(bench.key(f"job:{job}:events"), samples=0)
    assert held is not None
    assert held < 2_000


async def test_a_retried_job_is_weighed_again(bench: Bench) -> None:
    job = await bench.submit()
    before = await stored(bench)
    await bench.cancel(job)
    await bench.retry(job)
    await bench.cancel(job)
    # once, with a few events more
    assert before <= await stored(bench) < 2 * before
