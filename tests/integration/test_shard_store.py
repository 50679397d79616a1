"""What Redis knows of shards, on a real one and by a clock that the test sets."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import pytest
from redis.asyncio import Redis

from orchestrator.ingest.shards import store as shards
from orchestrator.ingest.shards.queue import RedisShards
from orchestrator.ingest.shards.store import LOSSES, MISSES, RETURNS, ShardStore, run_of
from posology.errors import IndexMissing, NoWorkers
from workers.engine.ingest import ShardWorker

pytestmark = pytest.mark.anyio

#: seconds
LEASE = 10.0


class Clock:
    """Milliseconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(redis: Redis, redis_url: str, clock: Clock) -> ShardStore:
    return ShardStore(redis, redis_url, clock=clock)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path)


async def test_of_many_workers_one_gets_a_shard(store: ShardStore, place: str) -> None:
    names = [f"{n:02x}" for n in range(5)]
    for name in names:
        await store.offer(place, name)
        await store.offer(place, name)
    run = run_of(place)
    sent = [await store.take(run) for _ in range(6)]
    assert sent == [*names, None]
    won: list[str] = []

    async def race(worker: int, name: str) -> None:
        claim = await store.claim(run, name, worker=f"w{worker}", lease=LEASE)
        if claim is not None:
            won.append(claim.name)
            assert claim.place == place

    async with anyio.create_task_group() as group:
        for worker in range(20):
            for name in names:
                group.start_soon(race, worker, name)
    assert sorted(won) == names


async def test_a_lease_that_ends_gives_the_shard_to_another(
    store: ShardStore, place: str, clock: Clock
) -> None:
    run = run_of(place)
    await store.offer(place, "aa")
    await store.take(run)
    first = await store.claim(run, "aa", worker="one", lease=LEASE)
    assert first is not None
    clock.pass_by(LEASE - 1)
    assert await store.heartbeat(first, lease=LEASE)
    clock.pass_by(LEASE - 1)
    assert await store.sweep(run) == 0
    assert await store.claim(run, "aa", worker="two", lease=LEASE) is None
    clock.pass_by(2)
    assert await store.sweep(run) == 1
    assert await store.take(run) == "aa"
    second = await store.claim(run, "aa", worker="two", lease=LEASE)
    assert second is not None
    assert second.token > first.token
    assert not await store.heartbeat(first, lease=LEASE)
    # what the slow one says of a failure is not heard, that it is done is: the rows are the same
    await store.miss(first, "late", lacking=True)
    assert (await store.standing(place, "aa")).state == "held"
    await store.finish(first)
    found = await store.standing(place, "aa")
    assert (found.state, found.outcome.failure, found.outcome.tries) == ("done", None, 2)
    assert await store.sweep(run) == 0
    # a writer that starts again finds it done
    await store.offer(place, "aa")
    assert (await store.standing(place, "aa")).state == "done"
    assert await store.take(run) is None


@pytest.mark.parametrize(("lacking", "tries"), [(False, MISSES), (True, RETURNS)])
async def test_a_shard_is_tried_so_often(
    store: ShardStore, place: str, *, lacking: bool, tries: int
) -> None:
    run = run_of(place)
    await store.offer(place, "aa")
    for n in range(tries):
        assert (await store.standing(place, "aa")).state == "waiting", n
        assert await store.take(run) == "aa"
        claim = await store.claim(run, "aa", worker="w", lease=LEASE)
        assert claim is not None
        await store.miss(claim, "ValueError: no", lacking=lacking)
    found = await store.standing(place, "aa")
    assert found.state == "failed"
    assert (found.outcome.failure, found.outcome.lacking) == ("ValueError: no", lacking)
    assert found.outcome.tries == tries
    # offered again, it is new
    await store.offer(place, "aa")
    assert (await store.standing(place, "aa")).outcome.tries == 0


async def test_what_kills_its_workers_is_given_up(
    store: ShardStore, place: str, clock: Clock
) -> None:
    run = run_of(place)
    await store.offer(place, "aa")
    for _ in range(LOSSES):
        assert await store.take(run) == "aa"
        assert await store.claim(run, "aa", worker="w", lease=LEASE)
        clock.pass_by(LEASE + 1)
        assert await store.sweep(run) == 1
    found = await store.standing(place, "aa")
    assert (found.state, found.outcome.lacking) == ("failed", False)
    assert "died" in (found.outcome.failure or "")


