"""Tables as leased work: requests, room, replies, ends, expiry, takeover, and the reader where it cannot read."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from redis.asyncio import Redis

from orchestrator.api.routes.health import TablesCollector
from orchestrator.ingest.uploads.process import Keeper, Stores
from orchestrator.ingest.uploads.takeover import locked, take_over
from orchestrator.ingest.uploads.uploads import Uploads
from orchestrator.models import Models
from orchestrator.settings import Settings
from orchestrator.tables.documents import Papers
from orchestrator.tables.rows import Begin, Replied
from orchestrator.tables.served.plan import Plan
from orchestrator.tables.served.reader import MAX_RUNS, TableReader
from orchestrator.tables.served.request import TableRequest
from orchestrator.tables.served.tables import MAX_KEPT, MAX_WAITING, Tables, new_id
from orchestrator.work.files import FolderFiles
from orchestrator.work.items import Claim, LeaseLost, Limits, NoRoom, Sweeping, of_tenants
from orchestrator.work.lease import Lease
from orchestrator.work.store import WorkStore
from posology.errors import InvalidQuery, StoreUnavailable, TableNotFound
from posology.published.tables.forms import TableEstimate, TableOutput
from posology.published.tables.orders import TableFailure, TableOrder, TableState
from posology.types import Finish, Passage
from posology.types.tables import Document
from tests.integration.test_work_store import Clock, lapse
from tests.support.disks import full_disk

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 1, 15, tzinfo=UTC)
FREE = Decimal(0)
ROOM = Limits(items=MAX_WAITING, bytes=2**20)
#: seconds
LEASE = 15.0
RULES = Sweeping(lease=LEASE)
ESTIMATE = TableEstimate(
    documents=1, read=0, calls=1, free=True, input_tokens=0, output_tokens=0, low_usd=FREE, expected_usd=FREE, worst_usd=FREE,
    spent_usd=FREE, cap_usd=None, balances=(),
)  # fmt: skip
OUT = TableOutput(model="m", fields=(), rows=(), left_out=(), estimate=None, spent_usd=FREE)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tables(redis: Redis, redis_url: str, clock: Clock, tmp_path: Path) -> Tables:
    # of a kind that no other test has
    kind = of_tenants(f"table-{uuid.uuid4().hex}")
    return Tables(WorkStore(redis, redis_url, kind, clock=clock), FolderFiles(tmp_path / "uploads"))


def plan(text: str = "It helps.", **fields: object) -> Plan:
    request = TableRequest.parse({"documents": ["1"], "model": "offline:extractive", **fields})
    document = Document(id="1", passages=(Passage(id="1", text=text),))
    return Plan(
        request=request, papers=Papers(documents=(document,), bad=(), retracted=frozenset())
    )


def order(table: str, tenant: str = "acme", **fields: object) -> TableOrder:
    given = {
        "id": table, "tenant": tenant, "state": TableState.WAITING, "model": "offline:extractive", "fields": ("n",),
        "index": "index@1", "documents": 1, "done": 0, "cells": 0, "values": None, "runs": 0, "submitted": NOW,
        "started": None, "ended": None, "spent_usd": 0, "cap_usd": None, "estimate": ESTIMATE, "error": None,
    }  # fmt: skip
    return TableOrder.model_validate({**given, **fields})


def reply(call: str = "c", cost: str = "0.5") -> Replied:
    return Replied(
        call=call, document="1", text="t", finish=Finish.STOP, served_model="m", cost=Decimal(cost)
    )


async def add(
    tables: Tables, asked: Plan, tenant: str = "acme", table: str = "", room: Limits = ROOM
) -> tuple[TableOrder, bool]:
    """What the API does with a request."""
    known = await tables.of_plan(tenant, asked.digest())
    made = order(
        known.id if known else table or new_id(), tenant, cap_usd=asked.request.max_cost_usd
    )
    return await tables.add(made, asked.dump(), asked.digest(), room)


async def held(tables: Tables, tenant: str = "acme") -> tuple[Claim, Lease]:
    claim = await tables.work.claim(tenant, lease=LEASE, at_once=1)
    assert claim is not None
    return claim, Lease(tables.work, claim, seconds=LEASE, record=lambda: claim.record)


async def end(
    tables: Tables, made: TableOrder, state: TableState = TableState.FAILED, out: TableOutput = OUT
) -> TableOrder:
    """End a tenant's next table as the reader does."""
    claim = await tables.work.claim(made.tenant, made.id, lease=LEASE)
    assert claim is not None
    error = TableFailure(type="BudgetExhausted", message="spent")
    over = made.model_copy(
        update={"state": state, "ended": NOW, "error": error if state is TableState.FAILED else None}
    )  # fmt: skip
    lease = Lease(tables.work, claim, seconds=LEASE, record=over.model_dump_json)
    size = await tables.save(over, out)
    await lease.finish(state.value, size=size, drop_rows=state is TableState.SUCCEEDED)
    return over


