"""Runners on a real Redis, without a queue: killed, drained, cancelled, late."""

from __future__ import annotations

import time
from collections import Counter
from decimal import Decimal
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from posology.errors import ProviderOverloaded
from posology.llm.retry import RetryPolicy
from posology.published.jobs import JobOutput
from posology.seams import Complete
from posology.testing.model import ScriptedModel
from posology.turns import long_work
from posology.types import (
    Call,
    Completion,
    Finish,
    JobState,
    Outcome,
    Query,
    Retrieval,
    Stage,
    Usage,
)
from tests.integration.jobs_store.helpers import (
    LEASE,
    PATIENCE,
    Bench,
    Clock,
    failed,
    request,
    succeeded,
)
from tests.integration.jobs_store.local import (
    Gate,
    Local,
    Shelf,
    Wires,
    carrying,
    killed,
    model,
    of,
    reply,
    runner,
)
from workers.engine.units import ANSWER, Unit

pytestmark = pytest.mark.anyio

DOWN = ProviderOverloaded("down", provider="openai", model="x")


class Wall(Clock):
    """The time as it is: for deadlines, which workers keep by their own clocks, too."""

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000


async def submit(bench: Bench, **fields: object) -> str:
    given: dict[str, Any] = {"strategy": "briefcontext", "partition_size": 2, "k": 6, **fields}
    return (await bench.store.submit(request(**given), tenant=bench.tenant)).job


async def after_a_loss(bench: Bench, complete: Complete) -> Local:
    """Another worker, which is given what the sweep found."""
    bench.clock.forward(LEASE)
    other = carrying(bench, complete, name="other")
    await other.carry(await bench.sweep_all())
    return other


def outcomes(out: JobOutput) -> Counter[tuple[Stage, Outcome]]:
    return Counter((attempt.stage, attempt.outcome) for attempt in out.spending.attempts)


@pytest.mark.parametrize("stage", [Stage.ANSWER, Stage.EXTRACT, Stage.REDUCE])
async def test_a_worker_that_is_killed_in_a_call_is_replaced(bench: Bench, stage: Stage) -> None:
    job = await submit(bench, strategy="direct" if stage is Stage.ANSWER else "briefcontext")
    gate = Gate(model(), holds=of(stage))
    local = carrying(bench, gate)
    count = 3 if stage is Stage.EXTRACT else 1
    await killed(local.until_nothing_is_sent, lambda: gate.until(count))
    assert not (await bench.get(job)).state.over
    await after_a_loss(bench, model())
    out = await bench.get(job)
    assert out.state is JobState.SUCCEEDED
    assert out.losses == count
    assert out.unknown_costs == count
    made = outcomes(out)
    # a task that is cancelled can still tell; that of a dead process would stand as lost
    assert made[stage, Outcome.CANCELLED] == count
    assert made[stage, Outcome.OK] == count
    if stage is Stage.REDUCE:
        assert made[Stage.EXTRACT, Outcome.OK] == 3, "what was stored is not paid for twice"


