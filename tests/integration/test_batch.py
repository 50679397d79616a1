"""Batches on a real Redis: what is accepted, what a repetition does, and what is kept."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import anyio
import pytest

from orchestrator.jobs.batches import Batches
from orchestrator.jobs.rows import MAX_ROW, Row
from orchestrator.jobs.store import JobStore
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from posology.errors import BatchNotFound, IdempotencyConflict, InvalidQuery, UnknownModel
from posology.published.jobs import BatchRow
from posology.store import keys
from posology.types import JobState
from tests.integration.conftest import Finish
from workers.engine.claims import WorkStore

pytestmark = pytest.mark.anyio
SETTINGS = Settings()


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
    ('{"question": ""}', "question"),
    ('{"question": "' + "x" * 5_000 + '"}', "question"),
    ('{"question": "\\ud800"}', "question"),
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
    with pytest.raises(Crash):
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
    out = await batches.submit(Streamed(3), tenant=tenant)
    assert (out.total, out.states) == (3, {JobState.QUEUED: 3})


async def test_what_can_be_read_once_is_no_batch(batches: Batches, tenant: str) -> None:
    with pytest.raises(TypeError):
        await batches.submit(aiter(Streamed(3)), tenant=tenant)


async def test_the_rows_of_a_batch_are_never_held_together(
    redis_url: str, tenant: str, store: JobStore
) -> None:
    class Many(Streamed):
        def seen(self, number: int) -> None:
            if number == self.count - 1:
                # some objects of libraries warn when they are asked for their class
                held.append(sum(type(one) is Row for one in gc.get_objects()))

    class Counting(JobStore):
        made = 0

        async def submit(self, *args: Any, **kwargs: Any) -> Any:
            self.made += 1
            return None

    held: list[int] = []
    counting = Counting(store.redis, redis_url)
    await Batches(counting, SETTINGS).submit(Many(2_100), tenant=tenant)
    assert counting.made == 2_100
    # it is read twice
    assert len(held) == 2
    assert max(held) <= 600


class Streamed:
    """Lines that come one by one, as often as they are asked for."""

    def __init__(self, count: int) -> None:
        self.count = count

    def seen(self, number: int) -> None:
        """See the number of a line before it is handed out."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for number, line in enumerate(lines(self.count)):
            self.seen(number)
            yield line.encode()


@dataclass(kw_only=True, slots=True)
class Later:
    """Batches of a store with a clock of its own, and the sweep that workers do."""

    redis_url: str
    store: JobStore
    tenant: str
    now: int = 1_000_000

    @property
    def jobs(self) -> JobStore:
        return JobStore(
            self.store.redis, self.redis_url, clock=lambda: self.now, retention=RETENTION
        )

    @property
    def batches(self) -> Batches:
        days = RETENTION / 86_400
        return Batches(self.jobs, Settings.model_validate({"POSOLOGY_RETENTION_DAYS": days}))

    async def sweep(self, *, after: float) -> None:
        self.now += round(after * 1000)
        await WorkStore(self.jobs, worker="w").sweep(self.tenant, jobs_before=0, calls_before=0)

    async def left(self) -> list[str]:
        pattern = f"{keys.prefix(self.tenant)}batch*"
        return [name async for name in self.store.redis.scan_iter(pattern)]


#: seconds, and more seconds than a submission may take
RETENTION, HOUR = 10.0, 3_601.0


@pytest.fixture
def later(redis_url: str, store: JobStore, tenant: str) -> Later:
    return Later(redis_url=redis_url, store=store, tenant=tenant)


async def test_a_batch_is_kept_as_long_as_its_jobs_and_no_longer(
    later: Later, tenant: str, finish: Finish
) -> None:
    out = await later.batches.submit([*lines(2), "{"], tenant=tenant)
    await later.sweep(after=HOUR)
    assert await finish(later.jobs, tenant, state="failed")
    await later.sweep(after=RETENTION)
    assert await finish(later.jobs, tenant)
    await later.sweep(after=RETENTION / 2)
    rows = await later.batches.rows(out.id, tenant=tenant)
    assert [kind(row) for row in rows] == ["JobNotFound", None, "InvalidQuery"]
    await later.sweep(after=RETENTION / 2)
    assert await later.left() == []
    again = await later.batches.submit(lines(2), tenant=tenant)
    assert await later.left()
    assert again.states == {JobState.QUEUED: 2}


async def test_a_batch_is_not_forgotten_while_it_is_submitted(
    later: Later, tenant: str, finish: Finish
) -> None:
    """Its first jobs may be over, and forgotten, before the last one is made."""
    await later.batches.submit(lines(1), tenant=tenant, key="k")
    assert await finish(later.jobs, tenant)
    await later.sweep(after=RETENTION)
    assert await later.left()
    # whoever submits it again may need as long once more
    later.now += 3_500_000
    again = await later.batches.submit(lines(1), tenant=tenant, key="k")
    await later.sweep(after=RETENTION * 20)
    assert (await later.batches.get(again.id, tenant=tenant)).total == 1
    await later.sweep(after=HOUR)
    assert await later.left() == []


async def test_a_batch_without_jobs_is_kept_for_a_time(later: Later, tenant: str) -> None:
    out = await later.batches.submit(["{", ""], tenant=tenant)
    await later.sweep(after=RETENTION)
    assert kind((await later.batches.rows(out.id, tenant=tenant))[0]) == "InvalidQuery"
    await later.sweep(after=HOUR)
    assert await later.left() == []


async def test_a_row_of_a_batch_that_is_forgotten_is_no_job(
    later: Later, store: JobStore, tenant: str
) -> None:
    batch = "batch_" + "0" * 28
    request = JobRequest(question="Why?").settled(SETTINGS)
    with pytest.raises(BatchNotFound):
        await store.submit(request, tenant=tenant, key="k", batch=batch, row=0)
    assert (await store.page(tenant=tenant)).jobs == ()
    assert await later.left() == []


async def test_a_large_batch_is_forgotten_without_a_pause(later: Later, tenant: str) -> None:
    out = await later.batches.submit(["{"], tenant=tenant)
    name = f"{keys.prefix(tenant)}batch:{out.id}"
    many: dict[Any, Any] = {str(i): f"job_{i}" for i in range(100_000)}
    await later.store.redis.hset(f"{name}:jobs", mapping=many)
    await later.store.redis.config_resetstat()
    await later.sweep(after=HOUR)
    assert await later.left() == []
    usage = (await later.store.redis.info("commandstats"))["cmdstat_evalsha"]
    # reading 100,000 rows took 2 s
    assert usage["usec"] / usage["calls"] < 500_000
