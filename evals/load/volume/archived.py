"""Ledgers that are archived again and again: what a page, a report, an inspection and a mirror cost as entries add up.

The entries are of attempts a fixed time apart, so a larger archive is one of more days. What was written is kept in the folder,
and an interrupted run goes on there.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

from redis.asyncio import Redis

from evals.load.volume.queued import LARGEST, cost, shares
from evals.money.bulk import entries_of, fill_ledger
from evals.money.ledger import a_redis, pair
from orchestrator.spending import spend_output
from posology.budget.books.archive.inspection import Inspector
from posology.budget.books.archive.moving import Archive, archived_files
from posology.budget.books.audit import Auditor
from posology.budget.books.mirror import Mirror, open_mirror
from posology.budget.books.reader import Reader
from posology.budget.ledger.redis import RedisLedger
from posology.budget.reconcile import ours
from posology.budget.spending.periods import DAYS, Period
from posology.store.connection import connect
from posology.types import Grouping
from tests.support.postgres import postgres

#: entries of all tenants in a day, and days of a file
DAILY, _FILE = 100_000, 4.0
#: in Redis: days that are written, and the time of the first entry, POSIX seconds
_DAYS, _BEGAN = "volume:days", "volume:began"
_DAY = 86_400.0
#: before the times of the first run: no entry may be of the future
_SPAN = 120 * _DAY


@dataclass(frozen=True, kw_only=True, slots=True)
class _Bench:
    """A Redis, and the folder of the archive."""

    redis: Redis
    url: str
    folder: Path
    tenants: int


async def measured(folder: Path, entries: int, tenants: int, *, mirrors: bool) -> dict[str, Any]:
    """Add archived entries until there are so many, and measure.

    Args:
        folder: of Redis and the archive; it may have fewer entries already.
        entries: number of archived entries of all tenants.
        tenants: number of tenants.
        mirrors: whether the largest tenant's ledger is mirrored in a Postgres, which must be installed.
    """
    (folder / "archive").mkdir(parents=True, exist_ok=True)
    (folder / "redis.sock").unlink(missing_ok=True)
    with a_redis(folder, file=False) as server:
        redis = connect(server.unix)
        bench = _Bench(redis=redis, url=server.unix, folder=folder / "archive", tenants=tenants)
        try:
            found = await _grow(bench, entries / DAILY)
            found |= await _figures(bench)
            if mirrors:
                with postgres() as target:
                    found |= await _mirrored(bench, target)
        finally:
            await redis.aclose()
    return found


async def _grow(bench: _Bench, days: float) -> dict[str, float]:
    """Write and archive the entries of some days."""
    redis = bench.redis
    if not await redis.exists(_BEGAN):
        await redis.set(_BEGAN, time.time() - _SPAN)
        await pair(RedisLedger(redis, bench.url, tenant="like"), "run_0")
    began, done = await _number(redis, _BEGAN), await _number(redis, _DAYS)
    like, moved, took = await entries_of(redis, "like"), 0, 0.0
    while done < days:
        some = min(_FILE, days - done)
        for tenant, daily in shares(DAILY // 2, bench.tenants).items():
            first, last = round(daily * done), round(daily * (done + some))
            if first == last:
                continue
            await fill_ledger(
                redis, tenant, last - first, like, first=first,
                at=1000 * (began + first * _DAY / daily), apart=1000 * _DAY / daily,
            )  # fmt: skip
            started = time.perf_counter()
            archive = Archive(redis, bench.url, tenant=tenant, folder=bench.folder)
            moved += sum([one.removed for one in await archive(datetime.now(UTC))])
            took += time.perf_counter() - started
        done += some
        await redis.set(_DAYS, done)
        await redis.save()
    return {"moved": moved, "moved_s": took}


async def _number(redis: Redis, name: str) -> float:
    return float(cast("str | None", await redis.get(name)) or 0)


async def _figures(bench: _Bench) -> dict[str, Any]:
    redis, url, folder = bench.redis, bench.url, bench.folder
    began, done = await _number(redis, _BEGAN), await _number(redis, _DAYS)
    day = datetime.fromtimestamp(began, UTC).date()
    days = Period(since=day, until=day + timedelta(days=DAYS - 1))
    started = time.perf_counter()
    inspected = await Inspector(redis, url, LARGEST, folder)()
    inspection = time.perf_counter() - started
    if inspected.problems:
        raise SystemExit(f"the archive is wrong: {inspected.problems[:3]}")
    own = [file.path for file in archived_files(folder, LARGEST)]

    async def audit() -> None:
        audit = await Auditor(redis, url, LARGEST).verify()
        if not audit.right or audit.archived != inspected.entries:
            raise SystemExit("the counters are not the sums of the entries")

    async def reconcile() -> None:
        reader, since = Reader(redis, url, LARGEST), began + (done - 0.5) * _DAY
        async for _ in ours.attempts(reader, own, since=since, notes=[]):
            pass

    async def names() -> None:
        archived_files(folder, LARGEST)

    operations: dict[str, Callable[[], Awaitable[object]]] = {
        "audit": audit,
        "spend": lambda: spend_output(redis, url, [LARGEST], days, Grouping.MODEL, single=True),
        "reconcile half a day": reconcile,
        "list files": names,
    }
    sizes = [file.stat().st_size for file in folder.iterdir()]
    found: dict[str, Any] = {
        "entries": inspected.entries,
        "inspection_s": inspection,
        "files": len(sizes),
        "bytes": sum(sizes),
        "redis_bytes": int((await redis.info("memory"))["used_memory"]),
    }
    for name, operation in operations.items():
        found[name] = await cost(redis, 1, operation)
    return found


async def _mirrored(bench: _Bench, target: str) -> dict[str, Any]:
    """Return the figures of a mirror in Postgres, and of questions to it."""
    found: dict[str, Any] = {}
    day = datetime.fromtimestamp(await _number(bench.redis, _BEGAN) + _DAY / 2, UTC).date()
    async with open_mirror(target) as database:
        run = partial(Mirror(bench.redis, bench.url, database, folder=bench.folder), LARGEST)
        started = time.perf_counter()
        made = await run()
        found["mirror_s"], found["mirrored"] = time.perf_counter() - started, made.written
        if not made.right:
            raise SystemExit("the mirror differs from the ledger")
        started = time.perf_counter()
        await run()
        found["mirror_again_s"] = time.perf_counter() - started
        async with database.cursor() as cursor:
            await cursor.execute("SELECT pg_total_relation_size('posology_ledger.entries')")
            (found["mirror_bytes"],) = await cursor.fetchone() or (0,)
            for name, question in _QUESTIONS.items():
                taken = []
                for _ in range(3):
                    started = time.perf_counter()
                    await cursor.execute(question.encode(), {"tenant": LARGEST, "day": day})
                    await cursor.fetchall()
                    taken.append(time.perf_counter() - started)
                found[name] = 1000 * min(taken)
    return found


#: what is asked of the mirror, by the name of its figure
_QUESTIONS = {
    "sql_page_ms": "SELECT * FROM posology_ledger.entries WHERE tenant = %(tenant)s ORDER BY ms DESC, seq DESC LIMIT 50",
    "sql_day_ms": "SELECT model, sum(charged_usd) FROM posology_ledger.attempts WHERE day = %(day)s GROUP BY 1",
    "sql_all_ms": "SELECT day, model, sum(charged_usd) FROM posology_ledger.attempts GROUP BY 1, 2",
}
