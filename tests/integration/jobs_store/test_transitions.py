"""Every state of a job, and every step from one to the next, by what workers and users do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import product
from typing import cast

import pytest
from redis.exceptions import ResponseError

from orchestrator.jobs import scripts
from posology.errors import JobFinished, JobNotFailed, JobNotFound
from posology.store import keys
from posology.types import JobState
from posology.types.jobs import OVER, TRANSITIONS
from tests.integration.jobs_store.helpers import (
    ERROR,
    LOSSES,
    PARTED,
    PATIENCE,
    RETENTION,
    Bench,
    answer,
    parts,
    refused,
    unread,
)

pytestmark = pytest.mark.anyio

S = JobState
PAIRS = [(old, new) for old, new in product(JobState, JobState) if old is not new]


async def _cancelling(bench: Bench) -> str:
    job = (await bench.running()).unit.job
    await bench.cancel(job)
    return job


async def _succeeded(bench: Bench) -> str:
    held = await bench.running()
    await bench.worker().succeed(held, answer())
    return held.unit.job


async def _failed(bench: Bench) -> str:
    held = await bench.running()
    await bench.worker().fail(held, ERROR)
    return held.unit.job


async def _cancelled(bench: Bench) -> str:
    job = await bench.submit()
    await bench.cancel(job)
    return job


async def _expired(bench: Bench) -> str:
    job = await bench.submit()
    bench.clock.forward(PATIENCE)
    await bench.sweep()
    return job


async def _running(bench: Bench) -> str:
    return (await bench.running()).unit.job


Step = Callable[[Bench], Awaitable[str]]
#: how to bring a new job to a state
REACH: dict[JobState, Step] = {
    S.QUEUED: lambda bench: bench.submit(),
    S.RUNNING: _running,
    S.EXTRACTING: lambda bench: bench.extracting(),
    S.REDUCING: lambda bench: bench.reducing(),
    S.CANCELLING: _cancelling,
    S.SUCCEEDED: _succeeded,
    S.FAILED: _failed,
    S.CANCELLED: _cancelled,
    S.EXPIRED: _expired,
}

Move = Callable[[Bench, str], Awaitable[object]]


def _unit(job_state: JobState) -> str:
    """A unit of a job in a state, which a worker may claim."""
    return {S.EXTRACTING: "extract:1", S.REDUCING: "reduce"}.get(job_state, "answer")


async def _claim(bench: Bench, job: str) -> None:
    await bench.worker().take(bench.tenant)
    await bench.claimed(job)


async def _cancel(bench: Bench, job: str) -> None:
    await bench.cancel(job)


async def _retry(bench: Bench, job: str) -> None:
    await bench.retry(job)


async def _late(bench: Bench, job: str) -> None:
    # past lease and deadline: nobody holds the job any more
    bench.clock.forward(PATIENCE)
    await bench.sweep()
    await bench.sweep()


async def _take_over(bench: Bench, job: str) -> None:
    """Let the holder of ``answer`` be lost, as the state machine's own holders are not at hand."""
    await bench.lost()


async def _decide(bench: Bench, job: str) -> None:
    await _take_over(bench, job)
    held = await bench.claimed(job)
    await bench.worker().decide(held, PARTED, calls=3, partitions=parts(2))


def _holding(state: JobState, then: Callable[..., Awaitable[object]]) -> Move:
    async def move(bench: Bench, job: str) -> None:
        if state is S.RUNNING:
            await _take_over(bench, job)
        await then(bench, await bench.claimed(job, _unit(state)))

    return move


def _succeed(state: JobState) -> Move:
    return _holding(state, lambda bench, held: bench.worker().succeed(held, answer()))


def _fail(state: JobState) -> Move:
    return _holding(state, lambda bench, held: bench.worker().fail(held, ERROR))


async def _extract_all(bench: Bench, job: str) -> None:
    for index in range(2):
        held = await bench.claimed(job, f"extract:{index}")
        await bench.worker().extracted(held, unread(index))


async def _cancel_unheld(bench: Bench, job: str) -> None:
    await _take_over(bench, job)
    await _cancel(bench, job)


async def _cancel_held(bench: Bench, job: str) -> None:
    await bench.claimed(job, _unit(await bench.state(job)))
    await _cancel(bench, job)


WAYS: dict[tuple[JobState, JobState], Move] = {
    (S.QUEUED, S.RUNNING): _claim,
    (S.QUEUED, S.CANCELLED): _cancel,
    (S.QUEUED, S.EXPIRED): _late,
    (S.RUNNING, S.EXTRACTING): _decide,
    (S.RUNNING, S.SUCCEEDED): _succeed(S.RUNNING),
    (S.RUNNING, S.FAILED): _fail(S.RUNNING),
    (S.RUNNING, S.CANCELLING): _cancel,
    (S.RUNNING, S.CANCELLED): _cancel_unheld,
    (S.RUNNING, S.EXPIRED): _late,
    (S.EXTRACTING, S.REDUCING): _extract_all,
    (S.EXTRACTING, S.FAILED): _fail(S.EXTRACTING),
    (S.EXTRACTING, S.CANCELLING): _cancel_held,
    (S.EXTRACTING, S.CANCELLED): _cancel,
    (S.EXTRACTING, S.EXPIRED): _late,
    (S.REDUCING, S.SUCCEEDED): _succeed(S.REDUCING),
    (S.REDUCING, S.FAILED): _fail(S.REDUCING),
    (S.REDUCING, S.CANCELLING): _cancel_held,
    (S.REDUCING, S.CANCELLED): _cancel,
    (S.REDUCING, S.EXPIRED): _late,
    (S.CANCELLING, S.CANCELLED): _take_over,
    (S.FAILED, S.QUEUED): _retry,
    (S.CANCELLED, S.QUEUED): _retry,
    (S.EXPIRED, S.QUEUED): _retry,
}


