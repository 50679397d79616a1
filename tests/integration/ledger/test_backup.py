"""``posology backup``: a snapshot over the network, taken while calls are made, and restored as the docs describe."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

import anyio
import pytest
from anyio import to_thread
from redis import Redis as SyncRedis
from typer.testing import CliRunner

from orchestrator.backup.backup import Sources, back_up, backups
from orchestrator.backup.snapshot import snapshot
from orchestrator.cli.app import app
from posology.budget.books.audit import Auditor
from posology.budget.ledger.redis import RedisLedger
from posology.errors import BadFile, BudgetExhausted, StoreUnavailable
from posology.index.locking.lock import WriteLock
from posology.store import keys
from posology.store.connection import connect
from posology.types import Limits, Scope
from tests.integration.ledger.helpers import (
    Entry,
    Server,
    asked,
    ended,
    lasting_redis,
    stream,
    write_limits,
)

pytestmark = pytest.mark.anyio


async def spent_on(server: Server, tenant: str) -> list[Entry]:
    """Spend 1 of 4 dollars, with a call under way; return the entries."""
    async with connect(server.url) as redis:
        await redis.sadd(keys.SPENDERS, tenant)
        ledger = RedisLedger(redis, server.url, tenant=tenant, lease=600.0)
        await write_limits(redis, tenant, Limits(total=Decimal(4)))
        for attempt in ("a", "b", "held"):
            await ledger.reserve(asked(attempt))
        await ledger.settle(ended("a", "0.25"))
        await ledger.settle(ended("b", "0.75"))
        return await stream(redis, tenant)


async def is_restored(server: Server, tenant: str, before: list[Entry]) -> None:
    """Check that the books are whole, that what was under way can end, and that the limit holds."""
    async with connect(server.url) as redis:
        assert await stream(redis, tenant) == before
        assert (await Auditor(redis, server.url, tenant).verify()).right
        ledger = RedisLedger(redis, server.url, tenant=tenant, lease=600.0)
        await ledger.settle(ended("held", "0.5"))
        (total,) = (b for b in await ledger.balances() if b.scope is Scope.TOTAL)
        assert (total.spent, total.reserved) == (Decimal("1.5"), Decimal(0))
        for attempt in ("c", "d"):
            await ledger.reserve(asked(attempt))
            await ledger.settle(ended(attempt, "1"))
        with pytest.raises(BudgetExhausted):
            await ledger.reserve(asked("e"))
        assert (await Auditor(redis, server.url, tenant).verify()).right


async def reserved_later(server: Server, tenant: str) -> None:
    """Do what no backup of before has."""
    async with connect(server.url) as redis:
        ledger = RedisLedger(redis, server.url, tenant=tenant, lease=600.0)
        await ledger.reserve(asked("late"))


async def test_a_backup_restores_the_books(tmp_path: Path, tenant: str) -> None:
    old, new, folder = tmp_path / "old", tmp_path / "new", tmp_path / "backups"
    old.mkdir()
    with lasting_redis(old, "always") as server:
        before = await spent_on(server, tenant)
        made = await back_up(Sources(redis=server.url), folder, keep=3)
        await reserved_later(server, tenant)
    shutil.rmtree(old)

    about = json.loads((made.folder / "backup.json").read_text())
    rdb = (made.folder / "redis.rdb").read_bytes()
    assert about["redis"]["sha256"] == hashlib.sha256(rdb).hexdigest()
    assert about["redis"]["bytes"] == len(rdb) == made.redis_bytes
    rows = [json.loads(line) for line in (made.folder / "ledger.jsonl").read_text().splitlines()]
    assert len(rows) == made.attempts == about["ledger"]["attempts"] > 0
    assert made.folder.stat().st_mode & 0o077 == 0

    # as docs/how-to/backup.md describes it: an append-only file may begin with a snapshot
    new.mkdir()
    shutil.copy(made.folder / "redis.rdb", new / "appendonly.aof")
    with lasting_redis(new, "always") as server:
        await is_restored(server, tenant, before)


async def test_a_copy_of_the_files_restores_the_books(tmp_path: Path, tenant: str) -> None:
    """From under a running Redis, which rewrites its file meanwhile."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    with lasting_redis(old, "always") as server:
        before = await spent_on(server, tenant)
        async with connect(server.url) as redis:
            await redis.bgrewriteaof()
            with anyio.fail_after(90):
                while (await redis.info("persistence"))["aof_rewrite_in_progress"]:  # noqa: ASYNC110 - Redis tells nobody
                    await anyio.sleep(0.02)
        shutil.copytree(old, new, ignore=shutil.ignore_patterns("*.sock"))
        await reserved_later(server, tenant)
    shutil.rmtree(old)
    with lasting_redis(new, "always") as server:
        await is_restored(server, tenant, before)


