"""The mirror of ledgers in a real Postgres."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.lowlevel
import psycopg
import pytest
from psycopg.rows import dict_row
from redis.asyncio import Redis

from posology.budget.books.archive.moving import Archive, archived_files
from posology.budget.books.export import Wanted, attempts
from posology.budget.books.mirror import COLUMNS, Mirror, Mirrored, open_mirror, row
from posology.budget.books.reader import Entry, Reader
from posology.budget.books.rows import NAMES
from posology.errors import ConfigurationError, InvalidQuery, MirrorFailed, MirrorMismatch
from posology.store import keys
from tests.support.postgres import postgres
from tests.support.traffic import Traffic, hash_of

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture
def database(server: str, tenant: str) -> str:
    """An empty database of a test."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {tenant}".encode())
    return server.replace("/postgres?", f"/{tenant}?")


@pytest.fixture
async def traffic(redis: Redis, redis_url: str, tenant: str) -> Traffic:
    made = Traffic(redis=redis, url=redis_url, tenant=tenant, seed=3)
    await made.start()
    return made


async def mirrored(
    traffic: Traffic, database: str, *, folder: Path | None = None, batch: int = 50
) -> Mirrored:
    async with open_mirror(database) as connection:
        copy = Mirror(traffic.redis, traffic.url, connection, folder=folder, batch=batch)
        return await copy(traffic.tenant)


async def archived(traffic: Traffic, folder: Path) -> None:
    move = Archive(traffic.redis, traffic.url, tenant=traffic.tenant, folder=folder)
    await move(datetime.now(UTC) + timedelta(days=1))


def query(database: str, text: str) -> list[dict[str, Any]]:
    with psycopg.connect(database, row_factory=dict_row) as connection:
        return connection.execute(text.encode()).fetchall()


def entries(database: str) -> list[dict[str, Any]]:
    return query(database, "SELECT * FROM posology_ledger.entries ORDER BY tenant, ms, seq")


async def test_every_entry_is_a_row_with_exact_amounts(traffic: Traffic, database: str) -> None:
    await traffic.spend(300)
    held = [e async for e in Reader(traffic.redis, traffic.url, traffic.tenant).entries()]
    done = await mirrored(traffic, database)
    assert done.right
    assert done.written == done.mirror.entries == len(held) > 200
    found = entries(database)
    assert [one["fields"] for one in found] == [dict(entry.fields) for entry in held]
    assert [f"{one['ms']}-{one['seq']}" for one in found] == [entry.place for entry in held]
    assert all(type(one["spent_change_usd"]) is Decimal for one in found)
    money = await hash_of(traffic.redis, f"{keys.prefix(traffic.tenant)}money")
    for field, column in (("spent", "spent_change_usd"), ("reserved", "reserved_change_usd")):
        total = sum((one[column] for one in found), Decimal(0))
        assert total == Decimal(money[f"{field}:total"]) / 10**9
        days = query(
            database,
            f"SELECT day, sum({column}) AS usd FROM posology_ledger.entries GROUP BY day",
        )
        # a day on which all was free has no counter
        assert {f"{field}:day:{one['day']}": one["usd"] * 10**9 for one in days if one["usd"]} == {
            name: int(n) for name, n in money.items() if name.startswith(f"{field}:day:") and int(n)
        }


async def test_the_view_has_the_rows_of_an_export(traffic: Traffic, database: str) -> None:
    await traffic.spend(300)
    await mirrored(traffic, database)
    found = {
        one["attempt_id"]: one for one in query(database, "SELECT * FROM posology_ledger.attempts")
    }
    exported = [
        asdict(one) async for one in attempts(traffic.redis, traffic.url, traffic.tenant, Wanted())
    ]
    assert found.keys() == {one["attempt_id"] for one in exported} == traffic.told.keys()
    for one in exported:
        other = found[one["attempt_id"]]
        assert tuple(other) == NAMES
        day = date.fromisoformat(one.pop("day"))
        assert other.pop("day") == day
        # the entry of a reservation has no more than the money
        few = ("tenant", "job", "kind", "reserved_usd", "charged_usd")
        told = {name: one[name] for name in few} if one["kind"] == "reserve" else one
        assert {name: other[name] for name in told} == told