def test_every_step_that_is_allowed_has_a_way() -> None:
    allowed = {(old, new) for old, following in TRANSITIONS.items() for new in following}
    assert allowed == set(WAYS)


@pytest.mark.parametrize(("old", "new"), WAYS)
async def test_a_step_is_made_and_told(bench: Bench, old: JobState, new: JobState) -> None:
    job = await REACH[old](bench)
    assert await bench.state(job) is old
    await WAYS[old, new](bench, job)
    assert await bench.state(job) is new
    stream = cast(
        "list[tuple[str, dict[str, str]]]",
        await bench.redis.xrange(bench.key(f"job:{job}:events")),
    )
    states = [entry["data"] for _, entry in stream if entry["type"] == "state"]
    assert states[-2:] == [f'{{"state":"{old}"}}', f'{{"state":"{new}"}}']
    for state in JobState:
        page = await bench.store.page(tenant=bench.tenant, state=state)
        assert [one.id for one in page.jobs] == ([job] if state is new else [])
    dead = await bench.redis.zrange(bench.key("dead"), 0, -1)
    assert dead == ([job] if new in (S.FAILED, S.EXPIRED) else [])


@pytest.mark.parametrize(("old", "new"), PAIRS)
async def test_the_scripts_let_only_allowed_steps_be_made(
    bench: Bench, old: JobState, new: JobState
) -> None:
    job = await REACH[old](bench)
    whole = scripts.source("cancel")
    step = whole[: whole.index("-- Cancels a job")] + "set_state(ARGV[2], ARGV[3])"
    run = bench.redis.register_script(step)
    made = {"keys": [keys.prefix(bench.tenant)], "args": [bench.clock(), job, new]}
    if new in TRANSITIONS[old]:
        await run(**made)  # type: ignore[arg-type]
        assert await bench.state(job) is new
    else:
        with pytest.raises(ResponseError, match=f"cannot go from {old} to {new}"):
            await run(**made)  # type: ignore[arg-type]
        assert await bench.state(job) is old


@pytest.mark.parametrize("state", JobState)
async def test_what_a_user_may_do(bench: Bench, state: JobState) -> None:
    job = await REACH[state](bench)
    may_cancel = state not in OVER or state is S.CANCELLED
    said = await refused(bench.cancel(job))
    assert said is (None if may_cancel else JobFinished)
    await bench.lost()
    now = await bench.state(job)
    assert now in OVER
    said = await refused(bench.retry(job))
    assert said is (JobNotFailed if now is S.SUCCEEDED else None)


@pytest.mark.parametrize("state", sorted(OVER))
async def test_a_message_for_a_job_that_is_over_is_let_go(bench: Bench, state: JobState) -> None:
    job = await REACH[state](bench)
    for name in ("answer", "extract:0", "reduce"):
        assert await bench.claim(job, name) is None
    assert await bench.state(job) is state


@pytest.mark.parametrize("state", sorted(OVER))
async def test_a_job_that_is_over_vanishes_with_all_its_keys(bench: Bench, state: JobState) -> None:
    job = await REACH[state](bench)
    # a lease that nobody extends has ended long before a record does
    bench.clock.forward(RETENTION - 1)
    await bench.sweep()
    assert await bench.state(job) is state
    bench.clock.forward(1)
    await bench.sweep()
    assert await bench.keys_of(job) == set()
    assert await bench.mentions_of(job) == set()
    assert await refused(bench.get(job)) is JobNotFound
    assert await refused(bench.cancel(job)) is JobNotFound
    assert await refused(bench.retry(job)) is JobNotFound


async def test_an_idempotency_key_ends_with_its_job(bench: Bench) -> None:
    first = await bench.submit(key="k")
    assert await bench.submit(key="k") == first
    await _cancel(bench, first)
    bench.clock.forward(RETENTION)
    await bench.sweep()
    assert await bench.submit(key="k") != first


async def test_more_losses_than_a_unit_bears_fail_the_job(bench: Bench) -> None:
    job = await bench.submit()
    for lost in range(LOSSES + 1):
        assert await bench.state(job) in (S.QUEUED, S.RUNNING)
        await bench.claimed(job, worker=f"w{lost}")
        await bench.lost()
    out = await bench.get(job)
    assert out.state is S.FAILED
    assert out.error is not None
    assert out.error.type == "WorkerLost"
    assert out.losses == LOSSES + 1
