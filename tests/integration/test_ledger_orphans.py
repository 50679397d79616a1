"""Orphaned reservations end by entries of the ledger, on a real Redis."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import anyio
import pytest
from redis.asyncio import Redis
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from posology.budget.books.archive.moving import Archive
from posology.budget.books.audit import Auditor
from posology.budget.books.export import Wanted, attempts
from posology.budget.books.orphans import Ended, Kept, Orphans
from posology.budget.books.reader import Entry, Reader
from posology.budget.ledger.base import nano
from posology.budget.ledger.scripts import source
from posology.budget.reconcile.ours import latest
from posology.store import keys
from posology.store.connection import connect
from posology.store.scripts import Scripts
from posology.types import Scope
from tests.integration.jobs_store.helpers import BOUND, MODEL, Bench
from tests.support.commands import published
from tests.support.traffic import Traffic

pytestmark = pytest.mark.anyio


@pytest.fixture
async def traffic(redis: Redis, redis_url: str, tenant: str) -> Traffic:
    made = Traffic(redis=redis, url=redis_url, tenant=tenant)
    await made.start()
    return made


async def orphan(redis: Redis, tenant: str, *attempts: str) -> None:
    """Delete reservations behind the ledger's back."""
    await redis.hdel(f"{keys.prefix(tenant)}money:open", *attempts)


async def made(traffic: Traffic, *amounts: int) -> list[str]:
    found = [await traffic.reserve(nano=amount) for amount in amounts]
    await orphan(traffic.redis, traffic.tenant, *found)
    return found


async def settle(
    traffic: Traffic,
    *,
    billed: bool = True,
    only: tuple[str, ...] = (),
    archive: Path | None = None,
) -> Ended:
    ended = Orphans(traffic.redis, traffic.url, traffic.tenant, archive=archive)
    return await ended(billed=billed, only=only)


async def total(traffic: Traffic) -> tuple[int, int]:
    """Nano-dollars reserved and spent, by the counters."""
    (found,) = [one for one in await traffic.ledger.balances() if one.scope is Scope.TOTAL]
    return nano(found.reserved), nano(found.spent)


async def entries(traffic: Traffic, *wanted: str) -> list[Entry]:
    reader = Reader(traffic.redis, traffic.url, traffic.tenant)
    return [one async for one in reader.entries() if one.attempt in wanted]


async def test_an_orphan_is_charged_at_its_bound_and_a_late_report_corrects_it(
    traffic: Traffic,
) -> None:
    await traffic.spend(100)
    reserved, spent = await total(traffic)
    first, second = await made(traffic, 7_500, 2_000)
    ended = await settle(traffic)
    assert [(one.attempt, one.nano) for one in ended.closed] == [(first, 7_500), (second, 2_000)]
    assert ended.audit.right
    assert ended.kept == {}
    assert await total(traffic) == (reserved, spent + 9_500)
    assert [one.kind for one in await entries(traffic, first)] == ["reserve", "lose"]
    charged = (await entries(traffic, first))[-1]
    assert json.loads(charged.fields["entry"]) == {"settled_by": "operator"}
    assert charged.day == traffic.told[first].day
    await traffic.settle(first, "correct", cost=Decimal("0.000001"))
    assert await total(traffic) == (reserved, spent + 3_000)
    # what a late report may say is said once
    await traffic.settle(first, "correct", cost=Decimal("0.000004"))
    assert await total(traffic) == (reserved, spent + 3_000)
    assert (await Auditor(traffic.redis, traffic.url, traffic.tenant).verify()).right


async def test_what_was_not_billed_is_freed(traffic: Traffic) -> None:
    await traffic.spend(50)
    before = await total(traffic)
    (attempt,) = await made(traffic, 7_500)
    ended = await settle(traffic, billed=False)
    assert [one.attempt for one in ended.closed] == [attempt]
    assert ended.audit.right
    assert await total(traffic) == before
    assert [one.kind for one in await entries(traffic, attempt)] == ["reserve", "release"]


@pytest.mark.parametrize("billed", [True, False])
async def test_a_second_run_does_nothing(traffic: Traffic, billed: bool) -> None:
    (attempt,) = await made(traffic, 7_500)
    await settle(traffic, billed=billed)
    after = await total(traffic)
    for again in (True, False):
        ended = await settle(traffic, billed=again, only=(attempt,))
        assert ended.closed == ()
        assert ended.kept == {attempt: Kept.FINE}
    assert await total(traffic) == after
    assert len(await entries(traffic, attempt)) == 2


async def test_young_and_unasked_ones_stay(traffic: Traffic, redis: Redis) -> None:
    old, other = await made(traffic, 5, 6)
    seconds, _ = await redis.time()
    traffic.now = (int(seconds) - 3_600) * 1000
    (young,) = await made(traffic, 7)
    ended = await settle(traffic, only=(old, young))
    assert [one.attempt for one in ended.closed] == [old]
    assert ended.kept == {young: Kept.YOUNG}
    assert ended.audit.orphans == tuple(sorted([other, young]))
    assert not ended.audit.right
    rest = await Orphans(redis, traffic.url, traffic.tenant)(age=1_800)
    assert {one.attempt for one in rest.closed} == {other, young}
    assert rest.audit.right


