"""Jobs in the batch lane: their calls go into providers' batches, on a real Redis and without a queue."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread
import pytest
from redis.asyncio import Redis

from orchestrator.jobs import tenants
from orchestrator.jobs.batches import Batches
from orchestrator.lane.collector import LaneOptions
from orchestrator.lane.records import BATCHES
from orchestrator.settings import Settings
from posology.budget.books.audit import Auditor
from posology.budget.ledger import entries
from posology.budget.ledger.base import nano
from posology.budget.ledger.redis import RedisLedger
from posology.errors import (
    ContextTooLong,
    HeadroomReserved,
    QuotaExhausted,
    RateLimited,
    UnpricedModel,
)
from posology.published.jobs import JobOutput
from posology.seams import Prices
from posology.seams.batches import BatchFate, BatchResult
from posology.store import keys
from posology.testing.model import ScriptedModel
from posology.testing.prices import FlatPrices
from posology.types import Call, JobState, Outcome, Repair, Reservation, Stage, Usage
from prompts.answer import AnswerReply, Quote
from tests.integration.jobs_store.collector_process import FolderBatches
from tests.integration.jobs_store.helpers import LEASE, MODEL, Bench, opening, request
from tests.integration.jobs_store.local import Local, Wires, model, reply, runner
from tests.support.provider_batches import ScriptedBatches, unconfirmed
from tests.support.replies import in_form
from workers.engine.lane.collector import collect
from workers.engine.lane.records import LaneStore
from workers.engine.units import Unit

if TYPE_CHECKING:
    from posology.testing.model import ScriptedReply

pytestmark = pytest.mark.anyio

#: a call reserves 1,000 tokens in and 500 out, at half the price
PRICES = FlatPrices(token=Decimal("0.001"))
RESERVED, CHARGED = Decimal("0.75"), Decimal("0.055")
OPTIONS = LaneOptions(wait=60.0, rows=100, poll=30.0, lease=100.0, grace=50.0)
DAY = 86_400.0
ZERO = Decimal(0)


class LaneWires(Wires):
    """Connects a process to a model and to its batch endpoint."""

    def __init__(
        self, live: ScriptedModel, endpoint: ScriptedBatches, *, wait_timeout: float = 10.0
    ) -> None:
        super().__init__(live, prices=PRICES, bound=_bound, wait_timeout=wait_timeout)
        self.bound = _bound
        self._endpoint = endpoint

    def batches(self, _: str) -> ScriptedBatches:
        return self._endpoint


def _bound(call: Call) -> int:
    return 1_000


@dataclass(kw_only=True, slots=True)
class LaneBench:
    """A bench with workers in the lane, and a provider."""

    bench: Bench
    endpoint: ScriptedBatches
    live: ScriptedModel
    #: seconds that a live call waits for headroom before its unit is parked
    wait_timeout: float = 10.0

    @property
    def model(self) -> ScriptedModel:
        return self.endpoint.model

    async def submit(self, tier: str = "batch", **fields: Any) -> str:
        asked = request(**{"strategy": "direct", "deadline_seconds": DAY, "tier": tier, **fields})
        return (await self.bench.store.submit(asked, tenant=self.bench.tenant)).job

    async def run(self) -> None:
        """Carry every unit that may run."""
        await self._local().until_nothing_is_sent()

    async def sweep(self) -> None:
        """Carry every unit whose lease has ended."""
        await self._local().carry(await self.bench.sweep_all())

    def _local(self) -> Local:
        wires = LaneWires(self.live, self.endpoint, wait_timeout=self.wait_timeout)
        return Local(bench=self.bench, runner=runner(self.bench, self.live, wires=wires))

    async def collect(self, seconds: float = 0.0, **changed: Any) -> None:
        self.bench.clock.forward(seconds)
        work = self.bench.worker("collector")
        options = replace(OPTIONS, **changed)
        await collect(work, lambda _: self.endpoint, cast("Prices", PRICES), options)

    async def wave(self, **end: Any) -> None:
        """Send what is wanted, have it answered, and settle it."""
        await self.run()
        await self.collect(OPTIONS.wait)
        await self.endpoint.end(**end)
        await self.collect(OPTIONS.poll)
        await self.run()

    async def get(self, job: str) -> JobOutput:
        return await self.bench.store.get(job, tenant=self.bench.tenant)

    async def limit(self, **limits: Decimal) -> None:
        given = {scope: nano(amount) for scope, amount in limits.items()}
        name = f"{keys.prefix(self.bench.tenant)}tenant"
        await self.bench.redis.hset(name, mapping=cast("dict[Any, Any]", given))

    async def money(self, job: str | None = None) -> dict[str, tuple[Decimal, Decimal]]:
        """Spent and reserved of each scope."""
        ledger = RedisLedger(
            self.bench.redis, self.bench.url, tenant=self.bench.tenant, clock=self.bench.clock
        )
        return {b.scope: (b.spent, b.reserved) for b in await ledger.balances(job)}


def lane_bench(bench: Bench, answer: Callable[[Call], ScriptedReply] = reply) -> LaneBench:
    return LaneBench(bench=bench, endpoint=ScriptedBatches(model(answer)), live=model())


@pytest.fixture
async def lane(bench: Bench) -> AsyncIterator[LaneBench]:
    found = lane_bench(bench)
    yield found
    # no reservation outlives its batch
    spent, reserved = (await found.money())["total"]
    made = found.endpoint.made
    if made and all(one.ended for one in made.values()):
        assert reserved == 0, spent


class Dropping(Redis):
    """Another worker finds no call of a tenant, and drops it, after it was enlisted for the first time."""

    dropped = False

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        found = await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]  # redis-py's own
        if args[:2] == ("SADD", keys.LANE) and not self.dropped:
            self.dropped = True
            await self.srem(keys.LANE, args[2])
        return found


def outcomes(out: JobOutput) -> list[tuple[Stage, Outcome, str | None]]:
    return [(one.stage, one.outcome, one.error) for one in out.spending.attempts]


async def test_a_question_is_answered_by_one_batch(lane: LaneBench) -> None:
    jobs = [await lane.submit() for _ in range(3)]
    await lane.wave()
    assert len(lane.endpoint.made) == 1
    for job in jobs:
        out = await lane.get(job)
        assert out.state is JobState.SUCCEEDED
        assert out.charged_usd == CHARGED
        assert outcomes(out) == [(Stage.ANSWER, Outcome.OK, None)]
    assert not lane.live.calls
    assert lane.endpoint.discarded == ["batch_0"]


async def test_a_tenant_that_is_dropped_while_its_call_comes_is_enlisted_again(
    redis_url: str, tenant: str
) -> None:
    redis = cast("Dropping", Dropping.from_url(redis_url, decode_responses=True))
    lane = lane_bench(Bench(redis=redis, url=redis_url, tenant=tenant))
    job = await lane.submit()
    await lane.wave()
    assert redis.dropped
    assert (await lane.get(job)).state is JobState.SUCCEEDED
    await redis.aclose()


async def test_a_call_of_which_no_worker_was_told_is_found(lane: LaneBench) -> None:
    """The worker that parked it ended before it enlisted the tenant again."""
    job = await lane.submit()
    await lane.run()
    await lane.bench.redis.srem(keys.LANE, lane.bench.tenant)
    await lane.collect(OPTIONS.wait)
    assert not lane.endpoint.made
    await tenants.tidy(lane.bench.store)
    await lane.wave()
    assert (await lane.get(job)).state is JobState.SUCCEEDED


async def test_the_answer_is_that_of_the_standard_lane(lane: LaneBench) -> None:
    jobs = [await lane.submit(tier, strategy="briefcontext", partition_size=2, k=6)
            for tier in ("batch", "standard")]  # fmt: skip
    await lane.wave()
    await lane.wave()
    ours, theirs = [(await lane.get(job)).result for job in jobs]
    assert ours is not None
    assert theirs is not None
    times = ("seconds", "retrieval_seconds", "spending")
    assert ours.model_dump(exclude=set(times)) == theirs.model_dump(exclude=set(times))
    assert [len(made.lines) for made in lane.endpoint.made.values()] == [3, 1]


async def test_a_ladder_takes_one_batch_a_step(bench: Bench) -> None:
    def answer(call: Call) -> ScriptedReply:
        if len(call.excerpts) < 4:
            refused = AnswerReply(answerable=False, answer="", choice=None, quotes=[])
            return in_form(call, refused)
        return reply(call)

    lane = lane_bench(bench, answer)
    job = await lane.submit(strategy=None, policy="doubling", k=6)
    await lane.wave()
    assert (await lane.get(job)).state is JobState.RUNNING
    await lane.wave()
    out = await lane.get(job)
    assert out.state is JobState.SUCCEEDED
    assert [len(made.lines) for made in lane.endpoint.made.values()] == [1, 1]


async def test_sentences_that_are_not_supported_are_repaired_in_another_batch(bench: Bench) -> None:
    def answer(call: Call) -> ScriptedReply:
        right = call.stage is Stage.REPAIR
        said = "Drug 0 lowered the risk of stroke" + ("." if right else " by 20%.")
        quotes = [Quote(passage="P1", quote="Drug 0 lowered the risk of stroke.")]
        stated = AnswerReply(answerable=True, answer=said, choice=None, quotes=quotes)
        return in_form(call, stated)

    lane = lane_bench(bench, answer)
    job = await lane.submit(support="repair", k=6)
    await lane.wave()
    assert (await lane.get(job)).state is JobState.RUNNING
    await lane.wave()
    out = await lane.get(job)
    assert outcomes(out) == [(Stage.ANSWER, Outcome.OK, None), (Stage.REPAIR, Outcome.OK, None)]
    assert out.result is not None
    assert out.result.support is not None
    assert (out.result.support.repair, out.result.support.unsupported) == (Repair.BETTER, 0)


async def test_a_model_judges_in_another_batch(bench: Bench) -> None:
    def answer(call: Call) -> ScriptedReply:
        if call.stage is Stage.JUDGE:
            return '{"verdicts":["contradicted"]}'
        quotes = [Quote(passage="P1", quote="Drug 0 lowered the risk of stroke.")]
        said = "Strokes were fewer with drug 0."
        return in_form(call, AnswerReply(answerable=True, answer=said, choice=None, quotes=quotes))

    lane = lane_bench(bench, answer)
    job = await lane.submit(support="model", k=6)
    await lane.wave()
    assert (await lane.get(job)).state is JobState.RUNNING
    await lane.wave()
    out = await lane.get(job)
    assert outcomes(out) == [(Stage.ANSWER, Outcome.OK, None), (Stage.JUDGE, Outcome.OK, None)]
    assert out.result is not None
    assert out.result.support is not None
    assert out.result.support.unsupported == 1


async def test_calls_wait_for_others_unless_they_fill_a_batch(lane: LaneBench) -> None:
    await lane.submit()
    await lane.run()
    await lane.collect()
    assert not lane.endpoint.made
    await lane.submit()
    await lane.run()
    await lane.collect(rows=2)
    assert [len(made.lines) for made in lane.endpoint.made.values()] == [2]
    await lane.endpoint.end()
    await lane.collect(OPTIONS.poll)


async def test_reservations_live_as_long_as_the_batch(lane: LaneBench) -> None:
    job = await lane.submit()
    await lane.run()
    await lane.collect(OPTIONS.wait)
    assert (await lane.money(job))["job"] == (ZERO, RESERVED)
    waiting = (await lane.get(job)).waiting
    assert waiting is not None
    assert (waiting.wanted, waiting.sent) == (0, 1)
    assert waiting.since is not None
    assert waiting.due == waiting.since + timedelta(days=1)
    for _ in range(20):
        lane.bench.clock.forward(3_600)
        assert await lane.bench.sweep_all() == []
        await lane.collect()
    assert (await lane.money(job))["job"] == (ZERO, RESERVED)
    assert (await lane.get(job)).state is JobState.RUNNING
    await lane.endpoint.end()
    await lane.collect(OPTIONS.poll)
    await lane.run()
    assert (await lane.get(job)).charged_usd == CHARGED


async def test_rows_come_in_any_order_and_twice(lane: LaneBench) -> None:
    jobs = [await lane.submit() for _ in range(5)]

    def reorder(results: list[BatchResult]) -> list[BatchResult]:
        return [*reversed(results), *results]

    await lane.wave(reorder=reorder)
    assert [(await lane.get(job)).charged_usd for job in jobs] == [CHARGED] * 5


async def test_a_worker_that_dies_while_it_settles_is_replaced(lane: LaneBench) -> None:
    jobs = [await lane.submit() for _ in range(5)]
    await lane.run()
    await lane.collect(OPTIONS.wait)
    await lane.endpoint.end()
    lane.bench.clock.forward(OPTIONS.poll)
    async with anyio.create_task_group() as group:
        group.start_soon(lane.collect)
        for _ in range(90_000):
            await anyio.lowlevel.checkpoint()
            if (await lane.money())["total"][0]:
                break
        group.cancel_scope.cancel()
    assert CHARGED <= (await lane.money())["total"][0] <= 5 * CHARGED
    await lane.collect(OPTIONS.lease)
    await lane.run()
    assert [(await lane.get(job)).charged_usd for job in jobs] == [CHARGED] * 5
    assert (await lane.money())["total"] == (5 * CHARGED, ZERO)


@pytest.mark.parametrize("fate", [BatchFate.EXPIRED, BatchFate.CANCELLED])
async def test_rows_that_were_not_processed_are_free_and_sent_again(
    lane: LaneBench, fate: BatchFate
) -> None:
    jobs = [await lane.submit() for _ in range(4)]
    done: list[str] = []

    def fates(attempt: str) -> BatchFate:
        done.append(attempt)
        return BatchFate.SUCCEEDED if len(done) % 2 else fate

    await lane.wave(fates=fates)
    states = [(await lane.get(job)).state for job in jobs]
    assert sorted(states) == [JobState.RUNNING] * 2 + [JobState.SUCCEEDED] * 2
    await lane.wave()
    outs = [await lane.get(job) for job in jobs]
    assert {out.charged_usd for out in outs} == {CHARGED}
    assert sorted(len(out.spending.attempts) for out in outs) == [1, 1, 2, 2]


async def test_a_call_fails_after_some_batches(lane: LaneBench) -> None:
    job = await lane.submit()
    for _ in range(BATCHES):
        await lane.wave(fates=lambda _: BatchFate.EXPIRED)
    out = await lane.get(job)
    assert out.state is JobState.FAILED
    assert out.error is not None
    assert out.error.type == "NotProcessed"
    assert out.charged_usd == 0


async def test_a_failed_row_goes_to_the_standard_lane_if_the_job_says_so(lane: LaneBench) -> None:
    job = await lane.submit("batch-then-standard")
    await lane.wave(fates=lambda _: BatchFate.EXPIRED)
    out = await lane.get(job)
    assert out.state is JobState.SUCCEEDED
    assert len(lane.live.calls) == 1
    assert out.charged_usd == 2 * CHARGED


async def test_an_error_of_a_row_is_that_of_its_call(bench: Bench) -> None:
    full = ContextTooLong("too long", provider="openai", model="x", usage=Usage())
    lane = lane_bench(bench, lambda _: full)
    job = await lane.submit()
    await lane.wave()
    out = await lane.get(job)
    assert out.state is JobState.FAILED
    assert out.error is not None
    assert out.error.type == "ContextTooLong"
    assert out.charged_usd == 0
    assert len(lane.endpoint.made) == 1


@pytest.mark.parametrize("tier", ["batch", "batch-then-standard"])
async def test_a_reply_without_structure_is_repaired(bench: Bench, tier: str) -> None:
    def answer(call: Call) -> ScriptedReply:
        return "no JSON" if len(call.messages) < 3 else reply(call)

    lane = lane_bench(bench, answer)
    job = await lane.submit(tier)
    await lane.wave()
    if tier == "batch":
        await lane.wave()
    out = await lane.get(job)
    assert out.state is JobState.SUCCEEDED
    assert [one[1:] for one in outcomes(out)] == [
        (Outcome.UNUSABLE, "SchemaViolation"), (Outcome.OK, None)
    ]  # fmt: skip
    assert len(lane.live.calls) == (tier != "batch")
    assert out.charged_usd == (2 * CHARGED if tier == "batch" else 3 * CHARGED)


async def test_unreadable_rows_are_charged_at_their_bounds(lane: LaneBench) -> None:
    job = await lane.submit()
    await lane.wave(fates=lambda _: BatchFate.UNREADABLE)
    out = await lane.get(job)
    assert out.unknown_costs == 1
    assert out.charged_usd == RESERVED
    await lane.wave()
    assert (await lane.get(job)).charged_usd == RESERVED + CHARGED


async def test_results_that_are_gone_are_charged_at_their_bounds(lane: LaneBench) -> None:
    job = await lane.submit()
    await lane.run()
    await lane.collect(OPTIONS.wait)
    await lane.endpoint.end()
    lane.endpoint.made["batch_0"].gone = True
    await lane.collect(OPTIONS.poll)
    assert await lane.money(job) == {
        "day": (RESERVED, ZERO), "month": (RESERVED, ZERO), "total": (RESERVED, ZERO), "job": (RESERVED, ZERO)
    }  # fmt: skip
    await lane.wave()
    assert (await lane.get(job)).state is JobState.SUCCEEDED


async def test_a_batch_without_an_end_is_given_up(lane: LaneBench) -> None:
    job = await lane.submit(deadline_seconds=DAY)
    await lane.run()
    await lane.collect(OPTIONS.wait)
    await lane.collect(OPTIONS.patience + 1)
    assert (await lane.money(job))["job"] == (RESERVED, ZERO)


async def test_a_batch_that_was_created_and_not_noted_is_found(lane: LaneBench) -> None:
    job = await lane.submit()
    await lane.run()
    lane.endpoint.after = unconfirmed()
    await lane.collect(OPTIONS.wait)
    assert len(lane.endpoint.made) == 1
    await lane.collect(1.0)
    await lane.endpoint.end()
    await lane.collect(OPTIONS.lease)
    await lane.collect(OPTIONS.poll)
    await lane.run()
    assert (await lane.get(job)).state is JobState.SUCCEEDED
    assert len(lane.endpoint.made) == 1


async def test_a_batch_is_looked_for_by_the_worker_s_time_of_day(lane: LaneBench) -> None:
    # the clock of Redis is ahead: nothing the provider has would be new enough
    lane.bench.clock.forward(7 * DAY)
    await lane.submit()
    await lane.run()
    lane.endpoint.before = unconfirmed()
    await lane.collect(OPTIONS.wait)
    before = datetime.now(UTC)
    await lane.collect(OPTIONS.lease)
    assert lane.endpoint.since is not None
    assert timedelta(0) < before - lane.endpoint.since < timedelta(hours=1)


async def test_a_batch_is_found_after_the_clock_was_put_back(lane: LaneBench) -> None:
    lane.bench.clock.forward(7 * DAY)
    await lane.submit()
    await lane.run()
    lane.endpoint.before = unconfirmed()
    await lane.collect(OPTIONS.wait)
    made = datetime.now(UTC)
    lane.bench.clock.forward(-3 * 3_600)
    work = lane.bench.worker()
    await work.sweep(lane.bench.tenant, jobs_before=0, calls_before=0, put_back=True)
    await lane.collect(max(OPTIONS.lease, LEASE))
    assert lane.endpoint.since is not None
    assert lane.endpoint.since <= made


@pytest.mark.parametrize("sure", [True, False])
async def test_a_batch_that_was_not_created_is_made_once_that_is_certain(
    lane: LaneBench, sure: bool
) -> None:
    job = await lane.submit()
    await lane.run()
    lane.endpoint.before = unconfirmed()
    lane.endpoint.sure = sure
    await lane.collect(OPTIONS.wait)
    assert (await lane.money(job))["job"] == (ZERO, RESERVED)
    await lane.collect(OPTIONS.lease)
    assert (await lane.money(job))["job"] == (ZERO, RESERVED)
    await lane.collect(OPTIONS.lease + OPTIONS.grace)
    assert (await lane.money(job))["job"] == (ZERO, ZERO if sure else RESERVED)
    await lane.collect(OPTIONS.wait)
    assert len(lane.endpoint.made) == sure
    if sure:
        await lane.endpoint.end()
        await lane.collect(OPTIONS.poll)
        await lane.run()
        out = await lane.get(job)
        assert out.charged_usd == CHARGED
        assert len(out.spending.attempts) == 1


def killed_there(*arguments: str) -> str:
    """Return the word that a collecting process says before it is killed."""
    command = [sys.executable, "-m", "tests.integration.jobs_store.collector_process", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        process.kill()
    return said


@pytest.mark.parametrize("stops", ["before", "after"])
async def test_a_worker_that_is_killed_while_it_creates_a_batch_pays_for_it_once(
    bench: Bench, tmp_path: Path, stops: str
) -> None:
    endpoint = FolderBatches(model(), tmp_path)
    lane = LaneBench(bench=bench, endpoint=endpoint, live=model())
    jobs = [await lane.submit() for _ in range(3)]
    await lane.run()
    bench.clock.forward(OPTIONS.wait)
    now = str(bench.clock.now)
    said = await anyio.to_thread.run_sync(
        killed_there, bench.url, bench.tenant, now, str(tmp_path), stops
    )
    assert said == "here\n"
    assert endpoint.count() == (stops == "after")
    for seconds in (LaneOptions().lease, OPTIONS.lease + OPTIONS.grace, OPTIONS.wait):
        await lane.collect(seconds)
    await endpoint.end()
    await lane.collect(OPTIONS.poll)
    await lane.run()
    assert endpoint.count() == 1
    assert [(await lane.get(job)).state for job in jobs] == [JobState.SUCCEEDED] * 3
    total = (await lane.money())["total"]
    assert total == (3 * CHARGED, ZERO)
    assert len(lane.model.calls) == 3


async def test_a_refused_batch_fails_its_calls(lane: LaneBench) -> None:
    job = await lane.submit()
    await lane.run()
    lane.endpoint.before = QuotaExhausted("no", provider="openai", model="x", usage=Usage())
    await lane.collect(OPTIONS.wait)
    await lane.run()
    out = await lane.get(job)
    assert out.state is JobState.FAILED
    assert out.error is not None
    assert out.error.type == "QuotaExhausted"
    assert (await lane.money(job))["job"] == (ZERO, ZERO)


async def test_a_busy_provider_is_asked_again_later(lane: LaneBench) -> None:
    job = await lane.submit()
    await lane.run()
    lane.endpoint.before = RateLimited("no", provider="openai", model="x", usage=Usage())
    await lane.collect(OPTIONS.wait)
    assert (await lane.money(job))["job"] == (ZERO, ZERO)
    await lane.collect()
    assert not lane.endpoint.made
    await lane.wave()
    assert (await lane.get(job)).state is JobState.SUCCEEDED


async def test_a_batch_takes_what_fits_into_the_cap(lane: LaneBench) -> None:
    jobs = [await lane.submit() for _ in range(5)]
    await lane.limit(total=3 * RESERVED)
    await lane.run()
    await lane.collect(OPTIONS.wait)
    assert (await lane.money())["total"] == (ZERO, 3 * RESERVED)
    await lane.endpoint.end()
    await lane.collect(OPTIONS.poll)
    await lane.wave()
    assert [len(made.lines) for made in lane.endpoint.made.values()] == [3, 2]
    assert [(await lane.get(job)).charged_usd for job in jobs] == [CHARGED] * 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
async def test_live_calls_and_batches_that_race_stay_within_one_cap(
    bench: Bench, seed: int
) -> None:
    draw = random.Random(seed)
    # collectors move the clock by weeks
    bench.retention = 1_000 * DAY
    lane = lane_bench(bench)
    lane.wait_timeout = 0.01
    cap = draw.randint(4, 12) * RESERVED
    await lane.limit(total=cap)
    jobs = [
        await lane.submit(
            draw.choice(("batch", "batch-then-standard", "standard")),
            strategy=draw.choice(("direct", "briefcontext")),
            partition_size=2,
        )
        for _ in range(10)
    ]
    peak, running = ZERO, True

    async def watch() -> None:
        nonlocal peak
        while running:
            peak = max(peak, sum((await lane.money())["total"], ZERO))

    async def collect() -> None:
        while running:
            await lane.collect(OPTIONS.wait)
            await lane.endpoint.end()
            await lane.collect(OPTIONS.poll)

    async with anyio.create_task_group() as group:
        for task in (watch, collect, collect):
            group.start_soon(task)
        # how many turns it takes depends on the machine
        while not all([(await lane.get(job)).state.over for job in jobs]):
            await lane.run()
            # a collector may have moved the clock past the lease of a unit at work
            await lane.sweep()
        running = False
    assert ZERO < peak <= cap
    outs = [await lane.get(job) for job in jobs]
    assert all(out.state.over for out in outs)
    assert (await lane.money())["total"] == (sum((out.charged_usd for out in outs), ZERO), ZERO)
    audit = await Auditor(bench.redis, bench.url, bench.tenant).verify()
    assert (audit.right, audit.over) == (True, 0)


async def test_a_call_that_no_limit_allows_fails_as_a_live_one(lane: LaneBench) -> None:
    job = await lane.submit(max_cost_usd=RESERVED / 2)
    await lane.run()
    await lane.collect(OPTIONS.wait)
    await lane.run()
    out = await lane.get(job)
    assert out.state is JobState.FAILED
    assert out.error is not None
    assert out.error.type == "BudgetExhausted"


async def test_the_limit_of_concurrent_calls_is_for_live_ones(lane: LaneBench) -> None:
    await lane.bench.redis.hset(f"{keys.prefix(lane.bench.tenant)}tenant", "calls", "1")
    jobs = [await lane.submit() for _ in range(3)]
    await lane.run()
    await lane.collect(OPTIONS.wait)
    live = await lane.submit("standard")
    await lane.run()
    assert (await lane.get(live)).state is JobState.SUCCEEDED
    await lane.endpoint.end()
    await lane.collect(OPTIONS.poll)
    await lane.run()
    assert {(await lane.get(job)).state for job in jobs} == {JobState.SUCCEEDED}


async def test_units_that_want_the_same_call_are_all_woken(lane: LaneBench) -> None:
    """Parts with equal passages have equal prompts: the call is sent once, and is the reply of both."""
    bench, job = lane.bench, await lane.bench.extracting(2)
    store = LaneStore(bench.worker(), bench.tenant)
    for name in ("extract:0", "extract:1"):
        await store.park(await bench.claimed(job, name), cast("Any", _Wanting({"same": MODEL})))
    opened = entries.opened(opening(await bench.running(), "a", key="same")) | {"job": job}
    reserved = await store.reserve(
        "pb_1", {"provider": "openai", "model": MODEL}, [opened], seconds=60
    )
    assert reserved.attempts == ("a",)
    assert await bench.store.run("land", bench.key(""), "pb_1", "a", "done", "") == "landed"
    woken = [unit.name async for unit in _taken(bench)]
    assert woken == ["extract:0", "extract:1"]


async def test_calls_that_cannot_be_sent_keep_no_others_back(bench: Bench) -> None:
    store, provider = LaneStore(bench.worker(), bench.tenant), ScriptedBatches(model(reply))
    wanted = [("anthropic:without-price", f"a{n}") for n in range(3)] + [(MODEL, "b")]
    for model_of, key in wanted:
        await store.park(await bench.running(), cast("Any", _Wanting({key: model_of})))
        bench.clock.forward(0.01)

    def endpoint(name: str) -> ScriptedBatches:
        if name == MODEL:
            return provider
        raise UnpricedModel(model=name)

    options = replace(OPTIONS, wait=0.0, rows=3)
    for _ in range(2):
        await collect(bench.worker("collector"), endpoint, cast("Prices", PRICES), options)
        bench.clock.forward(1)
    assert [len(one.lines) for one in provider.made.values()] == [1]
    # they are tried again
    bench.clock.forward(options.poll)
    left = await store.wanted(most=9, wait=0.0, at_once=1, hold=0.0)
    assert sorted(one.key for one in left) == ["a0", "a1", "a2"]


async def test_a_refusal_holds_all_calls_of_its_model_and_no_others(bench: Bench) -> None:
    store, provider = LaneStore(bench.worker(), bench.tenant), ScriptedBatches(model(reply))
    for model_of, key in [("openai:gpt-4o", f"a{n}") for n in range(5)] + [(MODEL, "b")]:
        await store.park(await bench.running(), cast("Any", _Wanting({key: model_of})))
        bench.clock.forward(0.01)
    tries = []

    class Busy(ScriptedBatches):
        async def create(self, lines: Any, *, label: str) -> str:
            tries.append(len(lines))
            raise RateLimited("no", provider="openai", model="x", usage=Usage(), retry_after=50.0)

    busy = Busy(model(reply))
    options = replace(OPTIONS, wait=0.0, rows=2)

    def endpoint(name: str) -> ScriptedBatches:
        if name in (MODEL, "openai:gpt-4o"):
            return provider if name == MODEL else busy
        # of other tests' tenants
        raise UnpricedModel(model=name)

    async def step() -> None:
        await collect(bench.worker("collector"), endpoint, cast("Prices", PRICES), options)
        bench.clock.forward(1)

    for _ in range(6):
        await step()
    assert tries == [2]
    assert [len(one.lines) for one in provider.made.values()] == [1]
    bench.clock.forward(50)
    await step()
    assert tries == [2, 2]


async def test_a_call_that_an_earlier_version_wrote_down_wakes_both_units(bench: Bench) -> None:
    job = await bench.extracting(2)
    store = LaneStore(bench.worker(), bench.tenant)
    await store.park(await bench.claimed(job, "extract:0"), cast("Any", _Wanting({"same": MODEL})))
    name = bench.key(f"job:{job}:lane")
    written = json.loads(cast("str", await bench.redis.hget(name, "same")))
    del written["us"]
    await bench.redis.hset(name, "same", json.dumps(written))
    await store.park(await bench.claimed(job, "extract:1"), cast("Any", _Wanting({"same": MODEL})))
    opened = entries.opened(opening(await bench.running(), "a", key="same")) | {"job": job}
    await store.reserve("pb_1", {"provider": "openai", "model": MODEL}, [opened], seconds=60)
    await bench.store.run("land", bench.key(""), "pb_1", "a", "done", "")
    assert [unit.name async for unit in _taken(bench)] == ["extract:0", "extract:1"]


@dataclass
class _Wanting:
    """Calls of a unit that wants some: the model of each by its key."""

    models: dict[str, str]
    repairs_live = False

    @property
    def wanted(self) -> dict[str, str]:
        return {key: json.dumps(_plan(key, name)) for key, name in self.models.items()}


def _plan(key: str, name: str) -> dict[str, Any]:
    opened = {
        "id": key, "call": None, "attempt": 1, "stage": "answer", "strategy": "direct", "model": name, "key": key,
        "prompt": {"name": "answer", "digest": "0" * 16}, "started": 0.0, "input_bound": 10, "max_tokens": 1,
        "tier": "batch", "effort": None, "reserved": "0.1", "prices": "p",
    }  # fmt: skip
    line = {"model": name, "path": "/v1/chat/completions", "body": "{}"}
    return {"line": line, "opening": opened, "caches": False}


async def _taken(bench: Bench) -> AsyncIterator[Unit]:
    while (unit := await bench.worker().take(bench.tenant)) is not None:
        yield unit


async def test_a_batch_waits_for_no_live_call_that_waits_for_a_connection(bench: Bench) -> None:
    await bench.redis.hset(bench.key("tenant"), "calls", "1")
    ledger = RedisLedger(bench.redis, bench.url, tenant=bench.tenant, clock=bench.clock)
    held = await bench.running()

    async def reserve(name: str, *, batch: bool) -> None:
        asked = Reservation(
            opening=opening(held, name), call=1, job="run_x", ticket=name, batch=batch
        )
        await ledger.reserve(asked)

    await reserve("live", batch=False)
    with pytest.raises(HeadroomReserved):
        await reserve("waits", batch=False)
    await reserve("batch", batch=True)


async def test_a_cancelled_job_is_charged_for_what_was_answered(lane: LaneBench) -> None:
    jobs = [await lane.submit() for _ in range(2)]
    await lane.run()
    await lane.collect(OPTIONS.wait)
    await lane.bench.store.cancel(jobs[0], tenant=lane.bench.tenant)
    await lane.collect(OPTIONS.poll)
    assert lane.endpoint.cancelled == []
    await lane.bench.store.cancel(jobs[1], tenant=lane.bench.tenant)
    await lane.collect(OPTIONS.poll)
    assert lane.endpoint.cancelled == ["batch_0"]
    fates = iter([BatchFate.SUCCEEDED, BatchFate.CANCELLED])
    await lane.endpoint.end(fates=lambda _: next(fates))
    await lane.collect(OPTIONS.poll)
    outs = [await lane.get(job) for job in jobs]
    assert {out.state for out in outs} == {JobState.CANCELLED}
    assert sorted(out.charged_usd for out in outs) == [0, CHARGED]
    await lane.run()
    assert len(lane.endpoint.made) == 1


async def test_a_retried_job_waits_for_the_call_that_it_has_sent(lane: LaneBench) -> None:
    job = await lane.submit()
    await lane.run()
    await lane.collect(OPTIONS.wait)
    await lane.bench.store.cancel(job, tenant=lane.bench.tenant)
    await lane.bench.store.retry(job, tenant=lane.bench.tenant)
    await lane.run()
    await lane.collect(OPTIONS.wait)
    await lane.endpoint.end()
    await lane.collect(OPTIONS.poll)
    await lane.run()
    out = await lane.get(job)
    assert out.state is JobState.SUCCEEDED
    assert out.charged_usd == CHARGED
    assert len(lane.endpoint.made) == 1


async def test_a_job_that_expires_is_charged_when_its_row_comes(lane: LaneBench) -> None:
    job = await lane.submit(deadline_seconds=1_000.0)
    await lane.run()
    await lane.collect(OPTIONS.wait)
    lane.bench.clock.forward(2_000.0)
    await lane.bench.sweep_all()
    assert (await lane.get(job)).state is JobState.EXPIRED
    await lane.endpoint.end()
    await lane.collect()
    assert (await lane.get(job)).charged_usd == CHARGED
    assert (await lane.money())["total"] == (CHARGED, ZERO)


async def test_a_message_that_comes_twice_changes_nothing(lane: LaneBench) -> None:
    job = await lane.submit()
    await lane.run()
    wires = LaneWires(lane.live, lane.endpoint)
    again = runner(lane.bench, lane.live, wires=wires)
    unit = Unit(tenant=lane.bench.tenant, job=job, name="answer")
    await again.run(unit)
    await lane.collect(OPTIONS.wait)
    await again.run(unit)
    await lane.collect(OPTIONS.wait)
    await lane.endpoint.end()
    await lane.collect(OPTIONS.poll)
    await again.run(unit)
    await lane.run()
    assert (await lane.get(job)).charged_usd == CHARGED
    assert [len(made.lines) for made in lane.endpoint.made.values()] == [1]


async def test_nothing_is_left_of_a_job_that_is_forgotten(lane: LaneBench) -> None:
    job = await lane.submit()
    await lane.wave()
    assert (await lane.get(job)).state is JobState.SUCCEEDED
    lane.bench.clock.forward(2_000.0)
    await lane.bench.sweep_all()
    assert await lane.bench.keys_of(job) == set()


async def test_a_batch_counts_its_calls_in_the_lane(lane: LaneBench) -> None:
    settings = Settings.model_validate({"POSOLOGY_MODEL": MODEL})
    batches = Batches(lane.bench.store, settings)
    rows = [json.dumps({"question": f"Does drug {i} help?", "tier": "batch"}) for i in range(3)]
    batch = (await batches.submit(rows, tenant=lane.bench.tenant)).id

    async def counted() -> tuple[int, int]:
        found = await batches.get(batch, tenant=lane.bench.tenant)
        assert (found.due is None) == (found.calls_sent == 0)
        return found.calls_wanted, found.calls_sent

    assert await counted() == (0, 0)
    await lane.run()
    assert await counted() == (3, 0)
    await lane.collect(OPTIONS.wait, rows=2)
    assert await counted() == (1, 2)
    await batches.cancel(batch, tenant=lane.bench.tenant)
    assert await counted() == (0, 2)
    await lane.endpoint.end(fates=lambda _: BatchFate.CANCELLED)
    await lane.collect(OPTIONS.poll)
    assert await counted() == (0, 0)
