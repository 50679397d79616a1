"""How tenants share the workers: one's thousands and another's ten, and units that wait for headroom."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import anyio
import pytest

from posology.budget.ledger import entries
from posology.budget.ledger.base import nano
from posology.errors import HeadroomReserved, JobSuperseded
from posology.store import keys
from posology.types import JobState, Outcome, Stage
from tests.integration.jobs_store.helpers import ERROR, Bench, Clock, opening, request
from tests.integration.jobs_store.local import Gate, Local, model, of, reply, runner
from workers.engine import fairness
from workers.engine.fairness import LEAD, WAITERS
from workers.engine.journal import JobJournal
from workers.engine.maintenance import DEPTH, Maintenance
from workers.engine.units import ClaimedUnit, Unit

pytestmark = pytest.mark.anyio

BUSY = HeadroomReserved("wait", scope="day", asked=Decimal(1), place=3)
#: of the tenant that is measured
FEW = 10


@dataclass(slots=True)
class Broker:
    """A queue of units that tests take from, with Celery's length."""

    bench: Bench
    waiting: list[Unit] = field(default_factory=list)
    #: everything, in order
    sent: list[Unit] = field(default_factory=list)

    def send(self, units: Sequence[Unit]) -> None:
        self.sent += units
        self.waiting += units


@pytest.fixture
async def bench(bench: Bench) -> Bench:
    """No other test's tenants are asked for work."""
    await bench.redis.flushall()
    return bench


@pytest.fixture
def broker(bench: Bench) -> Broker:
    return Broker(bench)


def house(bench: Bench, broker: Broker) -> Maintenance:
    return Maintenance(bench.worker(), runner(bench, model()), broker.send, pause=0.01)


def of_tenant(bench: Bench, tenant: str) -> Bench:
    return Bench(redis=bench.redis, url=bench.url, tenant=tenant, clock=bench.clock)


async def dispatched(keeping: Maintenance, broker: Broker, *, rounds: int = 200) -> list[Unit]:
    """What is sent until nothing more is."""
    start = len(broker.sent)
    # a tenant of which enough was sent is not asked at once again
    await anyio.sleep(0.06)
    for _ in range(rounds):
        before = len(broker.sent)
        await keeping._dispatch()
        if len(broker.sent) == before:
            break
    return broker.sent[start:]


async def waits(bench: Bench, held: ClaimedUnit, *, key: str = "k", dollars: str = "1") -> None:
    """A unit asks for money that its tenant has not."""
    asked = opening(held, f"{held.unit.job}-{held.unit.name}", key=key)
    said = await bench.store.run(
        "open_attempt",
        keys.prefix(bench.tenant),
        held.unit.job,
        held.unit.name,
        held.token,
        json.dumps(entries.opened(asked)),
        nano(Decimal(dollars)),
    )
    assert said[0] == "busy", said


async def test_ten_jobs_are_sent_among_the_first_beside_ten_thousand(
    bench: Bench, broker: Broker
) -> None:
    many = of_tenant(bench, "many")
    for i in range(LEAD + 2 * FEW):
        await many.submit(question=f"Is it {i}?")
    await bench.redis.rpush(
        f"{keys.prefix('many')}waiting", *[f"job_none{i}" for i in range(10_000)]
    )
    keeping = house(bench, broker)
    assert len(await dispatched(keeping, broker)) == LEAD, "the broker holds no more of one tenant"
    few = of_tenant(bench, "few")
    for i in range(FEW):
        await few.submit(question=f"And {i}?")
    # workers take what was sent first; each frees one place
    for unit in broker.sent[:FEW]:
        assert await many.claim(unit.job) is not None
    await dispatched(keeping, broker)
    last = max(i for i, unit in enumerate(broker.sent) if unit.tenant == "few")
    assert Counter(unit.tenant for unit in broker.sent)["few"] == FEW
    assert last < LEAD + 2 * FEW <= DEPTH


async def test_the_broker_holds_as_much_of_a_tenant_as_it_has_under_way(
    bench: Bench, broker: Broker
) -> None:
    """Many workers are not kept short by one tenant's share."""
    for i in range(4 * LEAD):
        await bench.submit(question=f"Is it {i}?")
    keeping = house(bench, broker)
    for _ in range(2):
        for unit in await dispatched(keeping, broker):
            assert await bench.claim(unit.job) is not None
    assert len(await dispatched(keeping, broker)) == 2 * LEAD


async def test_no_job_is_begun_while_the_calls_of_others_are_not_read(
    bench: Bench, broker: Broker
) -> None:
    await bench.extracting(LEAD)
    await bench.submit()
    assert (await fairness.take(bench.store, bench.tenant)).later
    job = await bench.redis.zrange(bench.key("unclaimed:calls"), 0, 0)
    assert await bench.claim(*str(job[0]).split("|")) is not None
    assert (await fairness.take(bench.store, bench.tenant)).unit is not None


