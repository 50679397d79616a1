"""A Redis with many queued jobs and as many entries of ledgers: memory, restart, and what each operation costs it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
from redis.asyncio import Redis
from redis.exceptions import BusyLoadingError
from redis.exceptions import ConnectionError as RedisUnreachable

from evals.load.fanout import a_request
from evals.load.pages import fill
from evals.money.bulk import entries_of, fill_ledger
from evals.money.ledger import a_redis, pair
from evals.speed.counting import count
from orchestrator.jobs import metrics
from orchestrator.jobs.admission import Room
from orchestrator.jobs.store import JobStore
from orchestrator.spending import spend_output, today
from posology.budget.books.audit import Auditor
from posology.budget.books.reader import Reader, order
from posology.budget.ledger.redis import RedisLedger
from posology.budget.spending.periods import period
from posology.store import keys
from posology.store.connection import connect
from posology.types import Grouping, JobState
from workers.engine.claims import WorkStore

#: the tenant that has a fifth of everything
LARGEST = "tenant0"
#: times that an operation is repeated in a round, and one that looks at all tenants; rounds, of which the fastest counts
_TIMES, _FEW, _ROUNDS = 25, 2, 5
_DAY = 86_400
#: entries and jobs of a page
_PAGE = 50


def shares(total: int, tenants: int) -> Mapping[str, int]:
    """Return what each tenant has of a total: the largest a fifth, the others the rest in equal parts."""
    first = total // 5 if tenants > 1 else total
    rest = (total - first) // max(1, tenants - 1)
    return {LARGEST: first} | {f"tenant{n}": rest for n in range(1, tenants)}


async def measured(folder: Path, jobs: int, tenants: int) -> dict[str, Any]:
    """Write jobs and entries into a Redis of its own, and measure.

    Args:
        folder: an empty folder.
        jobs: number of jobs, and of entries.
        tenants: number of tenants, which all have some.
    """
    with a_redis(folder, file=False) as server:
        redis = connect(server.unix)
        try:
            store = JobStore(redis, server.unix, room=Room(queued=2 * jobs + 10_000, stored=10**6))
            found = await _fill(store, jobs, tenants)
            found |= {"operations": await _operations(store, list(shares(jobs, tenants)))}
            found |= await _written(redis, folder)
        finally:
            await redis.aclose()
    return found | await _restarted(folder)


async def _fill(store: JobStore, jobs: int, tenants: int) -> dict[str, Any]:
    redis, url = store.redis, store.url
    began, empty = time.perf_counter(), await _memory(redis)
    for tenant, some in shares(jobs, tenants).items():
        await fill(store, tenant, some, a_request().question, patience=13 * _DAY)
    queued, took = await _memory(redis), time.perf_counter() - began
    await pair(RedisLedger(redis, url, tenant="like"), "run_0")
    like, at = await entries_of(redis, "like"), 1000 * (time.time() - _DAY)
    for tenant, some in shares(jobs, tenants).items():
        await fill_ledger(redis, tenant, some // 2, like, at=at, apart=2000 * _DAY / (some + 2))
    entries = await _memory(redis)
    return {
        "filled_s": took,
        "job_bytes": (queued - empty) / jobs,
        "entry_bytes": (entries - queued) / jobs,
        "memory": entries,
    }


async def _operations(store: JobStore, tenants: list[str]) -> dict[str, Any]:
    """Return what each operation of the largest tenant costs: commands, microseconds of Redis, milliseconds of the caller."""
    redis, url = store.redis, store.url
    work, request = WorkStore(store, worker="bench:1"), a_request()
    reader = Reader(redis, url, LARGEST, size=_PAGE)
    held = int(await redis.zcard(f"{keys.prefix(LARGEST)}jobs"))
    middle, days = f"job_{held // 2:028x}", period(None, None, today=today())
    (first, *_) = (await reader.page()).entries
    half = f"{order(first.place)[0] + 500 * _DAY}-0"

    async def claim() -> None:
        unit = await work.take(LARGEST)
        assert unit is not None, "jobs wait"
        assert await work.claim(unit, delivery=uuid4().hex) is not None, "nobody else claims"

    async def sweep(names: list[str]) -> None:
        for name in names:
            await work.sweep(name, jobs_before=0, calls_before=0)

    async def page(cursor: str | None = None, state: JobState | None = None) -> None:
        await store.page(tenant=LARGEST, state=state, cursor=cursor, limit=_PAGE)

    async def audit() -> None:
        if not (await Auditor(redis, url, LARGEST).verify()).right:
            raise SystemExit("the counters are not the sums of the entries")

    operations: Mapping[str, tuple[int, Callable[[], Awaitable[object]]]] = {
        "submit": (_TIMES, lambda: store.submit(request, tenant=LARGEST)),
        "take and claim": (_TIMES, claim),
        "a job": (_TIMES, lambda: store.get(middle, tenant=LARGEST)),
        "jobs, first page": (_TIMES, page),
        "jobs, middle page": (_TIMES, lambda: page(middle)),
        "queued jobs, middle page": (_TIMES, lambda: page(middle, JobState.QUEUED)),
        "failed jobs": (_TIMES, lambda: page(None, JobState.FAILED)),
        "ledger, newest page": (_TIMES, reader.back),
        "ledger, middle page": (_TIMES, lambda: reader.page(half)),
        "spend of 30 days": (
            _TIMES,
            lambda: spend_output(redis, url, [LARGEST], days, Grouping.MODEL, single=True),
        ),
        "sweep of a tenant": (_TIMES, lambda: sweep([LARGEST])),
        "sweep of all tenants": (_FEW, lambda: sweep(tenants)),
        "metrics of all tenants": (_FEW, lambda: metrics.read(store)),
        "audit of all of a tenant's entries and jobs": (1, audit),
    }
    return {name: await cost(redis, *one) for name, one in operations.items()}


async def cost(
    redis: Redis, times: int, operation: Callable[[], Awaitable[object]]
) -> dict[str, float]:
    """Return what an operation costs: commands, microseconds of Redis, milliseconds of the caller; once: as it is at first."""
    if times > 1:
        # scripts are loaded
        await operation()

    async def repeat() -> None:
        for _ in itertools.repeat(None, times):
            await operation()

    # other work of the machine only adds to the time
    rounds = [await count(redis, repeat) for _ in range(_ROUNDS if times > 1 else 1)]
    return {
        "commands": rounds[0].commands / times,
        "redis_us": 1000 * min(done.milliseconds for done in rounds) / times,
        "ms": 1000 * min(done.seconds for done in rounds) / times,
    }


async def _written(redis: Redis, folder: Path) -> dict[str, float]:
    """Turn the append-only file on, and wait until it is written."""
    began = time.perf_counter()
    await redis.config_set("appendonly", "yes")
    while (await redis.info("persistence"))["aof_rewrite_in_progress"]:  # noqa: ASYNC110 - Redis ends it
        await anyio.sleep(0.1)
    took = time.perf_counter() - began
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())  # noqa: ASYNC240 - nothing waits
    return {"rewrite_s": took, "file_bytes": size}


async def _restarted(folder: Path) -> dict[str, float]:
    """Return seconds until a Redis with the file answers, and of them those of its processor."""
    (folder / "redis.sock").unlink()
    began = time.perf_counter()
    with a_redis(folder) as server:
        # not the product's connection, which tries again by itself
        redis = Redis.from_url(server.unix)
        while True:
            try:
                await redis.ping()
            except (BusyLoadingError, RedisUnreachable):
                await anyio.sleep(0.05)
            else:
                break
        took, spent = time.perf_counter() - began, await redis.info("cpu")
        await redis.aclose()
    own = float(spent["used_cpu_user"]) + float(spent["used_cpu_sys"])
    return {"restart_s": took, "restart_cpu_s": own}


async def _memory(redis: Redis) -> int:
    return int((await redis.info("memory"))["used_memory"])
