"""The counters of money against the entries of the ledger, on a real Redis."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from redis.asyncio import Redis

from posology.budget.books.archive.moving import Archive, read
from posology.budget.books.audit import Audit, Auditor
from posology.budget.books.reader import START, Page, Reader, order, spenders
from posology.budget.ledger.redis import RedisLedger
from posology.budget.ledger.scripts import source
from posology.errors import BadFile, LedgerBusy, StoreUnavailable
from posology.store import keys
from posology.store.scripts import Scripts
from tests.support.traffic import Traffic, hash_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def traffic(redis: Redis, redis_url: str, tenant: str) -> Traffic:
    made = Traffic(redis=redis, url=redis_url, tenant=tenant)
    await made.start()
    return made


def auditor(traffic: Traffic, page: int = 64) -> Auditor:
    reader = Reader(traffic.redis, traffic.url, traffic.tenant, size=page)
    return Auditor(traffic.redis, traffic.url, traffic.tenant, reader=reader)


async def counters(traffic: Traffic) -> dict[str, dict[str, str]]:
    """All counters of the tenant, but for what stands at 0 and what the base holds."""
    prefix, found = keys.prefix(traffic.tenant), dict[str, dict[str, str]]()
    names = [name async for name in traffic.redis.scan_iter(f"{prefix}money*", count=1000)]
    names += [keys.budget(traffic.tenant, job) for job in traffic.jobs]
    for name in names:
        if await traffic.redis.type(name) == "hash" and ":base" not in name and ":lost" not in name:
            values = await hash_of(traffic.redis, name)
            found[name] = {
                k: v for k, v in values.items() if v != "0" and not k.startswith("base_")
            }
    return found


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


async def server_time(redis: Redis) -> datetime:
    """Now, and no entry is written at this millisecond."""
    await anyio.sleep(0.003)
    seconds, micros = await redis.time()
    await anyio.sleep(0.003)
    return datetime.fromtimestamp(seconds + micros // 1000 / 1000, UTC)


@pytest.mark.parametrize("seed", range(4))
async def test_counters_are_the_sums_of_the_entries(traffic: Traffic, seed: int) -> None:
    traffic.random.seed(seed)
    await traffic.spend(400)
    audit = await auditor(traffic).verify()
    assert (audit.differences, audit.orphans, audit.strangers) == ((), (), ())
    assert audit.right
    told = traffic.told.values()
    assert audit.counters > 30
    assert audit.open == sum(one.kind == "reserve" for one in told)
    assert audit.open_nano == sum(
        one.opening.reserved * 10**9 for one in told if one.kind == "reserve"
    )
    ended = [one for one in told if one.kind not in ("reserve", "release")]
    assert audit.unknown == sum(one.cost is None for one in ended)
    assert audit.unknown_nano == sum(one.charged * 10**9 for one in ended if one.cost is None)
    over = {name for name, one in traffic.told.items() if one.charged > one.opening.reserved}
    assert audit.over == len(over) > 0
    assert {entry.attempt for entry in audit.over_entries} == over


async def test_a_tenant_without_a_ledger_is_right(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    audit = await Auditor(redis, redis_url, tenant).verify()
    assert audit.right
    assert (audit.entries, audit.counters, audit.place) == (0, 0, "0-0")


async def test_what_was_tampered_with_is_found_and_put_right(traffic: Traffic) -> None:
    await traffic.spend(300)
    before = await counters(traffic)
    prefix, redis = keys.prefix(traffic.tenant), traffic.redis
    day = next(iter(traffic.told.values())).day
    some = next(iter(before[f"{prefix}money:by:{day}"]))
    tampered = {
        ("money", "spent:total"): 5,
        ("money", f"reserved:day:{day}"): -7,
        ("money", "spent:month:1999-01"): 3,
        (f"money:by:{day}", some): 1,
        (f"money:by:{day}", "nano|answer|direct|nobody"): 9,
        (f"job:{traffic.jobs[0]}", "spent_nano"): 11,
        (f"run:{traffic.jobs[-1]}", "reserved_nano"): -13,
    }
    for (name, field), n in tampered.items():
        await redis.hincrby(f"{prefix}{name}", field, n)
    idle = keys.new_id("job")
    await redis.hset(f"{prefix}job:{idle}", "spent_nano", "17")
    await redis.zadd(f"{prefix}jobs", {idle: 0})
    await redis.hset(f"{prefix}money", "over", "many")
    audit = await auditor(traffic).verify()
    assert not audit.right
    found = {(one.key, one.field): one for one in audit.differences}
    assert found.keys() == tampered.keys() | {
        (f"job:{idle}", "spent_nano"), ("money", "over")
    }  # fmt: skip
    for place, n in tampered.items():
        counted = found[place].counted
        assert counted is not None
        assert counted - found[place].summed == n
    assert found["money", "over"].counted is None
    rebuilt = await auditor(traffic).rebuild()
    assert {(one.key, one.field) for one in rebuilt.changed} == found.keys()
    assert rebuilt.audit.right
    after = await counters(traffic)
    assert after == before
    assert (await auditor(traffic).rebuild()).changed == ()


async def test_counters_that_are_gone_come_back(traffic: Traffic) -> None:
    await traffic.spend(200)
    before = await counters(traffic)
    prefix = keys.prefix(traffic.tenant)
    days = {one.day for one in traffic.told.values()}
    await traffic.redis.delete(f"{prefix}money", *(f"{prefix}money:by:{day}" for day in days))
    assert not (await auditor(traffic).verify()).right
    assert (await auditor(traffic).rebuild()).audit.right
    assert await counters(traffic) == before


async def test_records_that_are_gone_do_not_come_back(traffic: Traffic) -> None:
    await traffic.spend(200)
    gone = keys.budget(traffic.tenant, traffic.jobs[0])
    await traffic.redis.delete(gone)
    rebuilt = await auditor(traffic).rebuild()
    assert rebuilt.audit.right
    assert rebuilt.changed == ()
    assert not await traffic.redis.exists(gone)


async def test_a_record_that_is_forgotten_before_it_is_put_right_stays_so(
    traffic: Traffic,
) -> None:
    run, prefix = Scripts(traffic.redis, traffic.url, source), keys.prefix(traffic.tenant)
    assert await run("rebuild", prefix, "0", "job:job_gone", "spent_nano", 5) == "1"
    assert not await traffic.redis.exists(f"{prefix}job:job_gone")
    assert await run("rebuild", prefix, "0", "money", "spent:total", 5) == "moved"
    assert await hash_of(traffic.redis, f"{prefix}money") == {}


async def test_attempts_that_are_open_on_one_side_only_are_told(traffic: Traffic) -> None:
    prefix = keys.prefix(traffic.tenant)
    mine, other = await traffic.reserve(nano=5), await traffic.reserve(nano=6)
    raw = await traffic.redis.hget(f"{prefix}money:open", mine)
    await traffic.redis.hdel(f"{prefix}money:open", mine)
    await traffic.redis.hset(f"{prefix}money:open", "stranger", str(raw))
    rebuilt = await auditor(traffic).rebuild()
    assert not rebuilt.audit.right
    assert rebuilt.audit.orphans == (mine,)
    assert rebuilt.audit.strangers == ("stranger",)
    assert rebuilt.changed == ()
    assert other in traffic.told


async def test_it_may_be_looked_at_and_put_right_while_it_is_spent(
    traffic: Traffic, redis_url: str
) -> None:
    await traffic.spend(150)
    audits: list[Audit] = []
    wrong = 1_000_003
    async with anyio.create_task_group() as group:

        async def go_on() -> None:
            await traffic.spend(500)
            group.cancel_scope.cancel()

        async def look() -> None:
            while True:
                audits.append(await auditor(traffic, page=16).verify())

        group.start_soon(go_on)
        group.start_soon(look)
    assert len(audits) > 3
    assert all(audit.right for audit in audits)
    assert audits[0].entries < audits[-1].entries
    await traffic.redis.hincrby(f"{keys.prefix(traffic.tenant)}money", "spent:total", wrong)
    mended: list[int] = []
    async with anyio.create_task_group() as group:

        async def rebuild() -> None:
            rebuilt = await auditor(traffic, page=16).rebuild()
            mended.extend(one.summed - (one.counted or 0) for one in rebuilt.changed)

        # each finds it, one takes it away
        for _ in range(4):
            group.start_soon(rebuild)
        group.start_soon(traffic.spend, 200)
    assert mended == [-wrong]
    assert (await auditor(traffic).verify()).right


async def test_what_is_archived_goes_on_to_count(
    traffic: Traffic, redis: Redis, tmp_path: Path
) -> None:
    await traffic.spend(300)
    assert any(one.kind == "reserve" for one in traffic.told.values())
    assert any(one.kind == "lose" for one in traffic.told.values())
    cut = await server_time(redis)
    await traffic.spend(100)
    before, audit = await counters(traffic), await auditor(traffic).verify()
    held = [e async for e in Reader(redis, traffic.url, traffic.tenant).entries()]
    move = Archive(redis, traffic.url, tenant=traffic.tenant, folder=tmp_path, step=7)
    (done,) = await move(cut)
    assert 250 < done.entries == done.removed < len(held)
    assert await counters(traffic) == before
    after = await auditor(traffic).verify()
    assert after.right
    assert (after.archived, after.entries) == (done.entries, audit.entries - done.entries)
    for name in ("open", "open_nano", "unknown", "unknown_nano", "over", "counters"):
        assert getattr(after, name) == getattr(audit, name)
    left = [e async for e in Reader(redis, traffic.url, traffic.tenant).entries()]
    assert [*read(done.path), *left] == held
    assert await move(cut) == []
    # attempts that were open or lost when their entries were taken out end as any others do
    await traffic.spend(300)
    assert (await auditor(traffic).verify()).right
    (again,) = await move(await server_time(redis))
    empty = await auditor(traffic).verify()
    assert empty.right
    assert empty.entries == 0
    assert files(tmp_path) == sorted([done.path, again.path])
    await traffic.spend(50)
    await redis.hincrby(f"{keys.prefix(traffic.tenant)}money", "spent:total", 4)
    rebuilt = await auditor(traffic).rebuild()
    assert [(one.field, one.summed - (one.counted or 0)) for one in rebuilt.changed] == [
        ("spent:total", -4)
    ]
    assert rebuilt.audit.right


#: It gives way to whoever waits to kill it in time.
KILLED = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
import anyio
from posology.budget.books.archive.moving import Archive
from posology.store.connection import connect

async def main(url, tenant, folder):
    redis = connect(url)
    os.nice(15)
    await Archive(redis, url, tenant=tenant, folder=Path(folder), step=1)(datetime.now(UTC))

anyio.run(main, *sys.argv[1:])
"""


