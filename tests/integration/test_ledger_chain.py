"""The chain of an archive, on a real Redis: every kind of tampering is found, and where."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from redis.asyncio import Redis

from posology.budget.books.archive.chain import chained, origin, parse, records
from posology.budget.books.archive.inspection import Inspection, Inspector
from posology.budget.books.archive.moving import Archive, read
from posology.budget.books.reader import Entry, Reader
from posology.errors import BadFile
from posology.store import keys
from tests.support.traffic import Traffic, hash_of

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, kw_only=True, slots=True)
class Books:
    """A tenant whose ledger was archived into two files of the folder."""

    traffic: Traffic
    folder: Path

    async def inspect(self) -> Inspection:
        traffic = self.traffic
        return await Inspector(traffic.redis, traffic.url, traffic.tenant, self.folder)()

    async def move(self, before: datetime | None = None) -> None:
        """Archive all entries, or those before a time."""
        move = Archive(
            self.traffic.redis, self.traffic.url, tenant=self.traffic.tenant,
            folder=self.folder, step=7,
        )  # fmt: skip
        await move(before or datetime.now(UTC) + timedelta(days=1))

    @property
    def files(self) -> list[Path]:
        """In the order of the ledger."""
        return sorted(self.folder.glob("*.jsonl"))


async def spend(traffic: Traffic, attempts: int) -> None:
    for _ in range(attempts):
        await traffic.settle(await traffic.reserve(nano=7_500), "settle")
        traffic.now += 1


@pytest.fixture
async def books(redis: Redis, redis_url: str, tenant: str, tmp_path: Path) -> Books:
    traffic = Traffic(redis=redis, url=redis_url, tenant=tenant)
    await traffic.start()
    made = Books(traffic=traffic, folder=tmp_path)
    for _ in range(2):
        await spend(traffic, 10)
        await made.move()
    assert len(made.files) == 2
    return made


async def test_an_untouched_archive_is_right(books: Books) -> None:
    found = await books.inspect()
    assert found.problems == ()
    assert (found.files, found.entries, found.unchained, found.pending) == (2, 40, 0, 0)
    base = await hash_of(books.traffic.redis, f"{keys.prefix(books.traffic.tenant)}money:base")
    assert found.head == parse(base["chain"])
    assert found.head.number == 40
    assert found.head.place == base["upto"]
    # the second file goes on where the first one ended
    first, second = ([*records(path)] for path in books.files)
    assert first[0].before == origin(books.traffic.tenant).digest
    assert second[0].before == first[-1].digest
    assert [one.number for one in (*first, *second)] == [*range(1, 41)]


Tamper = Callable[[list[bytes]], list[bytes]]


def changed(line: bytes) -> bytes:
    found = json.loads(line)
    found["fields"]["job"] += "x"
    return json.dumps(found).encode() + b"\n"


#: name → change of a file's lines, file, and each expected problem: line and words
TAMPERINGS: dict[str, tuple[Tamper, int, tuple[tuple[int | None, str], ...]]] = {
    "a record is changed": (
        lambda lines: [*lines[:4], changed(lines[4]), *lines[5:]], 0,
        ((5, "record 5 was changed"),),
    ),
    "the last record of a file is changed": (
        lambda lines: [*lines[:-1], changed(lines[-1])], 0,
        ((20, "record 20 was changed: record 21"),),
    ),
    "the last record of all is changed": (
        lambda lines: [*lines[:-1], changed(lines[-1])], 1,
        ((20, "record 40 differs from the last one that Redis knows"),),
    ),
    "white space is changed": (
        lambda lines: [*lines[:4], lines[4].replace(b": ", b":  ", 1), *lines[5:]], 1,
        ((5, "record 25 was changed"),),
    ),
    "a record is dropped": (
        lambda lines: [*lines[:4], *lines[5:]], 0,
        ((5, "1 records before record 6 are missing"), (None, "39 entries")),
    ),
    "the first record is dropped": (
        lambda lines: lines[1:], 0,
        ((1, "1 records before record 2 are missing"), (None, "it begins with entry")),
    ),
    "two records change places": (
        lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]], 0,
        ((5, "1 records before record 6 are missing"), (6, "record 5 follows record 6, out of order")),
    ),
    "a record is doubled": (
        lambda lines: [*lines[:5], lines[4], *lines[5:]], 1,
        ((6, "record 25 follows record 25, out of order"), (None, "41 entries")),
    ),
    "the end is cut off": (
        lambda lines: lines[:-2], 1,
        ((None, "it ends with entry"), (None, "the last archived one, is in no file")),
    ),
    "the end is cut in a line": (
        lambda lines: [*lines[:-1], lines[-1][:30]], 1,
        ((20, "it is no archive"), (None, "record 40, the last one that Redis knows")),
    ),
    "all lines are gone": (
        lambda lines: [], 0, ((1, "20 records before record 21 are missing"),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERINGS)
async def test_tampering_is_found(books: Books, name: str) -> None:
    tamper, number, expected = TAMPERINGS[name]
    path = books.files[number]
    path.write_bytes(b"".join(tamper(path.read_bytes().splitlines(keepends=True))))
    found = (await books.inspect()).problems
    for line, words in expected:
        assert any(one.line == line and words in one.message for one in found), found
    # a line is named in the file where it stands
    assert {one.file for one in found if one.line is not None} <= {one.name for one in books.files}


async def test_a_changed_amount_is_found_by_the_sums_as_well(books: Books) -> None:
    path = books.files[0]
    path.write_bytes(path.read_bytes().replace(b'"reserved": "7500"', b'"reserved": "7501"', 1))
    found = [one.message for one in (await books.inspect()).problems]
    assert "record 1 was changed" in found[0]
    assert "the files have 1 nano-dollars reserved, Redis archived 0" in found


@pytest.mark.parametrize("number", [0, 1])
async def test_a_file_that_is_gone_is_missed(books: Books, number: int) -> None:
    books.files[number].unlink()
    found = [one.message for one in (await books.inspect()).problems]
    missing = ("20 records before record 21 are missing", "record 40, the last one")[number]
    assert any(missing in message for message in found)


async def test_an_archive_that_was_written_again_as_a_whole_is_found(books: Books) -> None:
    link = origin(books.traffic.tenant)
    for path in books.files:
        lines = list[bytes]()
        for entry in read(path):
            told = Entry(place=entry.place, fields={**entry.fields, "job": "job_other"})
            line, link = chained(told, link)
            lines.append(line + b"\n")
        path.write_bytes(b"".join(lines))
    (problem,) = (await books.inspect()).problems
    assert problem.message == "record 40 differs from the last one that Redis knows"
    assert (problem.file, problem.line) == (books.files[1].name, 20)


async def test_files_of_another_tenant_do_not_fit(books: Books) -> None:
    link = origin("other")
    path = books.files[0]
    lines = list[bytes]()
    for entry in read(path):
        line, link = chained(entry, link)
        lines.append(line + b"\n")
    path.write_bytes(b"".join(lines))
    found = [(one.line, one.message) for one in (await books.inspect()).problems]
    assert (1, "record 1 does not have the first digest of a chain") in found


async def test_records_after_the_archived_ones_must_be_the_ledgers(books: Books) -> None:
    path = books.files[1]
    *_, last = records(path)
    assert last.link is not None
    milliseconds = int(last.entry.place.partition("-")[0])
    made_up = Entry(place=f"{milliseconds + 1}-0", fields=last.entry.fields)
    line, _ = chained(made_up, last.link)
    with path.open("ab") as file:
        file.write(line + b"\n")
    found = [one.message for one in (await books.inspect()).problems]
    assert any("was never archived, and differs from the ledger" in message for message in found)


def unchain(path: Path) -> None:
    """Write a file as versions before the chain did."""
    lines = [json.dumps({"place": one.place, "fields": dict(one.fields)}) for one in read(path)]
    path.write_text("".join(f"{line}\n" for line in lines))


async def test_files_of_earlier_versions_are_read_and_counted(books: Books) -> None:
    traffic = books.traffic
    before = [entry for path in books.files for entry in read(path)]
    for path in books.files:
        unchain(path)
    base = f"{keys.prefix(traffic.tenant)}money:base"
    await traffic.redis.hdel(base, "chain")
    found = await books.inspect()
    assert (found.problems, found.unchained, found.head) == ((), 40, None)
    assert [entry for path in books.files for entry in read(path)] == before
    # the chain begins behind them
    await spend(traffic, 5)
    await books.move()
    found = await books.inspect()
    assert (found.problems, found.entries, found.unchained) == ((), 50, 40)
    assert found.head is not None
    assert found.head.number == 10
    lines = books.files[0].read_bytes().splitlines(keepends=True)
    books.files[0].write_bytes(b"".join([*lines[:3], lines[4], lines[3], *lines[6:]]))
    told = (await books.inspect()).problems
    assert any(one.line == 5 and "out of order" in one.message for one in told)
    assert any(one.message.startswith("the files have 49 entries") for one in told)


@pytest.mark.parametrize("chain", [True, False])
async def test_an_interrupted_run_is_told_and_completed(
    books: Books, redis: Redis, *, chain: bool
) -> None:
    traffic = books.traffic
    await spend(traffic, 10)
    entries = [e async for e in Reader(redis, traffic.url, traffic.tenant).entries()]
    *_, last = records(books.files[-1])
    assert last.link is not None
    link, lines = last.link, list[bytes]()
    for entry in entries:
        line, link = chained(entry, link)
        lines.append(line + b"\n")
    path = books.folder / f"{traffic.tenant}.{entries[0].place}.{entries[-1].place}.jsonl"
    path.write_bytes(b"".join(lines))
    if not chain:
        unchain(path)
    found = await books.inspect()
    assert (found.problems, found.pending, found.entries) == ((), 20, 60)
    await books.move()
    found = await books.inspect()
    assert (found.problems, found.pending, found.entries) == ((), 0, 60)
    assert found.head == (link if chain else last.link)
    await spend(traffic, 3)
    await books.move()
    found = await books.inspect()
    assert (found.problems, found.entries) == ((), 66)


async def test_a_redis_of_before_two_files_takes_them_up(books: Books, redis: Redis) -> None:
    traffic = books.traffic
    names = [f"{keys.prefix(traffic.tenant)}{name}" for name in ("ledger", "money:base")]
    await spend(traffic, 4)
    await anyio.sleep(0.003)
    seconds, micros = await redis.time()
    await anyio.sleep(0.003)
    await spend(traffic, 4)
    for name in names:
        await redis.copy(name, f"{name}:backup")
    await books.move(datetime.fromtimestamp(seconds + micros // 1000 / 1000, UTC))
    await books.move()
    kept = {path.name: path.read_bytes() for path in books.files}
    assert len(kept) == 4
    for name in names:
        await redis.rename(f"{name}:backup", name)
    assert (await books.inspect()).pending == 16
    await books.move()
    assert {path.name: path.read_bytes() for path in books.files} == kept
    found = await books.inspect()
    assert (found.problems, found.pending) == ((), 0)


async def test_a_folder_that_is_none_is_refused(books: Books) -> None:
    traffic = books.traffic
    with pytest.raises(BadFile, match="no folder"):
        await Inspector(traffic.redis, traffic.url, traffic.tenant, books.folder / "nowhere")()
