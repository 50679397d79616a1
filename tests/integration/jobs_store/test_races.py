"""Many clients at once on one Redis, counted."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from posology.errors import IdempotencyConflict, JobCancelled, JobSuperseded, PosologyError
from posology.types import Extraction, JobState
from tests.integration.jobs_store.helpers import ERROR, Bench, answer, refused
from workers.engine.units import ClaimedUnit, Unit

pytestmark = pytest.mark.anyio
T = TypeVar("T")


async def together(*running: Coroutine[Any, Any, T]) -> list[T]:
    """All results; each has a connection of its own, so that Redis gets them as they come."""
    return list(await asyncio.gather(*running))


async def said(running: Coroutine[Any, Any, Any]) -> str:
    try:
        await running
    except PosologyError as error:
        return type(error).__name__
    return "done"


async def test_a_hundred_submissions_of_one_key_are_one_job(bench: Bench) -> None:
    found = await together(*(bench.submit(key="k") for _ in range(100)))
    assert len(set(found)) == 1
    page = await bench.store.page(tenant=bench.tenant)
    assert [job.id for job in page.jobs] == found[:1]
    assert await bench.worker().take(bench.tenant) is not None
    assert await bench.worker().take(bench.tenant) is None


async def test_of_two_questions_under_one_key_one_wins(bench: Bench) -> None:
    questions = ["Is it?", "Was it?"] * 25
    errors = await together(*(refused(bench.submit(key="k", question=q)) for q in questions))
    assert Counter(errors) == {None: 25, IdempotencyConflict: 25}
    assert len((await bench.store.page(tenant=bench.tenant)).jobs) == 1


async def test_each_waiting_job_is_taken_once(bench: Bench) -> None:
    jobs = await together(*(bench.submit() for _ in range(40)))
    taken = await together(*(bench.worker().take(bench.tenant) for _ in range(80)))
    assert sorted(unit.job for unit in taken if unit is not None) == sorted(jobs)


async def test_fifty_claims_of_one_unit_give_one_token(bench: Bench) -> None:
    job = await bench.submit()
    held = await together(*(bench.claim(job, worker=f"w{i}") for i in range(50)))
    assert [one.token for one in held if one is not None] == [1]
    assert (await bench.get(job)).runs == 1


async def test_the_reduce_is_asked_for_once(bench: Bench) -> None:
    """Every partition is delivered twice, and every result is told twice, all at once."""
    for _ in range(5):
        job, count = await bench.extracting(16), 16

        async def read(index: int, job: str = job) -> list[Unit]:
            held = await bench.claim(job, f"extract:{index}")
            if held is None:
                return []
            sent: list[Unit] = []
            for _ in range(2):
                try:
                    sent += await bench.worker().extracted(held, Extraction(partition=index))
                except JobSuperseded:
                    continue
            return sent

        sent = await together(*(read(i) for _ in range(2) for i in range(count)))
        assert [unit.name for units in sent for unit in units] == ["reduce"]
        out = await bench.get(job)
        assert out.state is JobState.REDUCING
        assert out.progress is not None
        assert out.progress.read == count


async def test_nothing_is_opened_once_a_cancellation_has_returned(bench: Bench) -> None:
    for _ in range(5):
        held = await bench.running()
        job = held.unit.job
        over = asyncio.Event()
        late: list[bool] = []

        async def work(
            held: ClaimedUnit = held, over: asyncio.Event = over, late: list[bool] = late
        ) -> int:
            opened = 0
            while True:
                begun_after = over.is_set()
                try:
                    await bench.open(held, uuid.uuid4().hex)
                except JobCancelled:
                    return opened
                opened += 1
                late.append(begun_after)

        async def cancel(job: str = job, over: asyncio.Event = over) -> int:
            await asyncio.sleep(0.01)
            await bench.cancel(job)
            over.set()
            return 0

        opened = sum(await together(*(work() for _ in range(10)), cancel()))
        assert opened > 0
        assert not any(late)
        assert await bench.redis.scard(
            f"posology:{{{bench.tenant}}}:job:{job}:open"
        ) == opened  # fmt: skip
        # what was on its way is in the account when the job ends
        await bench.lost()
        out = await bench.get(job)
        assert out.state is JobState.CANCELLED
        assert len(out.spending.attempts) == out.unknown_costs == opened


async def test_a_job_is_concluded_once(bench: Bench) -> None:
    held = await bench.running()
    work = bench.worker()
    endings = [work.succeed(held, answer(f"{i}")) for i in range(10)]
    endings += [work.fail(held, ERROR) for _ in range(10)]
    assert Counter(await together(*(said(one) for one in endings))) == {
        "done": 1,
        "JobSuperseded": 19,
    }
    out = await bench.get(held.unit.job)
    assert (out.result is None) == (out.state is JobState.FAILED)
    assert (out.error is None) == (out.state is JobState.SUCCEEDED)


async def test_cancelling_and_concluding_at_once_leaves_one_end(bench: Bench) -> None:
    for _ in range(10):
        held = await bench.running()
        cancels = [bench.cancel(held.unit.job) for _ in range(3)]
        words = await together(
            *(
                said(one)
                for one in (*cancels[:1], bench.worker().succeed(held, answer()), *cancels[1:])
            )
        )
        state = await bench.state(held.unit.job)
        if state is JobState.SUCCEEDED:
            assert words[1] == "done"
            assert {words[0], words[2], words[3]} == {"JobFinished"}
        else:
            assert state is JobState.CANCELLED
            assert words[1] == "JobCancelled"


async def test_sweeps_at_once_find_a_lost_unit_once(bench: Bench) -> None:
    held = await bench.running()
    found = await together(*(bench.lost() for _ in range(20)))
    assert [unit for units in found for unit in units] == [held.unit]
    assert (await bench.get(held.unit.job)).losses == 1


async def test_retries_at_once_are_one_try(bench: Bench) -> None:
    held = await bench.running()
    await bench.worker().fail(held, ERROR)
    retries = [bench.retry(held.unit.job) for _ in range(20)]
    words = Counter(await together(*(said(one) for one in retries)))
    assert words == {"done": 1, "JobNotFailed": 19}
    taken = await together(*(bench.worker().take(bench.tenant) for _ in range(5)))
    assert sum(unit is not None for unit in taken) == 1