async def test_an_archiving_that_is_killed_loses_and_doubles_nothing(
    traffic: Traffic, redis: Redis, tmp_path: Path
) -> None:
    for _ in range(400):
        await traffic.settle(await traffic.reserve(), "settle")
    await anyio.sleep(0.01)
    before = await counters(traffic)
    reader = Reader(redis, traffic.url, traffic.tenant)
    held = [e async for e in reader.entries()]
    base = f"{keys.prefix(traffic.tenant)}money:base"
    command = [sys.executable, "-c", KILLED, traffic.url, traffic.tenant, str(tmp_path)]
    async with await anyio.open_process(command, stdout=None, stderr=None) as process:
        with anyio.fail_after(90):
            while int(await redis.hget(base, "entries") or 0) < 20:
                pass
        process.kill()
    left = [e async for e in reader.entries()]
    assert 0 < len(left) < len(held)
    assert (await auditor(traffic).verify()).right
    traffic.now += 1
    await traffic.settle(await traffic.reserve(), "settle")
    await anyio.sleep(0.01)
    newer = (await reader.page(held[-1].place)).entries
    assert len(newer) == 2
    move = Archive(redis, traffic.url, tenant=traffic.tenant, folder=tmp_path)
    first, second = await move(datetime.now(UTC))
    after = await counters(traffic)
    assert after.keys() == before.keys()
    assert (first.entries, first.removed) == (len(held), len(left))
    assert [*read(first.path), *read(second.path)] == [*held, *newer]
    assert files(tmp_path) == sorted([first.path, second.path])
    assert (await auditor(traffic).verify()).right
    await traffic.redis.delete(f"{keys.prefix(traffic.tenant)}money")
    assert (await auditor(traffic).rebuild()).audit.right
    assert await counters(traffic) == after


