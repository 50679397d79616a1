"""A ledger on an append-only file that ended within a script: the script happened as a whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis.asyncio import Redis

from posology.budget.books.audit import Auditor
from posology.budget.ledger.redis import RedisLedger
from posology.store.connection import connect
from tests.integration.ledger.helpers import Server, asked, ended, lasting_redis

pytestmark = pytest.mark.anyio


def last_file(folder: Path) -> Path:
    # since Redis 7 a folder of files
    return max((folder / "appendonlydir").glob("*.incr.aof"), default=folder / "appendonly.aof")


async def right(redis: Redis, server: Server, tenant: str) -> None:
    audit = await Auditor(redis, server.url, tenant).verify()
    assert audit.right, audit


async def written(folder: Path, tenant: str, attempt: str, *, settled: bool) -> None:
    """Spend on a Redis that starts and ends for it."""
    with lasting_redis(folder, "always") as server:
        async with connect(server.url) as redis:
            await right(redis, server, tenant)
            ledger = RedisLedger(redis, server.url, tenant=tenant, lease=600.0)
            await ledger.reserve(asked(attempt))
            if settled:
                await ledger.settle(ended(attempt, "0.25"))
            await right(redis, server, tenant)


@pytest.mark.parametrize("lost", [1, 2, 3, 8, 14, 15, 40, 100, 300, 600])
async def test_a_torn_script_is_never_run_in_part(tmp_path: Path, tenant: str, lost: int) -> None:
    await written(tmp_path, tenant, "before", settled=True)
    size = last_file(tmp_path).stat().st_size
    await written(tmp_path, tenant, "torn", settled=False)
    file = last_file(tmp_path)
    whole = file.read_bytes()
    assert len(whole) - size > lost, "the script must begin before the cut"
    file.write_bytes(whole[:-lost])
    await written(tmp_path, tenant, "after", settled=True)
    # a Redis that left half of the transaction would run it now
    await written(tmp_path, tenant, "later", settled=True)


async def test_what_was_torn_long_ago_takes_nothing_else_away(tmp_path: Path, tenant: str) -> None:
    await written(tmp_path, tenant, "before", settled=True)
    file = last_file(tmp_path)
    # as a Redis leaves it that cuts off the last command alone
    half = b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n"
    file.write_bytes(file.read_bytes() + half)
    whole = file.stat().st_size
    with file.open("ab") as more:
        more.write(
            b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nc\r\n$1\r\nd\r\n*1\r\n$4\r\nEXEC\r\n"
        )
    with lasting_redis(tmp_path, "always") as server:
        async with connect(server.url) as redis:
            assert await redis.get("c") == "d"
    assert file.stat().st_size >= whole
