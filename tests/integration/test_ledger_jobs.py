"""What jobs leave in the ledger, held against their own counters and exported, on a real Redis."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import anyio
import pyarrow.parquet as pq
import pytest

from posology.budget.books.archive.moving import Archive
from posology.budget.books.audit import Audit, Auditor
from posology.budget.books.export import Wanted, attempts, export
from posology.budget.books.reader import spenders
from posology.budget.books.rows import AttemptRow
from posology.budget.ledger.base import nano
from posology.store import keys
from posology.types import Outcome
from tests.integration.jobs_store.helpers import BOUND, LEASE, MODEL, Bench
from tests.support.traffic import hash_of

pytestmark = pytest.mark.anyio


async def audit(bench: Bench, *, many: int = 50_000) -> Audit:
    return await Auditor(bench.redis, bench.url, bench.tenant, many=many).verify()


async def all_ends(bench: Bench) -> tuple[str, str]:
    """A job in partitions that was answered in part, and one whose worker was lost."""
    job = await bench.extracting(2)
    first, second = [await bench.claimed(job, f"extract:{i}") for i in range(2)]
    await bench.open(first, "good")
    await bench.close(first, "good")
    await bench.open(second, "unknown", key="k2")
    await bench.close(second, "unknown", Outcome.FAILED, cost=None, key="k2")
    await bench.open(second, "over", key="k3")
    await bench.close(second, "over", cost=BOUND * 2, key="k3")
    other = await bench.running()
    await bench.open(other, "lost")
    await bench.open(other, "late", key="k2")
    bench.clock.forward(LEASE + 1)
    await bench.sweep()
    await bench.close(other, "late", cost=Decimal("0.0005"), key="k2")
    again = await bench.running()
    await bench.open(again, "under way")
    return job, other.unit.job


async def test_every_end_of_an_attempt_is_summed(bench: Bench) -> None:
    await all_ends(bench)
    found = await audit(bench)
    assert found.right
    assert (found.unknown, found.unknown_nano) == (2, 2 * nano(BOUND))
    assert (found.open, found.open_nano) == (1, nano(BOUND))
    assert [entry.attempt for entry in found.over_entries] == ["over"]
    assert bench.tenant in await spenders(bench.redis, bench.url)


async def test_an_attempt_of_a_job_tells_its_unit(bench: Bench, tmp_path: Path) -> None:
    job, other = await all_ends(bench)
    rows = {
        row.attempt_id: row
        async for row in attempts(bench.redis, bench.url, bench.tenant, Wanted())
    }
    assert rows.keys() == {"good", "unknown", "over", "lost", "late", "under way"}
    assert [(rows[a].unit, rows[a].partition, rows[a].stage) for a in ("good", "unknown")] == [
        ("extract:0", 0, "extract"), ("extract:1", 1, "extract")
    ]  # fmt: skip
    assert {rows[a].job for a in ("lost", "late")} == {other}
    assert {row.model for row in rows.values()} == {MODEL}
    assert [(rows[a].kind, rows[a].cost_usd) for a in ("good", "unknown", "lost", "late")] == [
        ("settle", Decimal("0.001")),
        ("settle", None),
        ("lose", None),
        ("correct", Decimal("0.0005")),
    ]
    assert rows["over"].cost_usd == BOUND * 2
    assert rows["lost"].input is None
    assert rows["late"].input == 10
    assert rows["under way"].kind == "reserve"
    path = tmp_path / "job.parquet"
    assert await export(bench.redis, bench.url, path, [bench.tenant], Wanted(job=job)) == 3
    found = [AttemptRow(**row) for row in pq.read_table(path).to_pylist()]
    assert found == [rows["good"], rows["unknown"], rows["over"]]


async def test_archived_entries_count_in_their_jobs(bench: Bench, tmp_path: Path) -> None:
    job, other = await all_ends(bench)
    await anyio.sleep(0.01)
    before = [await hash_of(bench.redis, keys.budget(bench.tenant, one)) for one in (job, other)]
    (done,) = await Archive(bench.redis, bench.url, tenant=bench.tenant, folder=tmp_path)(
        datetime.now(UTC)
    )
    assert done.removed == 12
    after = [await hash_of(bench.redis, keys.budget(bench.tenant, one)) for one in (job, other)]
    for old, new in zip(before, after, strict=True):
        assert new["base_spent_nano"] == new["spent_nano"] == old["spent_nano"]
        assert old.items() <= new.items()
    # what is published of a job does not change with its base
    out = await bench.store.get(job, tenant=bench.tenant)
    assert out.charged_usd == Decimal("0.001") + BOUND + 2 * BOUND
    assert (await audit(bench)).right
    await bench.redis.hincrby(keys.budget(bench.tenant, job), "spent_nano", 3)
    wrong = (await audit(bench)).differences
    assert [(one.key, one.field, one.counted, one.summed) for one in wrong] == [
        (f"job:{job}", "spent_nano", 7_000_003, 7_000_000)
    ]
    rebuilt = await Auditor(bench.redis, bench.url, bench.tenant).rebuild()
    assert rebuilt.audit.right


async def test_jobs_that_are_forgotten_need_no_memory(bench: Bench) -> None:
    jobs = []
    for number in range(40):
        held = await bench.running()
        await bench.open(held, f"a{number}")
        await bench.close(held, f"a{number}")
        jobs.append(held.unit.job)
    prefix = keys.prefix(bench.tenant)
    gone = jobs[:30]
    await bench.redis.delete(*(f"{prefix}job:{job}" for job in gone))
    await bench.redis.zrem(f"{prefix}jobs", *gone)
    await bench.redis.hincrby(f"{prefix}job:{jobs[-1]}", "reserved_nano", 3)
    found = await audit(bench, many=5)
    assert [one.key for one in found.differences] == [f"job:{jobs[-1]}"]
    # of those that are gone, none was asked for again
    assert (await audit(bench)).counters == found.counters