@pytest.mark.parametrize("passed", [6, -10_800], ids=["later", "clock put back"])
async def test_nothing_is_sent_of_a_tenant_whose_units_wait(bench: Bench, passed: int) -> None:
    await bench.limit(calls=1)
    for i in range(LEAD):
        await bench.submit(question=f"Is it {i}?")
    held = [await taken(bench) for _ in range(1 + WAITERS)]
    assert await bench.open(held[0], "first") == 1
    for i, one in enumerate(held[1:], 1):
        await waits(bench, one, dollars="0")
        offer = await fairness.take(bench.store, bench.tenant)
        assert offer.later == (i == WAITERS), i
        if offer.unit is not None:
            assert await bench.claim(offer.unit.job) is not None
    # whoever does not ask any more has left
    bench.clock.forward(passed)
    assert (await fairness.take(bench.store, bench.tenant)).unit is not None


async def taken(bench: Bench) -> ClaimedUnit:
    offer = await fairness.take(bench.store, bench.tenant)
    assert offer.unit is not None
    return await bench.claimed(offer.unit.job, offer.unit.name)


async def test_a_parked_unit_is_sent_again_before_new_jobs(bench: Bench) -> None:
    for i in range(3):
        await bench.submit(question=f"Is it {i}?")
    first, second = await taken(bench), await taken(bench)
    for held in (second, first):
        await fairness.park(bench.worker(), held, BUSY)
        bench.clock.forward(0.001)
    assert await bench.sweep_all() == [], "the sweep leaves it to the turn"
    bench.clock.forward(0.3)
    again = [await taken(bench) for _ in range(3)]
    assert [one.unit.job for one in again[:2]] == [second.unit.job, first.unit.job]
    assert [one.token for one in again] == [2, 2, 1]
    assert await bench.redis.zcard(bench.key("leases")) == 3


async def test_while_the_minute_is_full_nothing_is_begun(bench: Bench) -> None:
    for i in range(2):
        await bench.submit(question=f"Is it {i}?")
    held = await taken(bench)
    full = HeadroomReserved("wait", scope="requests", asked=None, place=0, retry_after=7.0)
    await fairness.park(bench.worker(), held, full)
    bench.clock.forward(6.9)
    # what the server forgets by its own clock is not over yet
    assert (await fairness.take(bench.store, bench.tenant)).later
    bench.clock.forward(0.2)
    assert (await taken(bench)).unit == held.unit
    assert (await taken(bench)).unit.job != held.unit.job


async def test_a_job_that_waits_for_its_own_cap_stops_no_other(bench: Bench) -> None:
    for i in range(2):
        await bench.submit(question=f"Is it {i}?")
    held = await taken(bench)
    own = HeadroomReserved("wait", scope="job", asked=Decimal(1), place=0)
    await fairness.park(bench.worker(), held, own)
    assert (await taken(bench)).unit.job != held.unit.job
    bench.clock.forward(1.1)
    assert (await taken(bench)).unit.job == held.unit.job


async def test_parking_takes_the_units_tickets_out_and_nobody_elses(bench: Bench) -> None:
    await bench.limit(calls=1)
    for i in range(3):
        await bench.submit(question=f"Is it {i}?")
    first, second, third = [await taken(bench) for _ in range(3)]
    await bench.open(first, "first")
    await waits(bench, second, dollars="0")
    await waits(bench, third, dollars="0")
    await fairness.park(bench.worker(), second, BUSY)
    left = await bench.redis.zrange(bench.key("money:queue"), 0, -1)
    assert [str(ticket).split("|")[0] for ticket in left] == [third.unit.job]
    # nobody stands before the other any more
    await bench.close(first, "first")
    assert await bench.open(third, "third", key="k") == 1


async def test_what_was_paid_for_before_a_unit_was_parked_is_replayed(bench: Bench) -> None:
    for name in ("answer", "extract:0"):
        held = await bench.running() if name == "answer" else await _extract(bench)
        await bench.open(held, f"{held.unit.job}-1", key="paid")
        await bench.close(held, f"{held.unit.job}-1", key="paid")
        await fairness.park(bench.worker(), held, BUSY)
        bench.clock.forward(1)
        again = await taken(bench)
        assert again.unit == held.unit
        assert not again.fresh
        assert await JobJournal(bench.worker(), again).recall("paid") is not None
        with pytest.raises(JobSuperseded):
            await bench.open(held, f"{held.unit.job}-2")
        out = await bench.get(held.unit.job)
        assert [a.outcome for a in out.spending.attempts] == [Outcome.OK], name
        assert (out.losses, out.unknown_costs) == (0, 0)
        await bench.worker().fail(again, ERROR)


async def _extract(bench: Bench) -> ClaimedUnit:
    return await bench.claimed(await bench.extracting(1), "extract:0")