async def test_an_archived_reservation_is_found_in_its_file(
    traffic: Traffic, tmp_path: Path
) -> None:
    await traffic.spend(60)
    (attempt,) = await made(traffic, 7_500)
    reserved, spent = await total(traffic)
    await anyio.sleep(0.01)
    move = Archive(traffic.redis, traffic.url, tenant=traffic.tenant, folder=tmp_path)
    assert await move(datetime.now(UTC))
    ended = await settle(traffic)
    assert ended.closed == ()
    assert ended.kept == {attempt: Kept.ARCHIVED}
    ended = await settle(traffic, archive=tmp_path)
    assert [(one.attempt, one.day) for one in ended.closed] == [
        (attempt, traffic.told[attempt].day)
    ]
    assert ended.audit.right
    assert await total(traffic) == (reserved - 7_500, spent + 7_500)
    await anyio.sleep(0.01)
    assert await move(datetime.now(UTC))
    assert (await Auditor(traffic.redis, traffic.url, traffic.tenant).verify()).right


@pytest.mark.parametrize("billed", [True, False])
async def test_several_at_once_beside_spending_settle_each_one_time(
    traffic: Traffic, billed: bool
) -> None:
    await traffic.spend(60)
    lost = await made(traffic, *range(1, 131))
    closed: list[str] = []

    async def one() -> None:
        ended = await settle(traffic, billed=billed)
        closed.extend(orphan.attempt for orphan in ended.closed)

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(one)
        group.start_soon(traffic.spend, 150)
    assert sorted(closed) == sorted(lost)
    kinds = [one.kind for one in await entries(traffic, *lost)]
    # late reports may have corrected some
    assert kinds.count("lose" if billed else "release") == kinds.count("reserve") == len(lost)
    assert (await Auditor(traffic.redis, traffic.url, traffic.tenant).verify()).right


async def test_what_was_found_before_another_repair_is_not_used(traffic: Traffic) -> None:
    attempt, other = await made(traffic, 5, 6)
    await settle(traffic, billed=False, only=(attempt,))
    run, prefix = Scripts(traffic.redis, traffic.url, source), keys.prefix(traffic.tenant)
    reservation = {"nano": "5", "day": traffic.told[attempt].day, "job": traffic.told[attempt].job}
    named = dict.fromkeys(("stage", "strategy", "model"), "unknown")
    raw = json.dumps(reservation | named | {"entry": "{}"})
    assert await run("close_orphans", prefix, "0", "lose", attempt, raw) == "moved"
    # a reservation that is there again is in use
    traffic.told[other].kind = "reserve"
    await traffic.redis.hset(f"{prefix}money:open", other, raw)
    assert await run("close_orphans", prefix, "1", "lose", other, raw) == ["1", []]
    assert len(await entries(traffic, other)) == 1


async def test_an_attempt_of_a_job_keeps_its_names(bench: Bench) -> None:
    claimed = await bench.running()
    await bench.open(claimed, "gone")
    await orphan(bench.redis, bench.tenant, "gone")
    audit = await Auditor(bench.redis, bench.url, bench.tenant).verify()
    assert audit.orphans == ("gone",)
    bench.clock.forward(1)
    ended = await Orphans(bench.redis, bench.url, bench.tenant)(age=-86_400 * 400)
    assert [(one.attempt, one.job) for one in ended.closed] == [("gone", claimed.unit.job)]
    assert ended.audit.right
    (row,) = [row async for row in attempts(bench.redis, bench.url, bench.tenant, Wanted())]
    assert (row.kind, row.model, row.stage, row.charged_usd) == ("lose", MODEL, "answer", BOUND)
    found = [one.fields async for one in Reader(bench.redis, bench.url, bench.tenant).entries()]
    (ours,) = latest(found, tenant=bench.tenant)
    assert (f"{ours.provider}:{ours.model}", ours.cost, ours.bound) == (MODEL, None, BOUND)
    # the job itself goes on, and its report corrects the charge
    await bench.close(claimed, "gone", cost=Decimal("0.0005"))
    out = await bench.store.get(claimed.unit.job, tenant=bench.tenant)
    assert (out.charged_usd, out.reserved_usd) == (Decimal("0.0005"), Decimal(0))
    assert (await Auditor(bench.redis, bench.url, bench.tenant).verify()).right


def test_the_command_settles_and_says_what_stays(redis_url: str, tenant: str) -> None:
    async def prepare() -> list[str]:
        redis = connect(redis_url)
        traffic = Traffic(redis=redis, url=redis_url, tenant=tenant)
        await traffic.start()
        found = await made(traffic, 7_500, 6_000)
        await redis.aclose()
        return found

    first, second = anyio.run(prepare)

    def command(*arguments: str) -> Result:
        environment = {"POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_TENANT": tenant}
        return CliRunner().invoke(app, ["ledger", *arguments], env=environment)

    shown = command("settle-orphans", "--attempt", first)
    assert shown.exit_code == 1
    assert f"settled: {first}" in shown.stdout
    assert f"orphaned reservation: {second}" in shown.stdout
    done = command("settle-orphans", "--not-billed", "--json")
    assert done.exit_code == 0, done.stdout
    (audit,) = published(done, "orphans")["tenants"]
    (settled,) = audit["settled"]
    assert (settled["attempt"], settled["charged_usd"]) == (second, "0")
    assert command("verify").exit_code == 0
    nothing = command("settle-orphans", "--attempt", first)
    assert "it is not an orphaned reservation" in nothing.stdout
    assert command("settle-orphans", "--hours", "0").exit_code == 2
    assert command("settle-orphans", "--all", "--tenant", tenant).exit_code == 2