async def test_a_question_about_days_reads_only_their_entries(
    traffic: Traffic, database: str
) -> None:
    await mirrored(traffic, database)
    with psycopg.connect(database) as connection:
        # a table of a test is so small that it would be read as a whole
        connection.execute("SET enable_seqscan = off")
        plan = connection.execute(
            "EXPLAIN SELECT sum(charged_usd) FROM posology_ledger.attempts WHERE day = '2026-01-15'"
        ).fetchall()
    assert "Index Cond: (day = '2026-01-15'::date)" in "\n".join(line for (line,) in plan)


async def test_a_second_run_writes_what_is_new(traffic: Traffic, database: str) -> None:
    await traffic.spend(60)
    first = await mirrored(traffic, database)
    again = await mirrored(traffic, database)
    assert (again.written, again.mirror, again.right) == (0, first.mirror, True)
    before = entries(database)
    await traffic.spend(60)
    more = await mirrored(traffic, database)
    assert more.right
    assert more.mirror.entries == first.mirror.entries + more.written
    assert entries(database)[: len(before)] == before


async def test_archived_entries_come_from_the_files(
    traffic: Traffic, database: str, tmp_path: Path
) -> None:
    await traffic.spend(60)
    await mirrored(traffic, database)
    await traffic.spend(60)
    await archived(traffic, tmp_path)
    await traffic.spend(60)
    with pytest.raises(InvalidQuery, match="--archive"):
        await mirrored(traffic, database)
    assert (await mirrored(traffic, database, folder=tmp_path)).right
    # nothing that is missing is in the archive: it is not asked for
    await traffic.spend(10)
    assert (await mirrored(traffic, database)).right
    # nor is anything left in the ledger
    await archived(traffic, tmp_path)
    assert (await mirrored(traffic, database)).right


async def test_a_tampered_archive_is_not_mirrored(
    traffic: Traffic, database: str, tmp_path: Path
) -> None:
    await traffic.spend(60)
    await archived(traffic, tmp_path)
    (path,) = archived_files(tmp_path, traffic.tenant)
    lines = path.path.read_bytes().splitlines(keepends=True)
    path.path.write_bytes(b"".join([*lines[:5], *lines[6:]]))
    with pytest.raises(InvalidQuery, match="ledger verify"):
        await mirrored(traffic, database, folder=tmp_path)
    assert entries(database) == []


async def test_two_runs_at_once_write_each_entry_once(traffic: Traffic, database: str) -> None:
    await traffic.spend(150)
    done: list[Mirrored] = []

    async def run() -> None:
        done.append(await mirrored(traffic, database, batch=7))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(run)
    assert all(one.right for one in done)
    assert sum(one.written for one in done) == done[0].ledger.entries == len(entries(database))


#: It gives way to the test that kills it.
KILLED = """
import os, sys
import anyio
from posology.budget.books.mirror import Mirror, open_mirror
from posology.store.connection import connect

async def main(url, tenant, database):
    os.nice(15)
    async with open_mirror(database) as connection:
        await Mirror(connect(url), url, connection, batch=1)(tenant)

anyio.run(main, *sys.argv[1:])
"""


async def test_a_killed_run_loses_and_doubles_nothing(traffic: Traffic, database: str) -> None:
    for _ in range(300):
        await traffic.settle(await traffic.reserve(), "settle")
    async with open_mirror(database):
        pass
    command = [sys.executable, "-c", KILLED, traffic.url, traffic.tenant, database]
    async with await anyio.open_process(command, stdout=None, stderr=None) as process:
        with anyio.fail_after(90):
            while len(entries(database)) < 20:
                await anyio.lowlevel.checkpoint()
        process.kill()
    before = len(entries(database))
    assert 20 <= before < 600
    done = await mirrored(traffic, database)
    assert done.right
    held = [e async for e in Reader(traffic.redis, traffic.url, traffic.tenant).entries()]
    assert [one["fields"] for one in entries(database)] == [dict(entry.fields) for entry in held]
    assert done.written <= 600 - before