async def test_parking_twice_is_parking_once(bench: Bench) -> None:
    held = await bench.running()
    for _ in range(2):
        await fairness.park(bench.worker(), held, BUSY)
    assert await bench.redis.zcard(bench.key("parked")) == 1


async def test_a_parked_job_can_be_cancelled_and_ends_at_its_deadline(bench: Bench) -> None:
    cancelled, late = await bench.running(), await bench.running()
    for held in (cancelled, late):
        await fairness.park(bench.worker(), held, BUSY)
    out = await bench.cancel(cancelled.unit.job)
    assert out.state is JobState.CANCELLED
    bench.clock.forward(200)
    assert await bench.sweep() == []
    assert await bench.state(late.unit.job) is JobState.EXPIRED
    # what is over is not sent, and forgotten
    assert await fairness.take(bench.store, bench.tenant) == fairness.Offer()
    assert await bench.redis.zcard(bench.key("parked")) == 0


async def test_whoever_has_only_parked_units_is_asked_for_them(
    bench: Bench, broker: Broker
) -> None:
    held = await bench.running()
    keeping = house(bench, broker)
    assert await fairness.take(bench.store, bench.tenant) == fairness.Offer()
    assert await bench.redis.scard(keys.WAITING) == 0
    await fairness.park(bench.worker(), held, BUSY)
    await keeping._dispatch()
    assert broker.sent == []
    bench.clock.forward(1)
    await anyio.sleep(0.06)
    await keeping._dispatch()
    assert broker.sent == [held.unit]


async def test_a_tenant_that_waits_holds_few_places_and_the_others_work_goes_on(
    bench: Bench,
) -> None:
    """Units of a tenant that may make one call at a time, and does not end it."""
    await bench.limit(calls=1)
    jobs = [await bench.submit(question=f"Is it {i}?") for i in range(6)]
    gate = Gate(model(reply), holds=of(Stage.ANSWER))
    work = runner(bench, gate)
    units = [(await bench.worker().take(bench.tenant)) for _ in jobs]
    bench.clock = Clock(now=time.time_ns() // 1_000_000)
    with anyio.fail_after(90):
        async with anyio.create_task_group() as group:
            for unit in units:
                assert unit is not None
                group.start_soon(work.run, unit)
            await gate.until(1)
            # one calls, the others have been handed back or wait
            while len(work.claimed) > 1 + WAITERS:  # noqa: ASYNC110 - it is no event
                await anyio.sleep(0.01)
            gate.opened.set()
    carried = Local(bench=bench, runner=work)
    with anyio.fail_after(90):
        for _ in range(50):
            bench.clock.forward(0.3)
            offer = await fairness.take(bench.store, bench.tenant)
            if offer.unit is not None:
                await carried.carry([offer.unit])
    states = Counter([await bench.state(job) for job in jobs])
    assert states == {JobState.SUCCEEDED: 6}
    attempts = [a for job in jobs for a in (await bench.get(job)).spending.attempts]
    assert len(attempts) == 6, "nothing was paid twice"


@pytest.mark.parametrize(
    ("of_model", "at_work"), [("offline:extractive", 2), ("openai:gpt-4o-mini", 5)]
)
async def test_what_computes_leaves_half_of_a_process_to_other_tenants(
    bench: Bench, of_model: str, at_work: int
) -> None:
    """Long questions of one tenant cost nothing, and others' short ones would wait for all of them."""
    many, few = of_tenant(bench, "many"), of_tenant(bench, "few")
    gate = Gate(model(), holds=lambda _: True)
    process = runner(bench, gate)
    process.threads = 4

    async def asked(of: Bench, n: int) -> Unit:
        question = request(f"Is it {n}?").model_copy(update={"model": of_model})
        await of.store.submit(question, tenant=of.tenant)
        offer = await fairness.take(of.store, of.tenant)
        assert offer.unit is not None
        return offer.unit

    units = [await asked(many, n) for n in range(5)]
    async with anyio.create_task_group() as group:
        for unit in units:
            group.start_soon(process.run, unit)
        await gate.until(at_work)
        group.start_soon(process.run, await asked(few, 9))
        await gate.until(at_work + 1)
        parked = f"{keys.prefix('many')}parked"
        with anyio.fail_after(90):
            while await bench.redis.zcard(parked) < len(units) - at_work:  # noqa: ASYNC110 - of Redis
                await anyio.sleep(0.01)
        gate.opened.set()
    # the others come again, each in its turn
    local = Local(bench=many, runner=process)
    for _ in range(len(units) - at_work):
        bench.clock.forward(5)
        offer = await fairness.take(many.store, many.tenant)
        assert offer.unit is not None
        await local.carry([offer.unit])
    assert [await many.state(unit.job) for unit in units] == [JobState.SUCCEEDED] * len(units)


def test_a_share_is_half_of_the_threads_and_two_at_least() -> None:
    assert [fairness.share(threads) for threads in (1, 2, 4, 32)] == [2, 2, 2, 16]
