"""Waiting jobs are sent in turn, and what the broker lost is sent again: on a Redis of this file's own."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
from celery import Celery

from orchestrator.jobs import tenants
from orchestrator.settings import Settings
from orchestrator.stack.redis_server import find_server
from posology.budget.ledger.redis import RedisLedger
from posology.errors import ConfigurationError, JobSuperseded, StoreUnavailable
from posology.store import keys
from posology.types import JobState, Opening, Reservation, Stage
from tests.integration.jobs_store.helpers import (
    ERROR,
    MODEL,
    PROMPT,
    Bench,
    Clock,
    open_bench,
    request,
)
from tests.integration.jobs_store.local import Gate, model, of, reply, runner
from workers import tasks
from workers.app import make_app
from workers.engine.claims import WorkStore
from workers.engine.maintenance import CALLS, DEPTH, JOBS, Maintenance, units_of
from workers.engine.runner import Runner
from workers.engine.units import Unit

pytestmark = pytest.mark.anyio

#: seconds: a Redis that has run for longer is none that was just started
LEASE = 2.0


class Shifted(Clock):
    """The server's time, shifted: what is done by it was done earlier or later."""

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + self.now


def ago(seconds: float) -> Shifted:
    return Shifted(now=round(-seconds * 1000))


@contextmanager
def redis_on(folder: Path) -> Iterator[str]:
    try:
        server = find_server(None)
    except ConfigurationError as error:
        pytest.skip(str(error))
    socket = folder / "redis.sock"
    command = [str(server), "--port", "0", "--unixsocket", str(socket), "--dir", str(folder),
               "--save", "", "--appendonly", "no"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 90
            while not socket.exists():
                assert time.monotonic() < deadline, "Redis did not start in 90 s"
                time.sleep(0.02)
            yield f"redis+socket://{socket}"
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def own_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_on(tmp_path_factory.mktemp("own")) as url:
        time.sleep(LEASE + 0.1)
        yield url


@dataclass(slots=True)
class Broker:
    """Celery's queues on Redis, or a broker that loses what it is given."""

    app: Celery
    loses: bool = False
    sent: list[Unit] = field(default_factory=list)

    def send(self, units: Sequence[Unit]) -> None:
        self.sent += units
        for unit in () if self.loses else units:
            self.app.send_task(
                f"posology.{unit.kind}",
                args=[unit.tenant, unit.job, [unit.name]],
                queue=JOBS if unit.kind == "answer" else CALLS,
                ignore_result=True,
            )


@pytest.fixture
def broker(own_url: str) -> Iterator[Broker]:
    with make_app(Settings.model_validate({"POSOLOGY_REDIS_URL": own_url})) as app:
        yield Broker(app)


@pytest.fixture
async def bench(own_url: str, tenant: str) -> AsyncIterator[Bench]:
    async with open_bench(own_url, tenant) as opened:
        await opened.redis.flushall()
        # as if workers had swept until the first sweep here, however late a busy machine comes to it
        await opened.redis.set(keys.SWEPT, round((time.time() + 600) * 1000))
        opened.clock = ago(0)
        yield opened


def work_of(bench: Bench, *, lease: float = LEASE) -> WorkStore:
    return WorkStore(bench.store, worker="w", lease=lease)


def house(
    bench: Bench, broker: Broker, *, keeps: Runner | None = None, lease: float = LEASE
) -> Maintenance:
    work = work_of(bench, lease=lease)
    return Maintenance(work, keeps or runner(bench, model()), broker.send, pause=0.01)


async def send(bench: Bench, broker: Broker, *, before: float, loses: bool = False) -> Unit:
    """Submit a job and send it, so many seconds ago."""
    now, bench.clock = bench.clock, ago(before)
    try:
        await bench.submit()
        unit = await bench.next()
        broker.loses = loses
        await anyio.to_thread.run_sync(broker.send, [unit])
    finally:
        bench.clock, broker.loses = now, False
    broker.sent.clear()
    return unit


async def test_what_celery_writes_is_understood(bench: Bench, broker: Broker) -> None:
    unit = await send(bench, broker, before=0)
    (message,) = await bench.redis.lrange(JOBS, 0, -1)
    assert units_of(str(message)) == [unit]


async def test_what_the_broker_lost_is_sent_again_and_what_it_holds_is_not(
    bench: Bench, broker: Broker
) -> None:
    lost = await send(bench, broker, before=30, loses=True)
    held = [await send(bench, broker, before=20) for _ in range(3)]
    await house(bench, broker)._sweep()
    assert broker.sent == [lost]
    # now it is in the queue, too
    await house(bench, broker)._sweep()
    assert broker.sent == [lost]
    await bench.redis.delete(JOBS)
    await house(bench, broker)._sweep()
    assert sorted(u.job for u in broker.sent[1:]) == sorted(u.job for u in held)


@dataclass(frozen=True, slots=True)
class Done:
    """A worker whose work is done, and that has units to send."""

    following: list[Unit]

    def run(self, units: Sequence[Unit]) -> list[Unit]:
        return self.following


async def test_a_unit_that_a_full_redis_does_not_take_is_a_line_and_is_found_by_the_sweep(
    bench: Bench, broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    unit = await send(bench, broker, before=30, loses=True)
    monkeypatch.setattr(tasks, "app", broker.app)
    monkeypatch.setattr(tasks, "runtime", Done([unit]))
    await bench.redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(StoreUnavailable, match=r"Redis at .* takes no messages now"):
            await anyio.to_thread.run_sync(tasks.send, [unit])
        # no error of the task, which Celery would report as unexpected
        await anyio.to_thread.run_sync(tasks.answer, bench.tenant, unit.job, ["answer"])
    finally:
        await bench.redis.config_set("maxmemory", 0)
    (line,) = [one for one in caplog.records if one.name == tasks.__name__]
    assert line.levelname == "WARNING"
    assert "takes no messages now" in line.getMessage()
    await house(bench, broker)._sweep()
    assert broker.sent == [unit]


async def test_what_was_sent_a_moment_ago_is_on_its_way(bench: Bench, broker: Broker) -> None:
    await send(bench, broker, before=5, loses=True)
    await house(bench, broker)._sweep()
    assert broker.sent == []
    bench.clock = ago(0)
    late = await send(bench, broker, before=11, loses=True)
    await house(bench, broker)._sweep()
    assert broker.sent == [late]


async def test_the_queues_are_looked_at_apart(bench: Bench, broker: Broker) -> None:
    """That no jobs are lost says nothing about calls."""
    bench.clock = ago(30)
    job = await bench.extracting(2)
    await send(bench, broker, before=60)
    bench.clock = ago(0)
    await house(bench, broker)._sweep()
    assert sorted((u.job, u.name) for u in broker.sent) == [(job, "extract:0"), (job, "extract:1")]


async def test_an_old_copy_at_the_head_does_not_make_the_others_lost(
    bench: Bench, broker: Broker
) -> None:
    """A killed worker's messages come back to the head of the queue; their units were sent again since."""
    first = await send(bench, broker, before=60)
    others = [await send(bench, broker, before=50) for _ in range(5)]
    # as if it had been taken up, lost with its worker, and sent again just now
    bench.clock = ago(40)
    assert await bench.claim(first.job) is not None
    bench.clock = ago(0)
    await house(bench, broker)._sweep()
    assert broker.sent == [first]
    for _ in range(3):
        await house(bench, broker)._sweep()
    assert broker.sent == [first], f"{len(others)} jobs are in the queue"


async def test_second_copies_at_the_head_say_nothing(bench: Bench, broker: Broker) -> None:
    waiting = await send(bench, broker, before=60, loses=True)
    done = await send(bench, broker, before=30)
    held = await bench.claimed(done.job)
    assert held.unit == done
    await house(bench, broker)._sweep()
    assert broker.sent == []
    await bench.redis.delete(JOBS)
    await house(bench, broker)._sweep()
    assert broker.sent == [waiting]


async def test_idle_tenants_cost_nothing(bench: Bench, broker: Broker) -> None:
    """Whoever submitted once is not asked for jobs for ever."""
    for i in range(300):
        await bench.redis.zadd(keys.TENANTS, {f"idle{i}": time.time_ns() // 1_000_000})
    await bench.submit()
    keeping = house(bench, broker)
    await bench.redis.config_resetstat()
    await keeping._dispatch()
    stats = await bench.redis.info("commandstats")
    assert len(broker.sent) == 1
    assert sum(stat["calls"] for stat in stats.values()) < 50
    # at most until it is asked once more
    await keeping._dispatch()
    assert await bench.redis.scard(keys.WAITING) == 0


async def test_a_submitter_whose_clock_is_hours_behind_keeps_its_tenant_listed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 5 * 3_600 * 10**9)
    for list_again in (tenants.enlist, tenants.wake):
        await list_again(bench.store, bench.tenant)
        # it has no record yet, so that maintenance takes it for idle
        await tenants.tidy(bench.store)
        assert bench.tenant in await tenants.listed(bench.store)


async def test_a_sweep_of_many_tenants_ends_when_the_store_is_away(
    bench: Bench, broker: Broker
) -> None:
    class Away(WorkStore):
        asked = 0

        async def sweep(self, *args: object, **kwargs: object) -> list[Unit]:
            self.asked += 1
            await anyio.sleep(0.01)
            raise StoreUnavailable("Redis is away", address="there")

    for i in range(100):
        await bench.redis.zadd(keys.TENANTS, {f"idle{i}": 1})
    work = Away(bench.store, worker="w", lease=LEASE)
    keeping = Maintenance(work, runner(bench, model()), broker.send, pause=0.01)
    with pytest.raises(StoreUnavailable):
        await keeping._sweep()
    assert work.asked <= 20


async def test_what_a_run_without_a_job_had_reserved_is_settled(
    bench: Bench, broker: Broker
) -> None:
    """Its process has died, and its tenant never submitted a job."""
    ledger = RedisLedger(bench.redis, bench.url, tenant="lit", lease=LEASE, clock=ago(60))
    opening = Opening(
        id="a", call=None, attempt=1, stage=Stage.ANSWER, model=MODEL, prompt=PROMPT, key="a",
        started=0.0, strategy="direct", input_bound=10, max_tokens=1, tier="standard", effort=None,
        reserved=Decimal("0.5"), prices="p",
    )  # fmt: skip
    await ledger.reserve(Reservation(opening=opening, call=1, job="run_x", ticket="t"))
    assert "lit" not in await tenants.listed(bench.store)
    await house(bench, broker)._tidy()
    (total,) = [one for one in await ledger.balances() if one.scope == "total"]
    assert (total.spent, total.reserved) == (Decimal("0.5"), Decimal(0))


async def test_one_process_sweeps_whatever_their_number(bench: Bench, broker: Broker) -> None:
    class Counted(WorkStore):
        swept: ClassVar[list[str]] = []

        async def sweep(self, tenant: str, **kwargs: Any) -> list[Unit]:
            self.swept.append(tenant)
            return await super().sweep(tenant, **kwargs)

    for i in range(100):
        await bench.redis.zadd(keys.TENANTS, {f"idle{i}": 1})
    work = Counted(bench.store, worker="w", lease=LEASE)
    many = [Maintenance(work, runner(bench, model()), broker.send, pause=60) for _ in range(50)]
    # each asks once in a period
    turns = [await one._is_its_turn(keys.SWEEP, 60) for one in many]
    assert turns == [True, *[False] * 49]
    # and is the next one when it is over
    await bench.redis.delete(keys.SWEEP)
    assert await many[7]._is_its_turn(keys.SWEEP, 60)
    await many[7]._sweep()
    assert len(Counted.swept) == len(set(Counted.swept)) >= 100


async def test_no_turn_outlasts_a_clock_that_was_put_back(bench: Bench, broker: Broker) -> None:
    await bench.redis.set(keys.SWEEP, 1, px=3_600_000)
    keeping = house(bench, broker)
    assert not await keeping._is_its_turn(keys.SWEEP, 60)
    assert await keeping._is_its_turn(keys.SWEEP, 60)


async def test_tenants_take_turns_where_the_broker_is_full(bench: Bench, broker: Broker) -> None:
    many, few = ("anna", "berta", "carl", "dora"), "zoe"
    for tenant, count in (*((name, 60) for name in many), (few, 10)):
        for i in range(count):
            await bench.store.submit(request(f"Is it {i}?"), tenant=tenant)
    keeping = house(bench, broker)
    while await bench.redis.llen(JOBS) < DEPTH:
        await keeping._dispatch()
    first = Counter(unit.tenant for unit in broker.sent)
    assert first[few] == 10
    assert max(first[name] for name in many) - min(first[name] for name in many) <= 1
    # a worker takes one job at a time: there is room for one
    broker.sent.clear()
    for i in range(10 * len(many)):
        message = await bench.redis.rpop(JOBS)
        (unit,) = units_of(str(message))
        assert await work_of(bench).claim(unit, delivery=str(i)) is not None
        await keeping._dispatch()
    assert Counter(unit.tenant for unit in broker.sent) == dict.fromkeys(many, 10)


async def test_after_the_clock_was_put_back_a_lease_still_ends(
    bench: Bench, broker: Broker
) -> None:
    hours = 3 * 3_600
    bench.clock = ago(-hours)
    held = await bench.running()
    later = round((time.time() + hours) * 1000)
    for clock in (ago(0), ago(-2 * LEASE)):
        bench.clock = clock
        # as the sweeps of before left it; that of a worker of an earlier version came after
        await bench.redis.set(keys.CLOCK, later)
        await bench.redis.set(keys.SWEPT, round(time.time() * 1000))
        await bench.redis.set(keys.AMNESTY, later)
        assert broker.sent == []
        await house(bench, broker)._sweep()
    assert broker.sent == [held.unit]


async def test_no_lease_is_over_because_redis_was_away(
    tmp_path: Path, broker: Broker, tenant: str
) -> None:
    with redis_on(tmp_path) as url:
        async with open_bench(url, tenant) as bench:
            bench.clock = ago(0)
            held = await bench.running()
            bench.clock = ago(-60)  # much later, but nobody could sweep meanwhile
            assert held.unit.name == "answer"
            broker.loses = True
            keeping = house(bench, broker, lease=LEASE)
            started = time.monotonic()
            await keeping._sweep()
            assert broker.sent == []
            assert (await bench.store.get(held.unit.job, tenant=tenant)).losses == 0
            # a little later every worker that lives has told so
            with anyio.fail_after(LEASE + 90):
                while not broker.sent:
                    await keeping._sweep()
            assert broker.sent == [held.unit]
            assert time.monotonic() - started >= LEASE / 3 - 0.1


async def test_a_message_that_is_none_of_ours_stops_no_sweep(bench: Bench, broker: Broker) -> None:
    waiting = await send(bench, broker, before=60, loses=True)
    bodies = [
        "W10=",
        "!",
        base64.b64encode(b"\x80\x04").decode(),
        base64.b64encode(b"[[1]]").decode(),
    ]
    for body in bodies:
        outer = {"body": body, "properties": {"body_encoding": "base64"}}
        await bench.redis.rpush(JOBS, json.dumps(outer))
    await bench.redis.rpush(JOBS, "no JSON", "[]")
    await house(bench, broker)._sweep()
    assert broker.sent == [], "as long as the queue holds messages that say nothing"
    await bench.redis.delete(JOBS)
    await house(bench, broker)._sweep()
    assert broker.sent == [waiting]


async def test_what_hangs_past_its_deadline_ends_without_its_worker(
    bench: Bench, broker: Broker
) -> None:
    """A heartbeat tells that a process lives, not that its work gets anywhere."""
    submitted = time.time_ns() // 1_000_000
    bench.clock = Clock(now=submitted)
    job = await bench.submit()
    held = await bench.claimed(job)
    late = request().deadline_seconds + 2 * LEASE
    for after, state in ((late - 0.5, JobState.RUNNING), (late + 0.5, JobState.EXPIRED)):
        bench.clock = Clock(now=submitted + round(after * 1000))
        await work_of(bench).heartbeat([held])
        await house(bench, broker)._sweep()
        assert (await bench.get(job)).state is state
    with pytest.raises(JobSuperseded):
        await work_of(bench).fail(held, ERROR)


async def test_the_loops_send_keep_and_find(bench: Bench, broker: Broker) -> None:
    """A unit that takes longer than a lease stays with its worker; a dead worker's does not."""
    dead = await bench.submit()
    bench.clock = ago(20)
    assert await bench.worker().take(bench.tenant) is not None
    lost = await bench.claimed(dead)
    bench.clock = ago(0)
    gate = Gate(model(reply), holds=of(Stage.ANSWER))
    # a worker whose leases are short: it extends them
    working = runner(bench, gate, work=work_of(bench))
    keeping = house(bench, broker, keeps=working)
    job = await bench.submit()
    with anyio.fail_after(90):
        async with anyio.create_task_group() as loops:
            loops.start_soon(keeping.keep)
            loops.start_soon(keeping.dispatch)
            loops.start_soon(keeping.announce)
            while len(broker.sent) < 2:  # noqa: ASYNC110 - a queue in Redis is no event
                await anyio.sleep(0.02)
            assert {unit.job for unit in broker.sent} == {dead, job}
            async with anyio.create_task_group() as group:
                group.start_soon(working.run, next(u for u in broker.sent if u.job == job))
                await gate.until(1)
                await anyio.sleep(2.5 * LEASE)
                gate.opened.set()
            loops.cancel_scope.cancel()
    out = await bench.get(job)
    assert (out.state, out.losses) == (JobState.SUCCEEDED, 0)
    assert (await bench.get(lost.unit.job)).losses == 1


async def test_a_redis_that_would_throw_jobs_away_is_told_of(
    bench: Bench, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    keeping = house(bench, broker)
    try:
        for policy, memory, told in (
            ("allkeys-lru", "1gb", True),
            ("allkeys-lru", "0", False),
            ("noeviction", "1gb", False),
        ):
            await bench.redis.config_set("maxmemory-policy", policy)
            await bench.redis.config_set("maxmemory", memory)
            caplog.clear()
            await keeping._warn_of_eviction()
            assert ("noeviction" in caplog.text) == told, (policy, memory)
    finally:
        await bench.redis.config_set("maxmemory-policy", "noeviction")
        await bench.redis.config_set("maxmemory", "0")
