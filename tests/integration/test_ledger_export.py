"""Exports of a ledger: one row an attempt, in three formats."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow.parquet as pq
import pytest
from redis.asyncio import Redis

from posology.budget.books.archive.moving import Archive
from posology.budget.books.export import Wanted, attempts, export, schema
from posology.budget.books.rows import NAMES, AttemptRow
from posology.errors import BadFile, LedgerBusy, StoreUnavailable
from posology.store.connection import connect
from posology.types import Usage
from tests.support.traffic import BEGIN, Traffic

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "ledger.md"
ALL = Wanted()
Read = Callable[[Path], list[AttemptRow]]
_TYPES = get_type_hints(AttemptRow)


@pytest.fixture
async def traffic(redis: Redis, redis_url: str, tenant: str) -> Traffic:
    made = Traffic(redis=redis, url=redis_url, tenant=tenant, seed=12)
    await made.start()
    await made.spend(250)
    return made


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def _kind(name: str) -> type[Any]:
    kind = _TYPES[name]
    found: type[Any] = next((k for k in get_args(kind) if k is not type(None)), kind)
    return found


def _from_text(name: str, text: str | None) -> Any:
    kind = _kind(name)
    if text is None:
        return None
    if kind is bool:
        return {"true": True, "false": False}[text]
    return datetime.fromisoformat(text) if kind is datetime else kind(text)


def read_jsonl(path: Path) -> list[AttemptRow]:
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        assert tuple(found) == NAMES
        for name, value in found.items():
            if _kind(name) in (Decimal, datetime):
                assert value is None or isinstance(value, str)
                found[name] = _from_text(name, value)
        rows.append(AttemptRow(**found))
    return rows


def read_csv(path: Path) -> list[AttemptRow]:
    with path.open(encoding="utf-8", newline="") as file:
        table = csv.DictReader(file)
        assert tuple(table.fieldnames or ()) == NAMES
        rows = []
        for row in table:
            # an empty cell is what is not known; a strategy's name may be empty
            plain = {
                name: None if text == "" and name != "strategy" else re.sub("^'", "", text)
                for name, text in row.items()
            }
            rows.append(AttemptRow(**{n: _from_text(n, text) for n, text in plain.items()}))
        return rows


def read_parquet(path: Path) -> list[AttemptRow]:
    table = pq.read_table(path)
    assert table.schema == schema()
    return [AttemptRow(**row) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("suffix", "read"), [(".jsonl", read_jsonl), (".csv", read_csv), (".parquet", read_parquet)]
)
async def test_each_format_has_one_row_an_attempt(
    traffic: Traffic, tmp_path: Path, suffix: str, read: Read
) -> None:
    path = tmp_path / f"export{suffix}"
    count = await export(traffic.redis, traffic.url, path, [traffic.tenant], ALL)
    rows = read(path)
    assert names(tmp_path) == [path.name]
    assert rows == [row async for row in attempts(traffic.redis, traffic.url, traffic.tenant, ALL)]
    assert len(rows) == count == len(traffic.told)
    found = {row.attempt_id: row for row in rows}
    assert found.keys() == traffic.told.keys()
    assert {"reserve", "settle", "lose", "correct", "release"} == {row.kind for row in rows}
    for name, told in traffic.told.items():
        row, opening = found[name], told.opening
        open_ = told.kind == "reserve"
        assert (row.kind, row.job, row.day, row.tenant) == (
            told.kind, told.job, told.day, traffic.tenant
        )  # fmt: skip
        assert (row.model, row.stage, row.strategy) == (
            opening.model, opening.stage, opening.strategy
        )  # fmt: skip
        assert (row.prompt, row.prompt_digest) == ("answer", "0123456789abcdef")
        assert (row.call, row.attempt, row.prices) == (opening.call, opening.attempt, "test")
        assert row.reserved_usd == opening.reserved
        assert row.cost_usd == told.cost
        assert row.charged_usd == (None if open_ else told.charged)
        assert row.known == (None if open_ else told.cost is not None)
        assert row.outcome == told.outcome
        usage = told.usage
        if usage is None:
            assert row.input is row.output is row.reasoning is None
        else:
            assert usage == Usage(**{f.name: getattr(row, f.name) for f in fields(Usage)})


async def test_a_spreadsheet_finds_no_formula(traffic: Traffic, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    await export(traffic.redis, traffic.url, path, [traffic.tenant], ALL)
    with path.open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
    assert any(cell.startswith("'=cmd") for cell in cells)


async def test_attempts_are_chosen_by_day_and_by_job(traffic: Traffic) -> None:
    first = datetime.fromtimestamp(BEGIN / 1000, UTC).date()
    days = sorted({one.day for one in traffic.told.values()})
    assert len(days) > 2
    since, until = date.fromisoformat(days[1]), date.fromisoformat(days[-2])
    for wanted in (
        Wanted(since=since),
        Wanted(until=until),
        Wanted(since=since, until=until),
        Wanted(job=traffic.jobs[0]),
        Wanted(job=traffic.jobs[-1], since=since),
        Wanted(until=date(1999, 1, 1)),
        Wanted(since=date(1969, 1, 1), until=first),
    ):
        found = {
            row.attempt_id
            async for row in attempts(traffic.redis, traffic.url, traffic.tenant, wanted)
        }
        assert found == {
            name
            for name, one in traffic.told.items()
            if (wanted.since is None or one.day >= wanted.since.isoformat())
            and (wanted.until is None or one.day <= wanted.until.isoformat())
            and wanted.job in (None, one.job)
        }


async def test_tenants_stand_in_one_file(traffic: Traffic, tmp_path: Path) -> None:
    other = Traffic(redis=traffic.redis, url=traffic.url, tenant=f"{traffic.tenant}x", seed=8)
    await other.start()
    await other.spend(40)
    path = tmp_path / "all.parquet"
    tenants = [traffic.tenant, other.tenant, "nobody"]
    count = await export(traffic.redis, traffic.url, path, tenants, ALL)
    rows = read_parquet(path)
    assert count == len(rows) == len(traffic.told) + len(other.told)
    assert {row.attempt_id for row in rows if row.tenant == other.tenant} == other.told.keys()


async def test_what_cannot_be_written_leaves_what_was_there(
    traffic: Traffic, tmp_path: Path
) -> None:
    path = tmp_path / "export.jsonl"
    path.write_text("old")
    gone = connect("redis://127.0.0.1:1/0", tries=0)
    with pytest.raises(StoreUnavailable):
        await export(gone, "redis://127.0.0.1:1/0", path, [traffic.tenant], ALL)
    await gone.aclose()
    assert names(tmp_path) == ["export.jsonl"]
    assert path.read_text() == "old"
    (tmp_path / "folder.csv").mkdir()
    for wrong in ("export.xlsx", "nowhere/export.csv", "folder.csv"):
        with pytest.raises(BadFile):
            await export(traffic.redis, traffic.url, tmp_path / wrong, [traffic.tenant], ALL)
    await export(traffic.redis, traffic.url, path, [], ALL)
    assert path.read_text() == ""


async def test_rows_are_not_missing_because_entries_were_archived(
    traffic: Traffic, tmp_path: Path
) -> None:
    found = attempts(traffic.redis, traffic.url, traffic.tenant, ALL, size=20)
    await anext(found)
    await Archive(traffic.redis, traffic.url, tenant=traffic.tenant, folder=tmp_path)(
        datetime.now(UTC)
    )
    with pytest.raises(LedgerBusy):
        _ = [row async for row in found]
    # what is left is exported as ever
    await traffic.spend(20)
    left = [r async for r in attempts(traffic.redis, traffic.url, traffic.tenant, ALL, size=3)]
    assert len(left) == len({row.attempt_id for row in left}) > 0


async def test_an_attempt_of_a_partition_tells_which(traffic: Traffic) -> None:
    from posology.budget.books.rows import under_way

    reservation = {"nano": "5", "day": "2026-01-15", "job": "job_1", "stage": "extract",
                   "strategy": "briefcontext", "model": "openai:x"}  # fmt: skip
    entry = json.dumps({"unit": "extract:12", "started": 1.5, "call": 0})
    row = under_way("a", reservation | {"entry": entry}, "acme")
    assert (row.unit, row.partition, row.call) == ("extract:12", 12, None)
    assert replace(row, unit=None) == replace(
        under_way("a", reservation | {"entry": entry.replace("extract:12", "answer")}, "acme"),
        unit=None, partition=12,
    )  # fmt: skip


def test_the_page_names_every_column_in_its_order() -> None:
    (columns,) = re.findall(
        r"(?:^\| `\w+` \|.*\n){20,}", DOCS.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert tuple(re.findall(r"^\| `(\w+)` \|", columns, re.MULTILINE)) == NAMES
