"""Batches on a real Redis: what is accepted, what a repetition does, and what is kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal
from typing import Any

import anyio
import pytest

from orchestrator.jobs import keys
from orchestrator.jobs.batches import Batches
from orchestrator.jobs.rows import MAX_ROW
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.settings import Settings
from posology.errors import BatchNotFound, IdempotencyConflict, InvalidQuery, UnknownModel
from posology.published.jobs import BatchRow
from posology.types import JobState

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
SETTINGS = Settings()
Finish = Callable[..., Awaitable[str | None]]


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[JobStore]:
    async with open_store(redis_url) as store:
        yield store


@pytest.fixture
def batches(store: JobStore) -> Batches:
    return Batches(store, SETTINGS)


def lines(count: int) -> list[str]:
    return [json.dumps({"id": f"q{i}", "question": f"Is it {i}?"}) for i in range(count)]


def kind(row: BatchRow) -> str | None:
    return row.error.type if row.error else None


BAD: list[tuple[str | bytes, str]] = [
    ("{not json", "row"),
    ("[1]", "row"),
    ('"text"', "row"),
    ('{"question": NaN}', "row"),
    ("[" * 50_000, "row"),
    (b'{"question": "\xff"}', "row"),
    ('{"question": "' + "x" * MAX_ROW + '"}', "row"),
    ('{"question": ""}', "text"),
    ('{"question": "' + "x" * 5_000 + '"}', "text"),
    ('{"question": "\\ud800"}', "text"),
    ('{"question": "Why?", "k": 0}', "k"),
    ('{"question": "Why?", "\\ud800": 1}', "request"),
    ('{"question": "Why?", "strategy": "magic"}', "strategy"),
    ('{"question": "Why?", "form": "choice"}', "options"),
    ('{"question": "Why?", "deadline_seconds": 1e999}', "deadline_seconds"),
    ('{"question": "Why?", "id": 1e999}', "id"),
    ('{"question": "Why?", "id": [1]}', "id"),
    ('{"question": "Why?", "id": "\\udc00"}', "id"),
    ("{}", "question"),
]


async def test_a_bad_row_is_rejected_and_its_neighbours_go_on(
    batches: Batches, tenant: str
) -> None:
    good = '{"question": "Why?", "id": 7}'
    rows: list[str | bytes] = [good, *(raw for raw, _ in BAD), "", "  \r", good]
    out = await batches.submit(rows, tenant=tenant)
    assert (out.total, out.rejected, out.over) == (len(BAD) + 2, len(BAD), False)
    assert out.states == {JobState.QUEUED: 2}
    found = await batches.rows(out.id, tenant=tenant)
    assert [row.row for row in found] == list(range(len(BAD) + 2))
    assert [row.id for row in (found[0], found[-1])] == [7, 7]
    for number, ((_, field), row) in enumerate(zip(BAD, found[1:-1], strict=True), 1):
        assert row.error is not None
        assert (row.job, row.state, row.result) == (None, None, None)
        assert (row.error.type, row.error.exit_code) == ("InvalidQuery", 3)
        assert (row.error.details["field"], row.error.details["line"]) == (field, number + 1)
        BatchRow.model_validate_json(row.model_dump_json())


async def test_a_rows_own_value_wins_over_the_default(
    batches: Batches, store: JobStore, tenant: str
) -> None:
    rows = ['{"question": "Why?"}', '{"question": "Why?", "k": 3, "model": "offline:extractive"}']
    defaults = {"k": 20, "model": "openai:x", "strategy": "direct"}
    out = await batches.submit(rows, tenant=tenant, defaults=defaults)
    first, second = [
        (await store.get(str(row.job), tenant=tenant)).request
        for row in await batches.rows(out.id, tenant=tenant)
    ]
    assert (first["k"], first["model"], first["strategy"]) == (20, "openai:x", "direct")
    assert (second["k"], second["model"]) == (3, "offline:extractive")


@pytest.mark.parametrize(
    ("defaults", "error"),
    [({"k": 0}, InvalidQuery), ({"magic": 1}, InvalidQuery), ({"model": "x"}, UnknownModel)],
)
async def test_wrong_defaults_are_no_rows_fault(
    batches: Batches, tenant: str, defaults: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await batches.submit(lines(2), tenant=tenant, defaults=defaults)


async def test_the_same_key_is_the_same_batch_and_other_rows_a_conflict(
    batches: Batches, store: JobStore, tenant: str
) -> None:
    first = await batches.submit(lines(5), tenant=tenant, key="mine")
    again = await batches.submit([*lines(5), ""], tenant=tenant, key="mine")
    assert again == first
    assert len((await store.page(tenant=tenant)).jobs) == 5
    for other in ([*lines(6)], lines(5)[::-1]):
        with pytest.raises(IdempotencyConflict):
            await batches.submit(other, tenant=tenant, key="mine")
    fresh = await batches.submit(lines(5), tenant=tenant)
    assert fresh.id != first.id
    elsewhere = await batches.submit(lines(5), tenant=f"{tenant}x", key="mine")
    assert elsewhere.id != first.id


async def test_a_submission_that_broke_off_is_completed_and_each_job_made_once(
    redis_url: str, tenant: str, store: JobStore
) -> None:
    class Crash(Exception):
        pass

    class Fragile(JobStore):
        left = 40

        async def submit(self, *args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise Crash
            return await super().submit(*args, **kwargs)

    fragile = Fragile(store.redis, redis_url)
    with pytest.raises(ExceptionGroup):
        await Batches(fragile, SETTINGS).submit(lines(100), tenant=tenant, key="k")
    made = len((await store.page(tenant=tenant, limit=500)).jobs)
    assert 0 < made < 100
    out = await Batches(store, SETTINGS).submit(lines(100), tenant=tenant, key="k")
    assert (out.total, out.states) == (100, {JobState.QUEUED: 100})
    jobs = (await store.page(tenant=tenant, limit=500)).jobs
    assert sorted(job.row for job in jobs if job.row is not None) == list(range(100))


async def test_two_submitters_at_once_make_one_batch(
    batches: Batches, store: JobStore, tenant: str
) -> None:
    found = []

    async def submit() -> None:
        found.append((await batches.submit(lines(50), tenant=tenant, key="k")).id)

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(submit)
    assert len(set(found)) == 1
    assert (await batches.get(found[0], tenant=tenant)).states == {JobState.QUEUED: 50}
    assert len((await store.page(tenant=tenant, limit=500)).jobs) == 50


async def test_rows_tell_results_errors_and_what_was_spent(
    batches: Batches, store: JobStore, tenant: str, finish: Finish
) -> None:
    out = await batches.submit([*lines(4), "{"], tenant=tenant)
    by_row = {row.job: row.row for row in await batches.rows(out.id, tenant=tenant)}
    done = await finish(store, tenant)
    failed = await finish(store, tenant, state="failed", nano=None)
    cancelled = next(job for job in by_row if job not in (None, done, failed))
    await store.cancel(str(cancelled), tenant=tenant)
    rows = {row.job: row for row in await batches.rows(out.id, tenant=tenant)}
    answered = rows[done].result
    assert answered is not None
    assert answered.spending.cost_usd is not None
    assert kind(rows[done]) is None
    assert kind(rows[failed]) == "ProviderUnreachable"
    assert kind(rows[cancelled]) == "JobCancelled"
    now = await batches.get(out.id, tenant=tenant)
    assert (now.known_cost_usd, now.unknown_costs, now.over) == (Decimal("1e-6"), 1, False)
    await finish(store, tenant)
    now = await batches.get(out.id, tenant=tenant)
    assert (now.over, now.rejected, sum(now.states.values())) == (True, 1, 4)
    assert all(row.result or row.error for row in await batches.rows(out.id, tenant=tenant))


async def test_rows_come_in_pages(batches: Batches, tenant: str) -> None:
    out = await batches.submit(lines(25), tenant=tenant)
    seen: list[int] = []
    while page := await batches.rows(
        out.id, tenant=tenant, after=seen[-1] if seen else -1, limit=10
    ):
        seen += [row.row for row in page]
    assert seen == list(range(25))
    with pytest.raises(InvalidQuery):
        await batches.rows(out.id, tenant=tenant, limit=0)


async def test_an_empty_batch_is_over(batches: Batches, tenant: str) -> None:
    out = await batches.submit([b"", b"\n"], tenant=tenant)
    assert (out.total, out.over) == (0, True)


@pytest.mark.parametrize("batch", ["batch_" + "0" * 28, "x", "x:jobs", "*", ""])
async def test_an_unknown_batch_is_a_typed_error(batches: Batches, tenant: str, batch: str) -> None:
    for looked in (batches.get(batch, tenant=tenant), batches.rows(batch, tenant=tenant)):
        with pytest.raises(BatchNotFound) as caught:
            await looked
        assert caught.value.batch == batch


async def test_another_tenants_batch_is_none(batches: Batches, tenant: str) -> None:
    out = await batches.submit(lines(1), tenant=tenant)
    with pytest.raises(BatchNotFound):
        await batches.get(out.id, tenant=f"{tenant}x")


async def test_rows_may_be_streamed(batches: Batches, tenant: str) -> None:
    async def stream() -> AsyncIterator[bytes]:
        for line in lines(3):
            yield line.encode()

    assert (await batches.submit(stream(), tenant=tenant)).total == 3


async def test_a_batch_is_kept_as_long_as_its_jobs_and_no_longer(
    redis_url: str, tenant: str, store: JobStore, finish: Finish
) -> None:
    now = [1_000_000]
    later = JobStore(store.redis, redis_url, clock=lambda: now[0], retention=10)
    day = 24 * 3_600_000
    short = Settings.model_validate({"POSOLOGY_RETENTION_DAYS": 10 / 86_400})
    batches = Batches(later, short)
    out = await batches.submit(lines(2), tenant=tenant)
    now[0] += 3 * day
    assert await batches.forget(tenant=tenant) == 0
    assert await finish(later, tenant, state="failed")
    assert await finish(later, tenant, state="failed")
    now[0] += 11_000
    await later.run("sweep", keys.prefix(tenant), 1, "{}", "{}", 0, 0)
    row, _ = await batches.rows(out.id, tenant=tenant)
    assert kind(row) == "JobNotFound"
    now[0] += day
    assert await batches.forget(tenant=tenant) == 1
    left = [name async for name in store.redis.scan_iter(f"{keys.prefix(tenant)}batch*")]
    assert left == []
