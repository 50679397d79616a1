"""Tenants are looked after while they have records, and asked for jobs while they have some that wait."""

from __future__ import annotations

import time

import anyio
import pytest

from orchestrator.jobs import metrics, tenants
from orchestrator.jobs.batches import Batches
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.store import keys
from posology.types import JobState
from tests.integration.jobs_store.helpers import ERROR, RETENTION, Bench, Clock

pytestmark = pytest.mark.anyio


class Ahead(Clock):
    """The time as it is when tenants that submit now may be taken off the list."""

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + tenants.LISTED + 60_000


async def ahead(bench: Bench) -> None:
    await tenants.tidy(JobStore(bench.redis, bench.url, clock=Ahead()))


async def waits(bench: Bench) -> bool:
    return bench.tenant in await tenants.waiting(bench.store)


async def is_listed(bench: Bench) -> bool:
    return bench.tenant in await tenants.listed(bench.store)


async def test_a_tenant_is_asked_while_it_has_waiting_jobs(bench: Bench) -> None:
    job = await bench.submit()
    assert await waits(bench)
    assert await bench.worker().take(bench.tenant) is not None
    assert await bench.worker().take(bench.tenant) is None
    assert not await waits(bench)
    held = await bench.claimed(job)
    await bench.worker().fail(held, ERROR)
    await bench.retry(job)
    assert await waits(bench)


async def test_no_job_is_overlooked_that_comes_when_the_list_is_found_empty(bench: Bench) -> None:
    submitted: list[str] = []
    taken: list[str] = []

    async def submit() -> None:
        submitted.extend([await bench.submit() for _ in range(20)])

    async def take() -> None:
        while len(taken) < 200:
            if await waits(bench):
                unit = await bench.worker().take(bench.tenant)
                taken.extend([] if unit is None else [unit.job])

    with anyio.fail_after(90):
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(submit)
                group.start_soon(take)
    assert sorted(taken) == sorted(submitted)


async def test_a_job_that_nobody_was_told_of_is_found(bench: Bench) -> None:
    """Its submitter ended between the script and what follows it."""
    await bench.submit()
    await bench.redis.srem(keys.WAITING, bench.tenant)
    await tenants.tidy(bench.store)
    assert await waits(bench)


async def test_a_tenant_without_records_is_no_longer_looked_after(bench: Bench) -> None:
    held = await bench.calling("a1")
    await bench.close(held, "a1")
    await bench.worker().fail(held, ERROR)
    await ahead(bench)
    assert await is_listed(bench)
    before = (await metrics.read(bench.store)).counters
    bench.clock.forward(RETENTION)
    await bench.sweep()
    assert await bench.keys_of(held.unit.job) == set()
    # a submission may be under way that was listed and has not written yet
    await tenants.tidy(bench.store)
    assert await is_listed(bench)
    await ahead(bench)
    assert not await is_listed(bench)
    after = await metrics.read(bench.store)
    name = "attempts|answer|openai:gpt-4o-mini|ok"
    assert after.counters[name] == before[name] > 0
    await bench.submit()
    assert await is_listed(bench)
    again = await metrics.read(bench.store)
    assert again.counters[name] == before[name]
    assert again.states[JobState.QUEUED] >= 1


async def test_a_tenant_with_a_batch_of_rejected_rows_is_looked_after(bench: Bench) -> None:
    await Batches(bench.store, Settings()).submit(["{"], tenant=bench.tenant)
    await ahead(bench)
    assert await is_listed(bench)