async def test_rows_that_differ_are_told(traffic: Traffic, database: str) -> None:
    await traffic.spend(60)
    done = await mirrored(traffic, database)
    with psycopg.connect(database) as connection:
        connection.execute(
            "UPDATE posology_ledger.entries SET spent_change_usd = spent_change_usd + 0.000000001 "
            "WHERE (ms, seq) = (SELECT ms, seq FROM posology_ledger.entries LIMIT 1)"
        )
    again = await mirrored(traffic, database)
    assert not again.right
    assert again.mirror.spent - again.ledger.spent == Decimal("0.000000001")
    assert again.ledger == done.ledger


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE posology_ledger.entries ADD COLUMN mine text",
        "DROP VIEW posology_ledger.attempts; ALTER TABLE posology_ledger.entries ALTER spent_change_usd TYPE real",
        "UPDATE posology_ledger.layout SET version = 99",
        "DROP TABLE posology_ledger.entries CASCADE",
    ],
)
async def test_another_layout_is_refused(traffic: Traffic, database: str, change: str) -> None:
    await mirrored(traffic, database)
    with psycopg.connect(database) as connection:
        connection.execute(change.encode())
    with pytest.raises(MirrorMismatch, match="another layout"):
        await mirrored(traffic, database)


async def test_what_is_wrong_with_the_database_is_told(database: str, tmp_path: Path) -> None:
    nowhere = f"postgresql://posology:s3cret@/books?host={tmp_path}"
    with pytest.raises(MirrorFailed) as caught:
        async with open_mirror(nowhere):
            pass
    assert "s3cret" not in str(caught.value)
    assert caught.value.address == f"{tmp_path}/books"
    with pytest.raises(ConfigurationError) as malformed:
        async with open_mirror("postgresql://u:s3cret@host:port:1/x y?z"):
            pass
    assert "s3cret" not in str(malformed.value)


def test_text_that_postgres_does_not_take_is_replaced() -> None:
    fields: Mapping[str, str] = {
        "kind": "settle", "id": "a1", "at": "1000", "job": "job_1", "day": "2026-01-15",
        "reserved": "-5", "spent": "3", "bound": "5", "charged": "3", "known": "1",
        "outcome": "ok", "stage": "answer", "strategy": "direct", "model": "openai:a\0b",
        "label": "x", "tier": "standard", "input": "1", "output": "1",
        "entry": json.dumps({"error": "\ud800", "started": 1.0}),
    }  # fmt: skip
    found = row(Entry(place="1000-2", fields=fields), "acme")
    assert found.keys() == COLUMNS.keys()
    assert found["model"] == "openai:a\ufffdb"
    assert found["error"] == "?"
    assert (found["ms"], found["seq"]) == (1000, 2)
    assert found["spent_change_usd"] == Decimal("0.000000003")
    assert json.loads(found["fields"]) == fields


async def test_the_command_mirrors_all_tenants(
    traffic: Traffic, database: str, tmp_path: Path
) -> None:
    await traffic.spend(60)
    command = [
        sys.executable, "-c", "from orchestrator.cli.app import main; main()", "ledger", "mirror",
        "--to", database, "--tenant", traffic.tenant,
    ]  # fmt: skip
    environment = {**os.environ, "POSOLOGY_REDIS_URL": traffic.url}
    shown = await anyio.run_process(command, env=environment, cwd=tmp_path)
    assert f"{traffic.tenant}  correct" in shown.stdout.decode()
    again = await anyio.run_process([*command, "--json"], env=environment, cwd=tmp_path)
    out = cast("dict[str, Any]", json.loads(again.stdout))
    assert out["right"]
    assert out["tenants"][0]["written"] == 0
    assert out["tenants"][0]["mirror"] == out["tenants"][0]["ledger"]