async def test_a_snapshot_is_of_one_moment_while_others_write(
    redis_url: str, tenant: str, tmp_path: Path
) -> None:
    """Two counters that one transaction raises are equal in every snapshot."""
    stop = threading.Event()
    one, other = (f"posology:{{{tenant}}}:{name}" for name in ("one", "other"))

    def write() -> None:
        with SyncRedis.from_url(redis_url) as client:
            while not stop.is_set():
                with client.pipeline(transaction=True) as pipe:
                    pipe.incr(one)
                    pipe.incr(other)
                    pipe.execute()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for n in range(3):
            await to_thread.run_sync(snapshot, redis_url, tmp_path / f"{n}.rdb")
    finally:
        stop.set()
        writer.join(90)
    for n in range(3):
        folder = tmp_path / str(n)
        folder.mkdir()
        shutil.copy(tmp_path / f"{n}.rdb", folder / "appendonly.aof")
        with lasting_redis(folder, "no") as server:
            client = connect(server.url)
            values = await client.mget(one, other)
            assert values[0] == values[1]
            assert values[0] is None or int(values[0]) > 0
            await client.aclose()


async def test_the_newest_are_kept_and_unchanged_files_are_shared(
    redis_url: str, tmp_path: Path
) -> None:
    index, folder, memory = tmp_path / "index", tmp_path / "backups", tmp_path / "memory.sqlite"
    (index / "data").mkdir(parents=True)
    (index / "data" / "1.lance").write_bytes(b"x" * 100)
    with closing(sqlite3.connect(memory)) as opened, opened:
        opened.execute("create table t (a)")
        opened.execute("insert into t values (7)")
    sources = Sources(redis=redis_url, index=index, memory=memory)
    first = await back_up(sources, folder, keep=2)
    assert (first.index_files, first.shared) == (1, 0)
    # backups have names of seconds
    first.folder.rename(folder / "20260101T000000Z")
    (index / "data" / "2.lance").write_bytes(b"y")
    second = await back_up(sources, folder, keep=2)
    assert (second.index_files, second.shared) == (2, 1)
    assert (second.folder / "index" / "data" / "1.lance").stat().st_nlink == 2
    with closing(sqlite3.connect(second.folder / "memory.sqlite")) as copy:
        assert copy.execute("select a from t").fetchall() == [(7,)]
    second.folder.rename(folder / "20260102T000000Z")
    (folder / "notes.txt").touch()
    third = await back_up(sources, folder, keep=2)
    assert backups(folder) == [folder / "20260102T000000Z", third.folder]
    assert (folder / "notes.txt").exists()
    # what is removed takes nothing from the others
    assert (third.folder / "index" / "data" / "1.lance").read_bytes() == b"x" * 100


async def test_the_last_copy_of_an_index_is_kept_and_shared(redis_url: str, tmp_path: Path) -> None:
    """Backups that were made while it was written are without it."""
    index, folder = tmp_path / "index", tmp_path / "backups"
    index.mkdir()
    (index / "data").write_bytes(b"data")
    first = await back_up(Sources(redis=redis_url, index=index), folder, keep=2)
    first.folder.rename(folder / "20260101T000000Z")
    for day in (2, 3):
        made = await back_up(Sources(redis=redis_url), folder, keep=2)
        made.folder.rename(folder / f"202601{day:02}T000000Z")
    names = ["20260101T000000Z", "20260102T000000Z", "20260103T000000Z"]
    assert [one.name for one in backups(folder)] == names
    last = await back_up(Sources(redis=redis_url, index=index), folder, keep=2)
    assert last.shared == last.index_files == 1
    assert [one.name for one in backups(folder)] == ["20260103T000000Z", last.folder.name]