async def test_a_file_that_is_not_the_ledgers_is_refused(
    traffic: Traffic, redis: Redis, tmp_path: Path
) -> None:
    await traffic.spend(60)
    reader = Reader(redis, traffic.url, traffic.tenant)
    held = [e async for e in reader.entries()]
    path = tmp_path / f"{traffic.tenant}.{held[0].place}.{held[-1].place}.jsonl"
    lines = [json.dumps({"place": e.place, "fields": dict(e.fields)}) for e in held]
    move = Archive(redis, traffic.url, tenant=traffic.tenant, folder=tmp_path)
    other = [*lines[:3], lines[3].replace('"spent": "', '"spent": "1'), *lines[4:]]
    for wrong, why in (
        ([*lines[:3], *lines[4:]], "lacks the entry"),
        (lines[:-1], "lacks the entry"),
        (other, "differs from the ledger"),
        ([*lines[:5], "{"], "no archive"),
    ):
        path.write_text("\n".join(wrong))
        with pytest.raises(BadFile, match=why):
            await move(datetime.now(UTC))
        assert [e async for e in reader.entries()] == held
    with pytest.raises(BadFile):
        await Archive(
            redis, traffic.url, tenant=traffic.tenant, folder=tmp_path / "nowhere"
        )(datetime.now(UTC))  # fmt: skip


