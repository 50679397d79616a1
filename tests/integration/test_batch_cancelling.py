"""Batches are listed and cancelled, on a real Redis."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from orchestrator.jobs.batches import Batches
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.errors import BatchNotFound, InvalidQuery
from posology.types import BatchState, JobState
from tests.integration.conftest import Finish
from workers.engine.claims import WorkStore
from workers.engine.units import Unit

pytestmark = pytest.mark.anyio
SETTINGS = Settings()


@pytest.fixture
def batches(store: JobStore) -> Batches:
    return Batches(store, SETTINGS)


def lines(count: int) -> list[str]:
    return [json.dumps({"id": i, "question": f"Is it {i}?"}) for i in range(count)]


async def running(store: JobStore, tenant: str) -> str:
    """Have a worker claim the job that has waited longest, and return its id."""
    work = WorkStore(store, worker="w")
    unit = await work.take(tenant)
    assert unit is not None
    assert await work.claim(Unit(tenant=tenant, job=unit.job, name="answer"), delivery="d")
    return unit.job


async def test_what_has_ended_stays_and_the_rest_is_cancelled(
    batches: Batches, store: JobStore, tenant: str, finish: Finish
) -> None:
    out = await batches.submit([*lines(5), "{"], tenant=tenant)
    assert (out.state, out.cancelled, out.open) == (BatchState.RUNNING, None, 5)
    done = await finish(store, tenant)
    failed = await finish(store, tenant, state="failed")
    claimed = await running(store, tenant)
    cancelled = await batches.cancel(out.id, tenant=tenant)
    assert cancelled.states == {
        JobState.SUCCEEDED: 1,
        JobState.FAILED: 1,
        JobState.CANCELLING: 1,
        JobState.CANCELLED: 2,
    }
    assert (cancelled.state, cancelled.open, cancelled.over) == (BatchState.CANCELLED, 0, False)
    assert cancelled.cancelled is not None
    rows = await batches.rows(out.id, tenant=tenant)
    kinds = {row.job: row.error.type if row.error else None for row in rows}
    assert kinds[done] is None
    assert kinds[failed] == "ProviderUnreachable"
    # what a worker holds settles, and ends then
    assert kinds[claimed] is None
    assert sorted(map(str, kinds.values())).count("JobCancelled") == 2
    again = await batches.cancel(out.id, tenant=tenant)
    assert again == cancelled
    assert await finish(store, tenant) is None, "no worker gets a job of it"


async def test_an_ended_batch_stays_as_it_is(
    batches: Batches, store: JobStore, tenant: str, finish: Finish
) -> None:
    out = await batches.submit([*lines(1), "{"], tenant=tenant)
    await finish(store, tenant)
    ended = await batches.cancel(out.id, tenant=tenant)
    assert (ended.state, ended.cancelled, ended.over) == (BatchState.ENDED, None, True)
    assert ended.states == {JobState.SUCCEEDED: 1}
    for nobody in ("batch_1", "batch_" + "0" * 28):
        with pytest.raises(BatchNotFound):
            await batches.cancel(nobody, tenant=tenant)
    with pytest.raises(BatchNotFound):
        await batches.cancel(out.id, tenant=f"{tenant}x")


async def test_it_stops_between_pieces_and_continues(
    batches: Batches, store: JobStore, tenant: str
) -> None:
    out = await batches.submit(lines(1_200), tenant=tenant)
    left = []
    for _ in range(4):
        now = await batches.cancel(out.id, tenant=tenant, seconds=0)
        left.append(now.open)
    assert left == [700, 200, 0, 0]
    assert now.over
    assert now.states == {JobState.CANCELLED: 1_200}


async def test_rows_that_come_after_the_cancellation_are_not_submitted(
    batches: Batches, store: JobStore, redis_url: str, tenant: str
) -> None:
    class Slow(JobStore):
        """Has another process cancel the batch after some rows."""

        left = 40

        async def submit(self, *args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                await batches.cancel(kwargs["batch"], tenant=tenant)
            return await super().submit(*args, **kwargs)

    out = await Batches(Slow(store.redis, redis_url), SETTINGS).submit(
        lines(200), tenant=tenant, key="k"
    )
    made = sum(out.states.values())
    assert 0 < made < 200
    assert out.states == {JobState.CANCELLED: made}
    assert (out.state, out.over, out.total) == (BatchState.CANCELLED, True, 200)
    rows = await batches.rows(out.id, tenant=tenant, limit=500)
    assert len(rows) == 200
    kinds = [row.error.type if row.error else None for row in rows]
    assert kinds.count("JobCancelled") == made
    assert kinds.count("BatchCancelled") == 200 - made
    again = await batches.submit(lines(200), tenant=tenant, key="k")
    assert again == out, "a second submission does not revive it"


async def test_cancellations_and_workers_at_once_leave_every_job_whole(
    batches: Batches, store: JobStore, tenant: str, finish: Finish
) -> None:
    out = await batches.submit(lines(60), tenant=tenant)
    done: list[str] = []

    async def work() -> None:
        while (job := await finish(store, tenant)) is not None:
            done.append(job)

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        for _ in range(3):
            group.start_soon(lambda: batches.cancel(out.id, tenant=tenant))
    ended = await batches.get(out.id, tenant=tenant)
    assert ended.over
    assert set(ended.states) <= {JobState.SUCCEEDED, JobState.CANCELLED}
    rows = await batches.rows(out.id, tenant=tenant)
    for row in rows:
        assert (row.result is None) == (row.state is JobState.CANCELLED)


async def test_pages_are_newest_first_and_a_state_is_looked_for(
    batches: Batches, store: JobStore, tenant: str, finish: Finish
) -> None:
    made = []
    for i in range(5):
        made.append((await batches.submit(lines(1), tenant=tenant, key=f"k{i}")).id)
        # the list is ordered by milliseconds
        await anyio.sleep(0.003)
    await batches.submit(lines(1), tenant=f"{tenant}x")
    page = await batches.page(tenant=tenant, limit=2)
    found = list(page.batches)
    while page.next:
        page = await batches.page(tenant=tenant, limit=2, cursor=page.next)
        found += page.batches
    assert [one.id for one in found] == made[::-1]
    await batches.cancel(made[1], tenant=tenant)
    await finish(store, tenant)

    async def ids(state: BatchState) -> list[str]:
        found, cursor = [], None
        while True:
            page = await batches.page(tenant=tenant, state=state, limit=1, cursor=cursor)
            found += [one.id for one in page.batches]
            cursor = page.next
            if cursor is None:
                return found

    assert await ids(BatchState.CANCELLED) == [made[1]]
    assert await ids(BatchState.ENDED) == [made[0]]
    assert await ids(BatchState.RUNNING) == [made[4], made[3], made[2]]
    for cursor in ("x", "0", f"{0:013d}-{made[0]}x", "[a"):
        with pytest.raises(InvalidQuery) as bad:
            await batches.page(tenant=tenant, cursor=cursor)
        assert bad.value.field == "cursor"