async def test_a_clock_that_was_wrong_costs_no_new_backup(redis_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    made = await back_up(Sources(redis=redis_url), folder, keep=1)
    made.folder.rename(folder / "99990101T000000Z")
    made = await back_up(Sources(redis=redis_url), folder, keep=1)
    assert backups(folder) == [made.folder]


async def test_what_cannot_be_copied_is_named_and_the_rest_is_kept(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, index = tmp_path / "memory.sqlite", tmp_path / "index"
    memory.write_bytes(b"no data base at all" * 100)
    sources = Sources(redis=redis_url, index=tmp_path / "none", memory=memory)
    made = await back_up(sources, tmp_path / "b", keep=1)
    assert made.redis_bytes > 0
    assert made.without is not None
    assert "without the memory" in made.without
    assert f"no index at {tmp_path / 'none'}" in made.without
    index.mkdir()
    (index / "data").write_bytes(b"data")

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    # a file system without hard links
    monkeypatch.setattr("os.link", refused)
    for number in (1, 2):
        made = await back_up(Sources(redis=redis_url, index=index), tmp_path / "c", keep=9)
        assert (made.index_files, made.shared) == (1, 0)
        made.folder.rename(tmp_path / "c" / f"2026010{number}T000000Z")


async def test_an_index_that_is_written_is_left_out(redis_url: str, tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    (index / "a").touch()
    with WriteLock(index):
        made = await back_up(Sources(redis=redis_url, index=index), tmp_path / "b", keep=1)
    assert made.without is not None
    assert not (made.folder / "index").exists()
    assert json.loads((made.folder / "backup.json").read_text())["index"] is None


async def test_of_an_index_that_changes_nothing_is_copied_and_nothing_hidden_of_any(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is of this machine: another one may write a shared folder."""
    index = tmp_path / "index"
    (index / "data" / ".unfinished").mkdir(parents=True)
    for name in ("a", "b", ".filler", "data/.tmp1", "data/.unfinished/c", "data/d"):
        (index / name).touch()
    sources = Sources(redis=redis_url, index=index)
    made = await back_up(sources, tmp_path / "whole", keep=1)
    copied = {
        str(path.relative_to(made.folder / "index"))
        for path in (made.folder / "index").rglob("*")
        if path.is_file()
    }
    assert copied == {"a", "b", "data/d"}
    assert made.index_files == 3
    copy = shutil.copy2

    def vanishing(path: Path, to: Path) -> None:
        copy(path, to)
        (index / "b").unlink(missing_ok=True)

    monkeypatch.setattr(shutil, "copy2", vanishing)
    made = await back_up(sources, tmp_path / "b", keep=1)
    assert made.without is not None
    assert not (made.folder / "index").exists()
    assert json.loads((made.folder / "backup.json").read_text())["index"] is None


async def test_a_failure_leaves_the_backups_as_they_were(redis_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    made = await back_up(Sources(redis=redis_url), folder, keep=1)
    made.folder.rename(folder / "20260101T000000Z")
    with pytest.raises(StoreUnavailable):
        await back_up(Sources(redis="redis://127.0.0.1:1/0"), folder, keep=1)
    assert [path.name for path in backups(folder)] == ["20260101T000000Z"]


async def test_a_backup_waits_for_no_other(redis_url: str, tmp_path: Path) -> None:
    """Its files would be taken for those of the other one, which would be called complete."""
    folder = tmp_path / "backups"
    sources = Sources(redis=redis_url)
    await back_up(sources, folder, keep=9)
    with (folder / "backup.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        (folder / "partial").mkdir()
        with pytest.raises(BadFile, match="another process makes a backup here"):
            await back_up(sources, folder, keep=9)
        assert (folder / "partial").exists()
    (made,) = backups(folder)
    made.rename(folder / "20260101T000000Z")
    assert (await back_up(sources, folder, keep=9)).folder in backups(folder)


@contextmanager
def _answering(*replies: bytes) -> Iterator[str]:
    """A server that says these things, whatever it hears, and hangs up."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            for reply in replies:
                self.request.recv(1024)
                self.wfile.write(reply)

    class Server(ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"redis://127.0.0.1:{server.server_address[1]}/0"
        finally:
            server.shutdown()
            thread.join(90)


_MARK = b"m" * 40
_RDB = b"REDIS0009" + b"\xff" + b"c" * 8


@pytest.mark.parametrize(
    ("reply", "content"),
    [(b"\n\n$18\r\n" + _RDB, _RDB), (b"$EOF:" + _MARK + b"\r\n" + _RDB + _MARK, _RDB)],
    ids=["length", "mark"],
)  # fmt: skip
def test_both_ways_to_end_a_snapshot_are_read(reply: bytes, content: bytes, tmp_path: Path) -> None:
    with _answering(b"+OK\r\n", reply) as url:
        taken = snapshot(url, tmp_path / "a.rdb")
    assert (tmp_path / "a.rdb").read_bytes() == content
    assert taken.bytes == len(content)


@pytest.mark.parametrize(
    "replies",
    [(b"-NOAUTH Authentication required.\r\n",), (b"+OK\r\n", b"-NOPERM no\r\n"), (b"+OK\r\n", b"$100\r\n" + _RDB),
     (b"+OK\r\n", b"$EOF:" + _MARK + b"\r\n" + _RDB), (b"+OK\r\n", b"$18\r\n" + b"x" * 18),
     (b"+OK\r\n", b"$9\r\nREDIS0009"), (b"+OK\r\n", b"")],
)  # fmt: skip
def test_what_is_no_whole_snapshot_is_refused(replies: tuple[bytes, ...], tmp_path: Path) -> None:
    with _answering(*replies) as url, pytest.raises(StoreUnavailable):
        snapshot(url, tmp_path / "a.rdb")


def test_the_command_says_what_it_copied(redis_url: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app,
        ["backup", str(tmp_path / "backups"), "--no-index"],
        env={**os.environ, "POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_HOME": str(tmp_path)},
    )
    assert done.exit_code == 0, done.output
    assert "attempts in the ledger" in done.stdout
    assert len(backups(tmp_path / "backups")) == 1