async def test_a_message_that_was_lost_is_sent_again(
    store: ShardStore, place: str, clock: Clock, redis: Redis
) -> None:
    run = run_of(place)
    await store.offer(place, "aa")
    assert await store.take(run) == "aa"
    clock.pass_by(15)
    assert await store.sweep(run) == 0
    clock.pass_by(10)
    await redis.lpush(shards.INGEST, "a message")
    try:
        assert await store.sweep(run) == 0, "it may be in the queue"
    finally:
        await redis.delete(shards.INGEST)
    assert await store.sweep(run) == 1
    assert await store.take(run) == "aa"
    # a worker that is to stop says so by itself
    await store.unsend(run, "aa")
    assert await store.take(run) == "aa"
    assert await store.claim(run, "aa", worker="w", lease=LEASE)
    await store.unsend(run, "aa")
    assert await store.take(run) is None


async def test_what_is_forgotten_leaves_nothing(
    store: ShardStore, place: str, redis: Redis
) -> None:
    run = run_of(place)
    for name in ("aa", "bb"):
        await store.offer(place, name)
    assert run in await store.runs()
    await store.forget(place, ["aa"])
    assert (await store.standing(place, "aa")).state is None
    assert await store.take(run) == "bb"
    claim = await store.claim(run, "bb", worker="w", lease=LEASE)
    await store.forget(place, ["bb", "cc"])
    assert run not in await store.runs()
    assert claim is not None
    await store.finish(claim)
    assert not await store.heartbeat(claim, lease=LEASE)
    assert await store.claim(run, "bb", worker="w", lease=LEASE) is None
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
        await store.offer(place, name)
    async with worker:
        for name in ("good", "good", *["bad"] * MISSES, *["away"] * RETURNS, "unknown"):
            await worker.work(run, name)
    assert seen == [(place, n) for n in ("good", *["bad"] * MISSES, *["away"] * RETURNS)]
    assert (await store.standing(place, "good")).state == "done"
    bad = (await store.standing(place, "bad")).outcome
    assert (bad.failure, bad.lacking) == ("ZeroDivisionError: of nothing", False)
    away = (await store.standing(place, "away")).outcome
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
    await store.offer(place, "aa")
    await store.announce("sick")
    await store.announce("well")
    async with sick, well:
        for _ in range(MISSES + 1):
            await sick.work(run, "aa")
        assert (await store.standing(place, "aa")).state == "waiting"
        assert await store.take(run) == "aa"
        await well.work(run, "aa")
    assert (await store.standing(place, "aa")).state == "done"
    await store.leave("well")
    await store.forget(place, ["aa"])
    # alone, it is tried by the one that there is
    await store.offer(place, "bb")
    async with sick:
        for _ in range(MISSES):
            await sick.work(run, "bb")
    assert (await store.standing(place, "bb")).state == "failed"


async def test_a_worker_sends_what_waits_and_keeps_its_lease(
    store: ShardStore, place: str, redis_url: str
) -> None:
    run = run_of(place)
    sent: list[tuple[str, str]] = []
    store = ShardStore(store.redis, redis_url)
    for n in range(3):
        await store.offer(place, f"0{n}")

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
            assert await store.workers(within=60) >= 1
            await worker.work(run, "00")
        group.cancel_scope.cancel()
    assert sorted(sent) == [(run, f"0{n}") for n in range(3)]
    found = await store.standing(place, "00")
    # it took longer than a lease and was nobody else's meanwhile
    assert (found.state, found.outcome.tries) == ("done", 1)
    assert await store.redis.zscore(shards.WORKERS, "host:1") is None
    await store.forget(place, [f"0{n}" for n in range(3)])


async def test_a_shard_whose_worker_died_as_the_last_one_is_not_waited_for_for_ever(
    store: ShardStore, redis_url: str, place: str
) -> None:
    run = run_of(place)
    with RedisShards(redis_url, place, lease=0.1, wait_timeout=0.5) as queue:
        await anyio.to_thread.run_sync(queue.offer, "aa")
        await store.announce("dead")
        assert await store.take(run) == "aa"
        assert await store.claim(run, "aa", worker="dead", lease=0.1) is not None
        with anyio.fail_after(90), pytest.raises(NoWorkers):
            await anyio.to_thread.run_sync(queue.wait, "aa", abandon_on_cancel=True)
        await anyio.to_thread.run_sync(queue.forget, ["aa"])


async def test_a_heartbeat_that_comes_late_does_not_bring_a_run_back(
    store: ShardStore, place: str
) -> None:
    await store.keep_run(place)
    assert run_of(place) not in await store.runs()
    await store.offer(place, "aa")
    before = await store.redis.zscore(shards.RUNS, run_of(place))
    await store.keep_run(place)
    assert run_of(place) in await store.runs()
    after = await store.redis.zscore(shards.RUNS, run_of(place))
    assert before is not None
    assert after is not None
    assert after >= before
    await store.forget(place, ["aa"])
    await store.keep_run(place)
    assert run_of(place) not in await store.runs()