class Computes(Shelf):
    """A retriever that computes for long, until it may end."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0
        self.changed = anyio.Event()
        self.may_end = anyio.Event()

    async def retrieve(self, query: Query, *, k: int, **more: object) -> Retrieval:
        with long_work():
            self.begun += 1
            self.changed.set()
            await self.may_end.wait()
            return await super().retrieve(query, k=k, **more)

    async def until(self, count: int) -> None:
        with anyio.fail_after(90):
            while self.begun < count:
                self.changed = anyio.Event()
                await self.changed.wait()


async def test_a_tenants_long_work_keeps_one_place(bench: Bench) -> None:
    jobs = [await submit(bench, strategy="direct") for _ in range(3)]
    theirs = f"{bench.tenant}-other"
    other = await bench.store.submit(request(strategy="direct"), tenant=theirs)
    shelf = Computes()
    worker = runner(bench, model(), shelf=shelf)

    def unit(job: str, tenant: str = bench.tenant) -> Unit:
        return Unit(tenant=tenant, job=job, name=ANSWER)

    async with anyio.create_task_group() as group:
        group.start_soon(worker.run, unit(jobs[0]))
        await shelf.until(1)
        with anyio.fail_after(90):
            # they return at once, so their places are free
            assert await worker.run(unit(jobs[1])) == ()
            assert await worker.run(unit(jobs[2])) == ()
        assert len(worker.claimed) == 1
        group.start_soon(worker.run, unit(other.job, theirs))
        await shelf.until(2)
        shelf.may_end.set()
    assert (await bench.get(jobs[0])).state is JobState.SUCCEEDED
    assert (await bench.store.get(other.job, tenant=theirs)).state is JobState.SUCCEEDED
    for job in jobs[1:]:
        assert not (await bench.get(job)).state.over
    local = Local(bench=bench, runner=worker)
    for _ in jobs[1:]:
        # two that are sent together may meet again: one of them is parked once more
        bench.clock.forward(3.0)
        await local.until_nothing_is_sent()
    for job in jobs[1:]:
        out = await bench.get(job)
        assert (out.state, out.losses) == (JobState.SUCCEEDED, 0)


async def test_what_a_killed_answer_was_told_is_replayed(bench: Bench) -> None:
    job = await submit(bench, strategy="direct")
    told = anyio.Event()
    inner = model()

    class Told:
        """Dies when the reply is in the store, and not yet the answer."""

        async def __call__(self, call: Call) -> Completion:
            # a first reply of no use brings the call back here, its reply being stored by then
            if inner.calls:
                told.set()
                await anyio.sleep_forever()
            await inner(call)
            return Completion(
                text="no JSON", usage=Usage(input=9), finish=Finish.STOP, served_model="m"
            )

    local = carrying(bench, Told())
    await killed(local.until_nothing_is_sent, told.wait)
    second = model()
    await after_a_loss(bench, second)
    out = await bench.get(job)
    assert out.state is JobState.SUCCEEDED
    # only the repair was asked for: the reply that it repairs was replayed
    (repair,) = second.calls
    assert "cannot be used" in repair.messages[-1].content
    assert outcomes(out) == {
        (Stage.ANSWER, Outcome.UNUSABLE): 1,
        (Stage.ANSWER, Outcome.CANCELLED): 1,
        (Stage.ANSWER, Outcome.OK): 1,
    }


async def test_a_retry_does_not_repeat_what_was_read(bench: Bench) -> None:
    job = await submit(bench)
    broken = model(lambda call: DOWN if call.stage is Stage.REDUCE else reply(call))
    out = await carrying(bench, broken).finish(job)
    assert out.state is JobState.FAILED
    before = out.known_cost_usd
    await bench.retry(job)
    good = model()
    out = await carrying(bench, good).finish(job)
    assert out.state is JobState.SUCCEEDED
    assert [call.stage for call in good.calls] == [Stage.REDUCE]
    assert out.runs == 2
    assert out.known_cost_usd > before > Decimal(0)
    assert out.known_cost_usd == sum(
        (a.cost for a in out.spending.attempts if a.cost is not None), Decimal(0)
    )


async def test_a_cancelled_job_makes_no_more_calls(bench: Bench) -> None:
    """Three partitions; one was read, one is on its way, and one waits for a worker."""
    job = await submit(bench)
    inner = model()
    gate = Gate(inner, holds=lambda call: call.excerpts[0].passage.id == "p2")
    local = carrying(bench, gate)
    first = await bench.next()
    extracts = await local.runner.run(first)
    await local.carry([extracts[0]])
    async with anyio.create_task_group() as group:
        group.start_soon(local.carry, [extracts[1]])
        await gate.until(1)
        assert (await bench.cancel(job)).state is JobState.CANCELLING
        made = len(inner.calls)
        await local.carry([extracts[2]])
        await local.runner.heartbeat()
        gate.opened.set()
    assert len(inner.calls) == made + 1  # that which was on its way
    out = await bench.get(job)
    assert out.state is JobState.CANCELLED
    assert outcomes(out) == {(Stage.EXTRACT, Outcome.OK): 2}
    assert out.unknown_costs == 0
    assert out.cancellation is not None
    assert out.cancellation.calls_planned == 4
    assert out.cancellation.calls_made == 2
    assert out.cancellation.calls_saved == 2
    assert out.cancellation.cost_saved_usd == out.known_cost_usd
    assert await local.runner.run(extracts[2]) == ()
    assert len(inner.calls) == made + 1


async def test_a_cancellation_ends_the_wait_for_another_attempt(bench: Bench) -> None:
    job = await submit(bench, strategy="direct")
    error = ProviderOverloaded("down", provider="openai", model="x", retry_after=60.0)
    asked = anyio.Event()

    def answer(_: Call) -> ProviderOverloaded:
        asked.set()
        return error

    patient = Wires(model(answer), RetryPolicy(attempts=3, base=0.001, deadline=100))
    working = runner(bench, model(), wires=patient)
    started = anyio.current_time()
    async with anyio.create_task_group() as group:
        group.start_soon(Local(bench=bench, runner=working).until_nothing_is_sent)
        with anyio.fail_after(90):
            await asked.wait()
        await bench.cancel(job)
        await working.heartbeat()
    assert anyio.current_time() - started < 50
    out = await bench.get(job)
    assert out.state is JobState.CANCELLED
    assert outcomes(out) == {(Stage.ANSWER, Outcome.FAILED): 1}


async def test_time_is_kept_for_an_answer_from_what_was_read(redis_url: str, bench: Bench) -> None:
    bench.clock = Wall()
    job = await submit(bench, deadline_seconds=6.0)
    gate = Gate(model(), holds=lambda call: call.excerpts[0].passage.id == "p2")
    out = await carrying(bench, gate).finish(job)
    result = succeeded(out)
    assert result.coverage is not None
    assert (result.coverage.found, result.coverage.failed) == (2, 1)
    assert any("the deadline passed" in note for note in result.notes)
    # the call that was cut may have been billed
    assert outcomes(out)[Stage.EXTRACT, Outcome.CANCELLED] == out.unknown_costs == 1


async def test_a_job_ends_at_its_deadline(bench: Bench) -> None:
    bench.clock = Wall()
    job = await submit(bench, strategy="direct", deadline_seconds=3.0)
    gate = Gate(model(), holds=of(Stage.ANSWER))
    out = await carrying(bench, gate).finish(job)
    assert out.state is JobState.EXPIRED
    assert out.error is not None
    assert out.error.type == "DeadlineExceeded"
    assert outcomes(out) == {(Stage.ANSWER, Outcome.CANCELLED): 1}


async def test_a_job_that_expires_between_two_attempts_is_no_error_of_its_worker(
    bench: Bench,
) -> None:
    job = await submit(bench, strategy="direct")

    def answer(_: Call) -> ProviderOverloaded:
        bench.clock.forward(PATIENCE)
        return DOWN

    out = await carrying(bench, model(answer)).finish(job)
    assert out.state is JobState.EXPIRED
    assert outcomes(out) == {(Stage.ANSWER, Outcome.FAILED): 1}


async def test_a_drained_worker_hands_back_and_another_takes_over(bench: Bench) -> None:
    job = await submit(bench)
    gate = Gate(model(), holds=of(Stage.EXTRACT))
    working = runner(bench, gate)
    local = Local(bench=bench, runner=working)
    async with anyio.create_task_group() as group:
        group.start_soon(local.until_nothing_is_sent)
        await gate.until(3)
        await working.drain(0.05)
        # nothing is held when drain has returned, in the records either
        units = await bench.worker().sweep(bench.tenant, jobs_before=1, calls_before=1)
        assert sorted(unit.name for unit in units) == ["extract:0", "extract:1", "extract:2"]
    assert working.claimed == ()
    assert await working.run(units[0]) == ()
    other = carrying(bench, model(), name="other")
    await other.carry(units)
    out = await bench.get(job)
    assert out.state is JobState.SUCCEEDED
    assert out.losses == 0
    assert outcomes(out)[Stage.EXTRACT, Outcome.CANCELLED] == 3


async def test_a_drained_worker_finishes_what_takes_no_longer(bench: Bench) -> None:
    job = await submit(bench, strategy="direct")
    gate = Gate(model(), holds=of(Stage.ANSWER))
    working = runner(bench, gate)
    async with anyio.create_task_group() as group:
        group.start_soon(Local(bench=bench, runner=working).until_nothing_is_sent)
        await gate.until(1)
        group.start_soon(working.drain, 30)
        await anyio.sleep(0.02)
        gate.opened.set()
    assert (await bench.get(job)).state is JobState.SUCCEEDED


async def test_what_is_claimed_while_the_worker_ends_is_handed_back(bench: Bench) -> None:
    """Messages and the order to end come at the same moment, in every order that the loop makes."""
    for pause in range(12):
        job = await submit(bench, strategy="direct")
        unit = await bench.next()
        gate = Gate(model(), holds=of(Stage.ANSWER))
        working = runner(bench, gate)
        with anyio.fail_after(90):
            async with anyio.create_task_group() as group:
                group.start_soon(working.run, unit)
                for _ in range(pause):
                    await anyio.lowlevel.checkpoint()
                await working.drain(0)
                assert working.claimed == ()
        await bench.cancel(job)
        assert await bench.state(job) is JobState.CANCELLED


async def test_a_unit_whose_worker_was_too_slow_is_not_written_down_twice(bench: Bench) -> None:
    """The first worker goes on in good faith: its call counts as money, its result as nothing."""
    job = await submit(bench, strategy="direct")
    gate = Gate(model(), holds=of(Stage.ANSWER))
    slow = carrying(bench, gate)
    async with anyio.create_task_group() as group:
        group.start_soon(slow.until_nothing_is_sent)
        await gate.until(1)
        await after_a_loss(bench, model())
        assert (await bench.get(job)).state is JobState.SUCCEEDED
        gate.opened.set()
    out = await bench.get(job)
    assert out.state is JobState.SUCCEEDED
    assert outcomes(out) == {(Stage.ANSWER, Outcome.OK): 2}
    assert out.unknown_costs == 0


async def test_a_defect_fails_its_job_alone(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    def answer(call: Call) -> object:
        raise ZeroDivisionError("a defect")

    bad = await submit(bench, strategy="direct")
    broken = ScriptedModel(answer)  # type: ignore[arg-type]
    out = await carrying(bench, broken).finish(bad)
    assert "ZeroDivisionError" in failed(out).message
    assert "internal error" in caplog.text


async def test_messages_that_come_at_any_time_change_nothing(bench: Bench) -> None:
    job = await submit(bench)
    script = model()
    local = Local(bench=bench, runner=runner(bench, script), copies=3)
    out = await local.finish(job)
    assert out.state is JobState.SUCCEEDED
    calls = len(script.calls)
    for unit in local.carried:
        assert await local.runner.run(unit) == ()
    assert await local.runner.run(Unit(tenant=bench.tenant, job=job, name="extract:99")) == ()
    assert len(script.calls) == calls == 4
    assert (await bench.get(job)) == out