async def test_no_other_user_reads_a_table(tables: Tables, tmp_path: Path) -> None:
    await add(tables, plan())
    for name in ("uploads", "uploads/table", "uploads/table/acme"):
        assert stat.S_IMODE((await anyio.Path(tmp_path / name).stat()).st_mode) == 0o700


async def test_the_maximum_cost_alone_makes_no_other_table(tables: Tables) -> None:
    made, added = await add(tables, plan())
    assert added
    assert (await add(tables, plan(max_cost_usd="1")))[0].id == made.id
    for other in (plan("It does not."), plan(part_words=300)):
        assert await tables.of_plan("acme", other.digest()) is None
    assert await tables.of_plan("other", plan().digest()) is None
    assert await tables.all("acme") == [made]


@pytest.mark.slow
def test_every_process_finds_the_same_digest() -> None:
    """Else the same request to another process would make and pay for a second table."""
    code = (
        "from dataclasses import replace; from tests.integration.test_served_tables import plan; one = plan(); "
        "print(replace(one, papers=replace(one.papers, retracted=frozenset('abcdefgh'))).digest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


async def test_requests_at_once_make_one_table_and_as_many_as_have_room(tables: Tables) -> None:
    """As to several processes, of which none knows of the others."""
    made: list[tuple[str, bool]] = []

    async def same() -> None:
        asked = plan()
        found, added = await tables.add(order(new_id()), asked.dump(), asked.digest(), ROOM)
        made.append((found.id, added))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(same)
    assert len({table for table, _ in made}) == 1
    assert sum(added for _, added in made) == 1
    full: list[bool] = []

    async def another(n: int) -> None:
        try:
            await add(tables, plan(part_words=200 + n), "other", room=Limits(items=3, bytes=2**20))
        except NoRoom:
            full.append(True)

    async with anyio.create_task_group() as group:
        for n in range(8):
            group.start_soon(another, n)
    assert len(full) == 5
    # nothing of the others is left
    older = await anyio.to_thread.run_sync(lambda: list(tables.files.older(-60)))
    assert len(older) == 4


async def test_a_table_that_ended_early_continues_with_its_replies(tables: Tables) -> None:
    made, _ = await add(tables, plan(max_cost_usd="0"))
    claim, lease = await held(tables)
    await (await tables.replies("acme", made.id, lease)).keep(reply())
    await tables.cancel(made)
    assert (await tables.get(made.id, tenant="acme")).state is TableState.CANCELLING
    assert await tables.work.release(claim)
    over = await end(tables, made)
    assert await tables.stands(made)
    assert not await tables.stands(over)
    again, added = await add(tables, plan(max_cost_usd="1"))
    assert (again.id, added, again.state) == (made.id, True, TableState.WAITING)
    claim, lease = await held(tables)
    assert (claim.name, claim.cancelled) == (made.id, False)
    known = await tables.replies("acme", made.id, lease)
    assert known.content.spent == Decimal("0.5")
    await known.keep(reply("d"))
    assert Plan.read(await tables.plan(again)).request.max_cost_usd == 1
    # of a complete one, they are needed no more
    await tables.work.release(claim)
    await end(tables, made, TableState.SUCCEEDED)
    assert await tables.work.rows("acme", made.id) == []


async def test_no_reply_is_kept_by_two_readers(tables: Tables, clock: Clock) -> None:
    made, _ = await add(tables, plan())
    _, slow_lease = await held(tables)
    slow = await tables.replies("acme", made.id, slow_lease)
    await slow.keep(reply("a"))
    assert await lapse(tables.work, clock, "acme", RULES) == 1
    # as long as no other reader has come, what was paid for is kept
    await slow.keep(reply("b"))
    _, lease = await held(tables)
    other = await tables.replies("acme", made.id, lease)
    assert set(other.content.replies) == {"a", "b"}
    with pytest.raises(LeaseLost):
        await slow.keep(reply("c"))
    await other.keep(reply("d"))
    assert len(await tables.work.rows("acme", made.id)) == 3


async def test_a_reply_is_kept_although_its_reader_is_cancelled_and_redis_is_away(
    tables: Tables, redis: Redis, redis_url: str
) -> None:
    class Away(WorkStore):
        """Its Redis is away for two commands."""

        faults = 2

        async def append(self, claim: Claim, before: int, rows: Any) -> bool:
            if self.faults:
                self.faults -= 1
                group.cancel_scope.cancel()
                raise StoreUnavailable("no Redis", address="")
            return await super().append(claim, before, rows)

    made, _ = await add(tables, plan())
    claim, _ = await held(tables)
    away = Away(redis, redis_url, tables.work.kind)
    kept = await tables.replies(
        "acme", made.id, Lease(away, claim, seconds=LEASE, record=lambda: claim.record)
    )
    async with anyio.create_task_group() as group:
        await kept.keep(reply())
    assert len(await tables.work.rows("acme", made.id)) == 1
    assert set(kept.content.replies) == {"c"}


async def test_tables_have_so_many_bytes(tables: Tables) -> None:
    made, _ = await add(tables, plan())
    _, lease = await held(tables)
    await (await tables.replies("acme", made.id, lease)).keep(reply())
    asked = plan("It does not.")
    used = len(plan().dump()) + len(reply().model_dump_json())
    assert (await tables.work.totals("acme"))["bytes"] == used
    tight = Limits(items=9, bytes=used + len(asked.dump()) - 1)
    with pytest.raises(NoRoom):
        await tables.check_room("acme", len(asked.dump()), tight, known=False)
    with pytest.raises(NoRoom):
        await add(tables, asked, room=tight)
    await add(tables, asked, room=Limits(items=9, bytes=used + len(asked.dump())))
    # the same table needs no space after an early end: its replies were paid for
    await lease.release()
    await end(tables, made)
    full = Limits(items=9, bytes=1)
    await tables.check_room("acme", len(plan().dump()), full, known=True)
    assert (await add(tables, plan(), room=full))[1]
    assert (await add(tables, asked, "other"))[1]


async def test_a_complete_table_stands_and_needs_no_room(tables: Tables) -> None:
    made, _ = await add(tables, plan())
    done = await end(tables, made, TableState.SUCCEEDED)
    for words in range(MAX_WAITING):
        await add(tables, plan(part_words=200 + words))
    assert await tables.of_plan("acme", plan().digest()) == done
    assert await tables.stands(done)
    with pytest.raises(NoRoom) as full:
        await add(tables, plan("other"))
    assert (full.value.limit, full.value.used) == ("items", MAX_WAITING)


async def test_metrics_of_tables(tables: Tables) -> None:
    async def counts() -> dict[str, float]:
        (states,) = TablesCollector(await tables.counts()).collect()
        return {sample.labels["state"]: sample.value for sample in states.samples}

    assert await counts() == {"waiting": 0, "running": 0, "cancelling": 0}
    await end(tables, (await add(tables, plan()))[0])
    await add(tables, plan("a"))
    await tables.cancel((await add(tables, plan(), "other"))[0])
    await add(tables, plan(), "third")
    await held(tables, "third")
    assert await counts() == {"waiting": 1, "running": 1, "cancelling": 1}


async def test_a_table_of_another_tenant_is_none(tables: Tables) -> None:
    made, _ = await add(tables, plan())
    for table in (made.id, "../acme", "table_1", ""):
        with pytest.raises(TableNotFound):
            await tables.get(table, tenant="other")
    with pytest.raises(InvalidQuery):
        await tables.all("../acme")
    await tables.cancel(made)
    assert await tables.all("other") == []


async def test_ended_tables_expire_with_their_bytes(tables: Tables, clock: Clock) -> None:
    uploads = Uploads(WorkStore(tables.work.redis, "", of_tenants(uuid.uuid4().hex)), tables.files)
    settings = Settings.model_validate({"POSOLOGY_RETENTION_DAYS": "1"})
    stores = Stores(uploads=uploads, tables=tables, redis="")
    keeper = Keeper(stores=stores, settings=settings, process="")
    old, _ = await add(tables, plan("a"))
    await end(tables, old)
    clock.pass_by(2 * 86_400)
    made = [(await add(tables, plan(str(n))))[0] for n in range(2)]
    await end(tables, made[0])
    await keeper.sweep()
    assert {one.id for one in await tables.all("acme")} == {one.id for one in made}
    with pytest.raises(TableNotFound):
        await tables.get(old.id, tenant="acme")
    older = await anyio.to_thread.run_sync(lambda: list(tables.files.older(-60)))
    assert {name.rpartition("/")[2] for name in older} == {one.id for one in made}
    # and what a crash left
    tables.files.write(b"{}", f"table/acme/{old.id}/plan.json")
    await keeper.clear(-60)
    assert len(await anyio.to_thread.run_sync(lambda: list(tables.files.older(-60)))) == 2
    assert MAX_KEPT > 2


def reader_of(tables: Tables, stop: threading.Event | None = None) -> TableReader:
    settings = Settings()
    models = Models(settings.embedder, settings.embedding)
    return TableReader(
        tables=tables, settings=settings, models=models, stop=stop or threading.Event(), redis=tables.work.url
    )  # fmt: skip


async def test_a_full_disk_at_the_end_is_waited_for(tables: Tables) -> None:
    made, _ = await add(tables, plan())
    with full_disk():
        for _ in range(MAX_RUNS + 1):
            claim, _ = await held(tables)
            assert not await reader_of(tables).read(claim)
    waits = await tables.get(made.id, tenant="acme")
    assert (waits.state, waits.runs) == (TableState.WAITING, 0)
    claim, _ = await held(tables)
    assert await reader_of(tables).read(claim)
    assert (await tables.get(made.id, tenant="acme")).state is TableState.SUCCEEDED


async def test_a_table_that_ends_its_process_each_time_is_given_up(
    tables: Tables, clock: Clock
) -> None:
    made, _ = await add(tables, plan())
    for _ in range(MAX_RUNS):
        await held(tables)
        assert await lapse(tables.work, clock, "acme", RULES) == 1
    claim, _ = await held(tables)
    assert await reader_of(tables).read(claim)
    ended = await tables.get(made.id, tenant="acme")
    assert (ended.state, ended.runs) == (TableState.FAILED, MAX_RUNS)
    assert ended.error is not None
    assert ended.error.type == "Crashed"


async def test_a_stop_returns_the_table(tables: Tables) -> None:
    """It is no crash."""
    made, _ = await add(tables, plan())
    claim, _ = await held(tables)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await reader_of(tables).read(claim)
    waits = await tables.get(made.id, tenant="acme")
    assert (waits.state, waits.runs) == (TableState.WAITING, 0)


async def test_tables_of_several_tenants_are_read_at_once(
    redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    kind = of_tenants(f"table-{uuid.uuid4().hex}")
    tables = Tables(WorkStore(redis, redis_url, kind), FolderFiles(tmp_path))
    made = [(await add(tables, plan(str(n)), f"t{n % 6}"))[0] for n in range(9)]
    stop = threading.Event()
    async with anyio.create_task_group() as group:
        # two processes
        for _ in range(2):
            group.start_soon(reader_of(tables, stop).run)
        with anyio.fail_after(90):
            while (await tables.counts()).total():  # noqa: ASYNC110 - Redis is asked again and again
                await anyio.sleep(0.05)
        stop.set()
    ended = [await tables.get(one.id, tenant=one.tenant) for one in made]
    assert {(one.state, one.runs) for one in ended} == {(TableState.SUCCEEDED, 1)}


def old_table(
    folder: Path, place: str, made: TableOrder, asked: Plan, rows: str = "", out: TableOutput | None = None
) -> Path:  # fmt: skip
    """A table as the earlier version wrote it."""
    entry = folder / "tables" / made.tenant / place / made.id
    entry.mkdir(parents=True)
    (entry / "record.json").write_text(made.model_dump_json(), encoding="utf-8")
    (entry / "digest").write_text(asked.digest(), encoding="ascii")
    if not made.over:
        (entry / "plan.json").write_bytes(asked.dump())
    if rows:
        (entry / "run.jsonl").write_text(rows, encoding="utf-8")
    if out is not None:
        (entry / "table.json").write_text(out.model_dump_json(), encoding="utf-8")
    return entry


async def test_a_folder_of_an_earlier_version_is_finished(
    redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    kind, now = of_tenants(f"table-{uuid.uuid4().hex}"), datetime.now(UTC)
    files = FolderFiles(tmp_path)
    tables = Tables(WorkStore(redis, redis_url, kind), files)
    uploads = Uploads(WorkStore(redis, redis_url, of_tenants(uuid.uuid4().hex)), files)
    ids = [f"table_0199a1b2c3d45f6e7a8b9c0d1e{n:02}" for n in range(6)]
    begin = Begin(started="2026-01-15", model="m", fields=(), prompt="p")
    lines = "".join(f"{row.model_dump_json()}\n" for row in (begin, reply()))
    error = TableFailure(type="BudgetExhausted", message="spent")
    waits, running = order(ids[0]), order(ids[1], state=TableState.RUNNING, runs=1)
    early = order(ids[2], state=TableState.FAILED, ended=now, error=error)
    done = order(ids[3], state=TableState.SUCCEEDED, ended=now, values=0)
    expired = order(ids[4], state=TableState.SUCCEEDED, ended=now - timedelta(days=9), values=0)
    between = order(ids[5], tenant="other")
    old_table(tmp_path, "pending", waits, plan("0"))
    # the last row was cut off
    old_table(tmp_path, "pending", running, plan("1"), rows=f'{lines}{{"row":"rep')
    old_table(tmp_path, "ended", early, plan("2"), rows=lines, out=OUT)
    old_table(tmp_path, "ended", done, plan("3"), rows=lines, out=OUT)
    old_table(tmp_path, "ended", expired, plan("4"), out=OUT)
    # killed between the last two steps of an end, and cancelled
    (old_table(tmp_path, "ended", between, plan("5")) / "cancel").touch()
    (tmp_path / "tables" / "acme" / "tables.lock").touch()
    (tmp_path / "tables" / "lost+found").mkdir()
    with locked(tmp_path / "tables.lock"):
        await take_over(uploads, tables)
    assert await tables.all("acme") == [], "its process still reads"

    # this one is killed after the replies of a table are written, and begins again
    await tables.work.prepare("acme", running.id, lines.splitlines())
    for _ in range(2):
        await take_over(uploads, tables)
    left = [path.name async for path in anyio.Path(tmp_path).glob("tables/*")]
    assert left == ["lost+found"]
    await tables.work.sweep("acme", Sweeping(lease=LEASE, retention=7 * 86_400))
    assert [one.id for one in await tables.all("acme")] == [done.id, early.id, running.id, waits.id]
    assert len(await tables.work.rows("acme", running.id)) == 2
    assert (await tables.replies("acme", running.id)).content.spent == Decimal("0.5")
    assert await tables.table(done) == OUT
    assert await tables.stands(done)
    assert (await tables.get(between.id, tenant="other")).state is TableState.CANCELLING
    # the same request continues one that ended early, with its replies
    again, added = await add(tables, plan("2"))
    assert (again.id, added) == (early.id, True)
    assert len(await tables.work.rows("acme", early.id)) == 2
    reader = reader_of(tables)
    for _ in range(4):
        claim = await reader.claim()
        assert claim is not None
        assert await reader.read(claim)
    states = {one.id: one.state.value for one in await tables.all("acme")}
    assert set(states.values()) == {"succeeded"}
    assert (await tables.get(between.id, tenant="other")).state is TableState.CANCELLED
