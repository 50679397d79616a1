"""Shards as leased work, on a real Redis and by a clock that the test sets."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import pytest
from redis.asyncio import Redis

from orchestrator.ingest.shards import store as shards
from orchestrator.ingest.shards.queue import RedisShards
from orchestrator.ingest.shards.store import (
    LOSSES,
    MISSES,
    RETURNS,
    ShardStore,
    outcome_of,
    run_of,
)
from posology.errors import IndexMissing, NoWorkers
from posology.index.shards.collector import Outcome
from tests.integration.test_work_store import Clock, lapse
from workers.engine.ingest import ShardWorker

pytestmark = pytest.mark.anyio

#: seconds
LEASE = 10.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(redis: Redis, redis_url: str, clock: Clock) -> ShardStore:
    return ShardStore(redis, redis_url, clock=clock)


async def state_of(store: ShardStore, place: str, name: str) -> str | None:
    shard = await store.standing(place, name)
    return None if shard is None else shard.state


async def outcome(store: ShardStore, place: str, name: str) -> Outcome:
    shard = await store.standing(place, name)
    assert shard is not None
    assert shard.over
    return outcome_of(shard)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path)


async def test_rows_of_a_worker_whose_lease_has_ended_count(
    store: ShardStore, place: str, clock: Clock
) -> None:
    run = run_of(place)
    await store.offer_shard(place, "aa")
    assert await store.take(run) == "aa"
    first = await store.claim(run, "aa", lease=LEASE)
    assert first is not None
    assert first.record == place
    assert await lapse(store, clock, run) == 1
    assert await store.take(run) == "aa"
    assert await store.claim(run, "aa", lease=LEASE) is not None
    # a failure of the slow one is not heard
    await store.miss(first, "late", lacking=True)
    assert await state_of(store, place, "aa") == "held"
    await store.done(first)
    assert await outcome(store, place, "aa") == Outcome(tries=2)
    assert await store.sweep_run(run, lease=LEASE) == 0
    # a writer that starts again finds it done
    await store.offer_shard(place, "aa")
    assert await state_of(store, place, "aa") == "done"
    assert await store.take(run) is None


@pytest.mark.parametrize(("lacking", "tries"), [(False, MISSES), (True, RETURNS)])
async def test_a_shard_is_tried_so_often(
    store: ShardStore, place: str, *, lacking: bool, tries: int
) -> None:
    run = run_of(place)
    await store.offer_shard(place, "aa")
    for n in range(tries):
        assert await state_of(store, place, "aa") == "waiting", n
        assert await store.take(run) == "aa"
        claim = await store.claim(run, "aa", lease=LEASE)
        assert claim is not None
        await store.miss(claim, "ValueError: no", lacking=lacking)
    failed = Outcome(failure="ValueError: no", tries=tries, lacking=lacking)
    assert await outcome(store, place, "aa") == failed
    # offered again, it is new
    await store.offer_shard(place, "aa")
    shard = await store.standing(place, "aa")
    assert shard is not None
    assert (shard.state, shard.runs) == ("waiting", 0)


async def test_what_kills_its_workers_is_given_up(
    store: ShardStore, place: str, clock: Clock
) -> None:
    run = run_of(place)
    await store.offer_shard(place, "aa")
    for _ in range(LOSSES):
        assert await store.take(run) == "aa"
        assert await store.claim(run, "aa", lease=LEASE)
        swept = 0
        for _ in range(5):
            clock.pass_by(LEASE / 4)
            swept += await store.sweep_run(run, lease=LEASE)
        assert swept == 1
    found = await outcome(store, place, "aa")
    assert not found.lacking
    assert "died" in (found.failure or "")


async def test_a_message_that_was_lost_is_sent_again(
    store: ShardStore, place: str, clock: Clock, redis: Redis
) -> None:
    run = run_of(place)
    await store.offer_shard(place, "aa")
    assert await store.take(run) == "aa"
    clock.pass_by(15)
    assert await store.sweep_run(run, lease=LEASE) == 0
    clock.pass_by(10)
    await redis.lpush(shards.INGEST, "a message")
    try:
        assert await store.sweep_run(run, lease=LEASE) == 0, "it may be in the queue"
    finally:
        await redis.delete(shards.INGEST)
    assert await store.sweep_run(run, lease=LEASE) == 1
    assert await store.take(run) == "aa"
    # a worker that is to stop says so by itself
    await store.unsend(run, "aa")
    assert await store.take(run) == "aa"
    assert await store.claim(run, "aa", lease=LEASE)
    await store.unsend(run, "aa")
    assert await store.take(run) is None


async def test_what_is_forgotten_leaves_nothing(
    store: ShardStore, place: str, redis: Redis
) -> None:
    run = run_of(place)
    for name in ("aa", "bb"):
        await store.offer_shard(place, name)
    assert run in await store.groups()
    await store.drop(place, ["aa"])
    assert await state_of(store, place, "aa") is None
    assert await store.take(run) == "bb"
    claim = await store.claim(run, "bb", lease=LEASE)
    await store.drop(place, ["bb", "cc"])
    assert run not in await store.groups()
    assert claim is not None
    await store.done(claim)
    assert await store.heartbeat(claim, lease=LEASE) == "lost"
    assert await store.claim(run, "bb", lease=LEASE) is None
    left = [key async for key in redis.scan_iter(f"posology:{{ingest.{run}}}:*")]
    assert left == []


async def test_a_worker_tells_its_own_faults_from_the_shards(
    store: ShardStore, place: str, redis_url: str
) -> None:
    run = run_of(place)
    seen: list[tuple[str, str]] = []

    def encode(where: str, name: str) -> None:
        seen.append((where, name))
        if name == "bad":
            raise ZeroDivisionError("of\nnothing")
        if name == "away":
            raise IndexMissing("no index here", index=where)

    worker = ShardWorker(
        redis_url, encode, lambda _run, _name: None, worker="w", lease=LEASE, keep=0.0
    )
    for name in ("good", "bad", "away"):
        await store.offer_shard(place, name)
    async with worker:
        for name in ("good", "good", *["bad"] * MISSES, *["away"] * RETURNS, "unknown"):
            await worker.work(run, name)
    assert seen == [(place, n) for n in ("good", *["bad"] * MISSES, *["away"] * RETURNS)]
    assert await state_of(store, place, "good") == "done"
    bad = await outcome(store, place, "bad")
    assert (bad.failure, bad.lacking) == ("ZeroDivisionError: of nothing", False)
    away = await outcome(store, place, "away")
    assert (away.failure, away.lacking) == ("IndexMissing: no index here", True)


async def test_what_a_worker_failed_at_is_left_to_another(
    store: ShardStore, place: str, redis_url: str
) -> None:
    run = run_of(place)

    def broken(_place: str, _name: str) -> None:
        raise ZeroDivisionError

    store = ShardStore(store.redis, redis_url)
    sick = ShardWorker(redis_url, broken, lambda *_: None, worker="sick", lease=LEASE)
    well = ShardWorker(redis_url, lambda *_: None, lambda *_: None, worker="well", lease=LEASE)
    await store.offer_shard(place, "aa")
    await store.announce("sick")
    await store.announce("well")
    async with sick, well:
        for _ in range(MISSES + 1):
            await sick.work(run, "aa")
        assert await state_of(store, place, "aa") == "waiting"
        assert await store.take(run) == "aa"
        await well.work(run, "aa")
    assert await state_of(store, place, "aa") == "done"
    await store.leave("well")
    await store.drop(place, ["aa"])
    # alone, it is tried by the one that there is
    await store.offer_shard(place, "bb")
    async with sick:
        for _ in range(MISSES):
            await sick.work(run, "bb")
    assert await state_of(store, place, "bb") == "failed"


async def test_a_worker_sends_what_waits_and_keeps_its_lease(
    store: ShardStore, place: str, redis_url: str
) -> None:
    run = run_of(place)
    sent: list[tuple[str, str]] = []
    store = ShardStore(store.redis, redis_url)
    for n in range(3):
        await store.offer_shard(place, f"0{n}")

    def send(where: str, name: str) -> None:
        # other tests leave shards that wait
        if where == run:
            sent.append((where, name))

    lease = 3.0

    def slow(_place: str, _name: str) -> None:
        time.sleep(1.5 * lease)

    worker = ShardWorker(redis_url, slow, send, worker="host:1", lease=lease)
    async with worker, anyio.create_task_group() as group:
        group.start_soon(worker.run_maintenance)
        with anyio.fail_after(90):
            while len(sent) < 3:  # noqa: ASYNC110 - Redis is asked again and again
                await anyio.sleep(0.01)
            assert await store.processes(within=60) >= 1
            await worker.work(run, "00")
        group.cancel_scope.cancel()
    assert sorted(sent) == [(run, f"0{n}") for n in range(3)]
    # it took longer than a lease and was nobody else's meanwhile
    assert await outcome(store, place, "00") == Outcome(tries=1)
    assert await store.redis.zscore(shards.SHARDS.processes, "host:1") is None
    await store.drop(place, [f"0{n}" for n in range(3)])


async def test_a_shard_whose_worker_died_as_the_last_one_is_not_waited_for_for_ever(
    store: ShardStore, redis_url: str, place: str
) -> None:
    run = run_of(place)
    with RedisShards(redis_url, place, lease=0.1, wait_timeout=0.5) as queue:
        await anyio.to_thread.run_sync(queue.offer, "aa")
        await store.announce("dead")
        assert await store.take(run) == "aa"
        assert await store.claim(run, "aa", lease=0.1) is not None
        with anyio.fail_after(90), pytest.raises(NoWorkers):
            await anyio.to_thread.run_sync(queue.wait, "aa", abandon_on_cancel=True)
        await anyio.to_thread.run_sync(queue.forget, ["aa"])


async def test_a_heartbeat_that_comes_late_does_not_bring_a_run_back(
    store: ShardStore, place: str
) -> None:
    await store.keep_run(place)
    assert run_of(place) not in await store.groups()
    await store.offer_shard(place, "aa")
    before = await store.redis.zscore(shards.SHARDS.groups, run_of(place))
    await store.keep_run(place)
    assert run_of(place) in await store.groups()
    after = await store.redis.zscore(shards.SHARDS.groups, run_of(place))
    assert before is not None
    assert after is not None
    assert after >= before
    await store.drop(place, ["aa"])
    await store.keep_run(place)
    assert run_of(place) not in await store.groups()


async def test_what_an_earlier_version_left_is_no_hindrance(
    store: ShardStore, place: str, redis: Redis, clock: Clock
) -> None:
    """Its writer offers the shards again, and finds the encoded rows beside the index."""
    run = run_of(place)
    prefix = f"posology:{{ingest.{run}}}:"
    await redis.hset(f"{prefix}shard:aa", mapping={"state": "held", "token": "1", "worker": "w"})
    await redis.rpush(f"{prefix}waiting", "bb")
    await redis.set(f"{prefix}place", place)
    await redis.set(f"{prefix}token", 1)
    await redis.zadd(f"{prefix}leases", {"aa": clock.now - 1})
    await redis.zadd(f"{prefix}sent", {"cc": clock.now - 60_000})
    for name in ("aa", "bb"):
        await store.offer_shard(place, name)
    assert await store.sweep_run(run, lease=LEASE) <= 1
    assert await store.sweep_run(run, lease=LEASE) == 0
    for name in ("aa", "bb"):
        assert await store.take(run) == name
        claim = await store.claim(run, name, lease=LEASE)
        assert claim is not None
        await store.done(claim)