async def test_two_do_not_archive_into_one_folder_at_once(
    traffic: Traffic, redis: Redis, tmp_path: Path
) -> None:
    import fcntl

    await traffic.spend(30)
    with (tmp_path / f"{traffic.tenant}.part").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BadFile, match="another process"):
            await Archive(redis, traffic.url, tenant=traffic.tenant, folder=tmp_path)(
                datetime.now(UTC)
            )


class Restless(Reader):
    """Somebody takes an entry out of the ledger before every look at it."""

    async def page(self, after: str = START, until: str = "+") -> Page:
        return replace(await super().page(after, until), archived="9-9")


async def test_a_ledger_that_is_always_being_archived_is_busy(
    traffic: Traffic, redis_url: str
) -> None:
    await traffic.spend(30)
    restless = Restless(traffic.redis, redis_url, traffic.tenant)
    with pytest.raises(LedgerBusy) as caught:
        await Auditor(traffic.redis, redis_url, traffic.tenant, reader=restless).verify()
    assert caught.value.tenant == traffic.tenant


async def test_a_full_redis_can_be_archived(traffic: Traffic, redis: Redis, tmp_path: Path) -> None:
    await traffic.spend(60)
    before = await counters(traffic)
    try:
        await redis.config_set("maxmemory", 1)
        with pytest.raises(StoreUnavailable):
            await traffic.reserve()
        (done,) = await Archive(redis, traffic.url, tenant=traffic.tenant, folder=tmp_path)(
            datetime.now(UTC)
        )
    finally:
        await redis.config_set("maxmemory", 0)
    assert done.removed == done.entries > 20
    assert await counters(traffic) == before
    assert (await auditor(traffic).verify()).right


async def test_whoever_spends_is_listed(traffic: Traffic, redis: Redis, redis_url: str) -> None:
    assert traffic.tenant not in await spenders(redis, redis_url)
    await RedisLedger(redis, redis_url, tenant=traffic.tenant).balances()
    assert traffic.tenant not in await spenders(redis, redis_url)
    await traffic.reserve()
    found = await spenders(redis, redis_url)
    assert traffic.tenant in found
    assert found == sorted(set(found))


def test_places_are_in_the_order_of_the_stream() -> None:
    assert sorted(["10-2", "9-10", "9-9", "10-10"], key=order) == ["9-9", "9-10", "10-2", "10-10"]
