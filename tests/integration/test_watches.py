"""Watches on a real Redis and a real index, with a clock that the tests move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
import pytest

from orchestrator.ingest.live.request import LiveRequest
from orchestrator.ingest.uploads.fetches import Fetches
from orchestrator.jobs.store import JobStore
from orchestrator.service import Service
from orchestrator.settings import Settings
from orchestrator.watches.store import LOOK, MAX_CHANGES, MAX_WATCHES, WatchStore
from orchestrator.watches.watcher import Watcher
from orchestrator.webhooks.outbox import Outbox
from orchestrator.webhooks.store import WebhookStore
from posology.errors import InvalidQuery, StoreUnavailable, WatchEnded, WatchNotFound
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.published.answers import Evidence, Source, Status
from posology.published.watches.forms import WatchOutput
from posology.store import keys
from posology.types import Passage, WatchState
from tests.integration.jobs_store.helpers import DIRECT, ERROR, Bench, request
from tests.integration.test_affected import EMBEDDER, put
from tests.support.answers import an_answer
from tests.support.indices import groups, index_of
from workers.process import Process

pytestmark = pytest.mark.anyio
WEEK = 7 * 86_400
ASPIRIN = Passage(
    id="pmid:1", pmid="1", title="Aspirin", text="Aspirin lowered the risk of stroke."
)
OTHER = Passage(id="pmid:2", pmid="2", title="Rest", text="Stroke units lowered mortality.")
FAR = Passage(id="pmid:3", pmid="3", title="Zinc", text="Zinc shortened colds.")
NEW = Passage(
    id="pmid:4",
    pmid="4",
    title="News",
    text="Aspirin did not lower the risk of stroke, aspirin harmed.",
)
QUESTION = "Does aspirin lower the risk of stroke?"


@dataclass(kw_only=True)
class Ward:
    """A tenant's watches, with an index that the tests change."""

    bench: Bench
    index: Index
    #: raised instead of opening the index; ``None``: it opens
    broken: Exception | None = None
    embedder: Any = EMBEDDER
    #: of live watches
    fetches: Fetches | None = None
    opened: list[Index] = field(default_factory=list)

    @property
    def watches(self) -> WatchStore:
        return WatchStore(self.bench.store)

    async def _service(self, _: str | None) -> Service:
        if self.broken is not None:
            raise self.broken
        index = Index.open(self.index.uri)
        self.opened.append(index)
        parts: Any = dict.fromkeys(("pipeline", "compressors", "estimator", "decider"))
        return Service(
            settings=Settings(), index=index, retriever=Retriever(index, self.embedder), **parts
        )

    def watcher(self, store: JobStore | None = None) -> Watcher:
        return Watcher(store or self.bench.store, self._service, self.fetches)

    async def create(self, *, live: LiveRequest | None = None, **fields: Any) -> str:
        asked = request(QUESTION, mode="bm25", k=2, **fields)
        made, _ = await self.watches.create(asked, WEEK, tenant=self.bench.tenant, live=live)
        return made.id

    async def get(self, watch: str) -> WatchOutput:
        return await self.watches.get(watch, tenant=self.bench.tenant)

    async def turn(self, watch: str, state: WatchState) -> WatchOutput:
        return await self.watches.turn(watch, state, tenant=self.bench.tenant)

    async def sweep(self, seconds: float = 0) -> None:
        self.bench.clock.forward(seconds)
        await self.watcher().sweep()

    async def jobs(self) -> list[str]:
        page = await self.bench.store.page(tenant=self.bench.tenant)
        return [job.id for job in page.jobs]

    async def answer(self, *cited: Passage, sweep: bool = True, **fields: Any) -> str:
        """Answer the job that waits, and have the watch see it."""
        unit = await self.bench.next()
        held = await self.bench.claimed(unit.job)
        await self.bench.worker().decide(held, DIRECT, calls=1)
        evidence = tuple(
            Evidence(
                passage=Source.of(one), start=0, end=len(one.text), quote=one.text, context_start=0, context=one.text
            )
            for one in cited
        )  # fmt: skip
        given = {
            "status": Status.ANSWERED,
            "evidence": evidence,
            "index": Index.open(self.index.uri).version,
        }
        await self.bench.worker().succeed(held, an_answer(**given | fields))
        if sweep:
            await self.sweep(LOOK)
        return unit.job

    async def answered(self, **fields: Any) -> str:
        """A watch with a first answer that cites :data:`ASPIRIN`."""
        watch = await self.create(**fields)
        await self.sweep()
        await self.answer(ASPIRIN, choice="yes")
        return watch


@pytest.fixture
def ward(bench: Bench, tmp_path: Path) -> Ward:
    index = Index.create(tmp_path / "index", EMBEDDER.name, EMBEDDER.dim)
    put(index, ASPIRIN, OTHER, FAR)
    return Ward(bench=bench, index=index)


async def test_the_first_check_asks_and_keeps_the_answer(ward: Ward) -> None:
    watch = await ward.create(max_cost_usd=Decimal("0.05"))
    made = await ward.get(watch)
    assert (made.state, made.asked, made.answer, made.job) == (WatchState.ACTIVE, 0, None, None)
    assert made.next == made.created
    await ward.sweep()
    asked = await ward.get(watch)
    (job,) = await ward.jobs()
    assert asked.job == job
    assert (await ward.bench.get(job)).cap_usd == Decimal("0.05")
    await ward.sweep(LOOK)
    assert (await ward.get(watch)).job == job, "it is under way"
    assert not ward.opened, "the index is not needed yet"
    await ward.answer(ASPIRIN, choice="yes")
    out = await ward.get(watch)
    assert out.answer is not None
    assert (out.answer.job, out.answer.choice, out.answer.status) == (job, "yes", Status.ANSWERED)
    assert [one.passage.id for one in out.answer.evidence] == ["pmid:1"]
    assert (out.job, out.asked, out.changes, out.changed, out.error) == (None, 1, (), None, None)
    assert out.next is not None
    assert (out.next - out.created).total_seconds() == WEEK
    (listed,) = await ward.watches.all(tenant=ward.bench.tenant)
    assert listed.model_dump() == {
        n: v for n, v in out.model_dump().items() if n in listed.model_dump()
    }


@pytest.mark.parametrize(
    ("written", "asked"),
    [((), False), ((replace(FAR, text="Zinc helped."),), False), ((NEW,), True),
     ((replace(OTHER, text="Stroke units lowered the risk."),), True)],
)  # fmt: skip
async def test_a_question_is_asked_again_if_a_first_passage_is_new_or_changed(
    ward: Ward, written: Sequence[Passage], asked: bool
) -> None:
    watch = await ward.answered()
    if written:
        put(ward.index, *written)
    await ward.sweep(WEEK)
    out = await ward.get(watch)
    assert (len(await ward.jobs()), out.job is not None) == (2 if asked else 1, asked)
    assert out.checked is not None
    assert out.checked.timestamp() * 1000 == ward.bench.clock.now
    if not asked:
        await ward.sweep(LOOK)
        assert len(await ward.jobs()) == 1


@pytest.mark.parametrize("change", ["retracted", "removed"])
async def test_a_retraction_of_a_cited_passage_asks_and_is_told(ward: Ward, change: str) -> None:
    watch = await ward.create(retracted=True)
    await ward.sweep()
    # cited, but not among the first passages
    await ward.answer(ASPIRIN, FAR, choice="yes")
    if change == "retracted":
        put(ward.index, replace(FAR, retracted=True))
    else:
        ward.index.delete([FAR.id])
    await ward.sweep(WEEK)
    await ward.answer(ASPIRIN, choice="yes")
    (found,) = (await ward.get(watch)).changes
    assert [(one.passage, one.kind) for one in found.evidence] == [(FAR.id, change)]
    assert [one.id for one in found.sources_gone] == [FAR.id]
    assert (found.choice_before, found.choice) == ("yes", "yes")


async def test_a_changed_verdict_is_recorded_and_sent_once(ward: Ward, redis_url: str) -> None:
    tenant = ward.bench.tenant
    await WebhookStore(ward.bench.store).create("https://example.org/hook", tenant=tenant)
    watch = await ward.answered()
    put(ward.index, NEW)
    await ward.sweep(WEEK)
    job = await ward.answer(NEW, choice="no")
    await ward.sweep(LOOK)
    out = await ward.get(watch)
    (change,) = out.changes
    assert (change.job, change.choice_before, change.choice) == (job, "yes", "no")
    assert [one.id for one in change.sources_new] == [NEW.id]
    assert out.changed is not None
    outbox = Outbox(ward.bench.store)
    (place,) = await outbox.plan(tenant, held=60)
    sent = await outbox.take(place, most=10, seconds=60, patience=600)
    (told,) = [one.data for one in sent if one.type == "watch.changed"]
    assert (told["watch"], told["job"], told["verdict_changed"], told["sources_new"]) == (
        watch,
        job,
        True,
        1,
    )
    # the same answer again is no change
    put(ward.index, replace(NEW, text=f"{NEW.text} Indeed."))
    await ward.sweep(WEEK)
    await ward.answer(NEW, choice="no", sweep=False)
    await ward.sweep(LOOK)
    assert (await ward.get(watch)).asked == 3
    assert len((await ward.get(watch)).changes) == 1


async def test_the_last_changes_are_kept(ward: Ward) -> None:
    watch = await ward.answered()
    for turn in range(MAX_CHANGES + 1):
        put(ward.index, replace(NEW, text=f"{NEW.text} Again {turn}."))
        await ward.sweep(WEEK)
        await ward.answer(NEW, choice=str(turn))
    out = await ward.get(watch)
    assert [one.choice for one in out.changes] == [str(n) for n in range(MAX_CHANGES, 0, -1)]


async def test_a_failed_job_is_told_and_asked_again_at_the_next_check(ward: Ward) -> None:
    watch = await ward.create()
    await ward.sweep()
    unit = await ward.bench.next()
    await ward.bench.worker().fail(await ward.bench.claimed(unit.job), ERROR)
    for _ in range(3):
        await ward.sweep(LOOK)
    out = await ward.get(watch)
    assert (out.error, out.job, out.asked) == ("ProviderUnreachable: no way", None, 1)
    assert await ward.jobs() == [unit.job], "not before its time"
    await ward.sweep(WEEK)
    await ward.answer(ASPIRIN)
    out = await ward.get(watch)
    assert (out.error, out.asked, len(await ward.jobs())) == (None, 2, 2)


async def test_a_failure_after_an_answer_keeps_it_and_tries_again(ward: Ward) -> None:
    watch = await ward.answered()
    put(ward.index, NEW)
    await ward.sweep(WEEK)
    (job, _) = await ward.jobs()
    await ward.bench.cancel(job)
    await ward.sweep(LOOK)
    out = await ward.get(watch)
    assert out.error == f"JobCancelled: job {job} was cancelled"
    assert out.answer is not None
    await ward.sweep(WEEK)
    await ward.answer(NEW, choice="no")
    assert [one.choice for one in (await ward.get(watch)).changes] == ["no"]


async def test_a_budget_that_refuses_is_told(ward: Ward) -> None:
    await ward.bench.limit(models='["openai:other"]')
    watch = await ward.create()
    await ward.sweep()
    await ward.sweep(LOOK)
    out = await ward.get(watch)
    assert out.error is not None
    assert (out.error.split(":")[0], out.asked, await ward.jobs()) == ("ModelNotAllowed", 1, [])


async def test_an_answer_that_cannot_be_compared_yet_is_not_lost(ward: Ward) -> None:
    watch = await ward.create()
    await ward.sweep()
    ward.broken = InvalidQuery("no index", field="index")
    job = await ward.answer(ASPIRIN)
    assert (await ward.get(watch)).error == "InvalidQuery: no index"
    ward.broken = None
    await ward.sweep(3_600)
    out = await ward.get(watch)
    assert out.answer is not None
    assert (out.answer.job, out.error, await ward.jobs()) == (job, None, [job])


class Cut(WatchStore):
    """Dies before it records a step."""

    async def step(self, *given: Any, **fields: Any) -> bool:
        raise StoreUnavailable("killed", address="redis")


async def test_a_step_that_is_repeated_after_a_crash_makes_one_job_and_one_change(
    ward: Ward,
) -> None:
    watch = await ward.create()

    async def killed() -> None:
        watcher = ward.watcher()
        watcher._watches = Cut(ward.bench.store)
        with pytest.raises(StoreUnavailable):
            await watcher.sweep()

    await killed()
    (job,) = await ward.jobs()
    assert (await ward.get(watch)).job is None
    await ward.sweep(LOOK - 1)
    assert (await ward.get(watch)).job is None, "another may be at it still"
    await ward.sweep(1)
    assert ((await ward.get(watch)).job, await ward.jobs()) == (job, [job])
    await ward.answer(ASPIRIN, choice="yes", sweep=False)
    ward.bench.clock.forward(LOOK)
    await killed()
    await ward.sweep(LOOK)
    put(ward.index, NEW)
    await ward.sweep(WEEK)
    await ward.answer(NEW, choice="no", sweep=False)
    ward.bench.clock.forward(LOOK)
    await killed()
    await ward.sweep(LOOK)
    out = await ward.get(watch)
    assert (out.asked, len(out.changes), len(await ward.jobs())) == (2, 1, 2)


async def test_many_sweeps_at_once_make_one_job(ward: Ward) -> None:
    watches = [await ward.create(max_tokens=100 + n) for n in range(4)]

    async def race() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(ward.watcher().sweep)

    await race()
    assert len(await ward.jobs()) == 4
    for _ in watches:
        await ward.answer(ASPIRIN, sweep=False)
    ward.bench.clock.forward(LOOK)
    await race()
    assert [(await ward.get(one)).asked for one in watches] == [1] * 4


async def test_a_step_of_one_that_was_overtaken_is_refused(ward: Ward) -> None:
    watch = await ward.create()
    old = await ward.watches.take(watch, tenant=ward.bench.tenant)
    ward.bench.clock.forward(LOOK)
    new = await ward.watches.take(watch, tenant=ward.bench.tenant)
    assert old is not None
    assert new is not None
    assert await ward.watches.take(watch, tenant=ward.bench.tenant) is None
    assert not await ward.watches.step(old, {"error": "old"}, look=0)
    assert await ward.watches.step(new, {"error": "new"}, look=new.next)
    assert (await ward.get(watch)).error == "new"


async def test_pause_resume_and_end(ward: Ward) -> None:
    watch = await ward.create()
    await ward.sweep()
    assert (await ward.turn(watch, WatchState.PAUSED)).state is WatchState.PAUSED
    await ward.answer(ASPIRIN)
    assert (await ward.get(watch)).answer is None
    await ward.turn(watch, WatchState.ACTIVE)
    await ward.sweep()
    assert (await ward.get(watch)).answer is not None, "the job went on"
    await ward.turn(watch, WatchState.PAUSED)
    put(ward.index, NEW)
    await ward.sweep(3 * WEEK)
    assert len(await ward.jobs()) == 1
    await ward.turn(watch, WatchState.ACTIVE)
    await ward.sweep()
    assert len(await ward.jobs()) == 2, "a missed check is made at once"
    ended = await ward.turn(watch, WatchState.ENDED)
    assert (ended.state, ended.next) == (WatchState.ENDED, None)
    assert (await ward.turn(watch, WatchState.ENDED)).state is WatchState.ENDED
    for state in (WatchState.ACTIVE, WatchState.PAUSED):
        with pytest.raises(WatchEnded):
            await ward.turn(watch, state)
    await ward.sweep(WEEK + 1)
    with pytest.raises(WatchNotFound):
        await ward.get(watch)
    assert await ward.watches.all(tenant=ward.bench.tenant) == ()
    await ward.sweep()
    assert ward.bench.tenant not in await ward.watches.tenants()
    names = [name async for name in ward.bench.redis.scan_iter(match=ward.bench.key("watch*"))]
    assert names == []


@pytest.mark.slow
async def test_a_year_of_weeks(ward: Ward) -> None:
    watch = await ward.answered()
    for week in range(1, 53):
        if week % 13 == 0:
            put(ward.index, replace(NEW, text=f"{NEW.text} Week {week}."))
        elif week % 2:
            put(ward.index, replace(FAR, text=f"Zinc in week {week}."))
        await ward.sweep(WEEK - (LOOK if week % 13 == 1 else 0))
        if week % 13 == 0:
            await ward.answer(NEW, choice=str(week))
    out = await ward.get(watch)
    assert [one.choice for one in out.changes] == ["52", "39", "26", "13"]
    # the records of the first jobs have expired
    assert out.asked == 5
    # the server was off for months: one check, not one for each week
    await ward.sweep(20 * WEEK)
    taken = len(ward.opened)
    await ward.sweep(LOOK)
    assert len(ward.opened) == taken


async def test_the_same_request_is_the_same_watch_and_they_are_limited(ward: Ward) -> None:
    first = await ward.create()
    assert await ward.create() == first
    others = [await ward.create(max_tokens=100 + n) for n in range(MAX_WATCHES - 1)]
    assert len({first, *others}) == MAX_WATCHES
    with pytest.raises(InvalidQuery, match="100 watches"):
        await ward.create(max_tokens=1_000)
    await ward.turn(first, WatchState.ENDED)
    assert await ward.create() not in (first, *others)
    # those that ended are limited, too
    for one in others:
        await ward.turn(one, WatchState.ENDED)
    assert len(await ward.watches.all(tenant=ward.bench.tenant)) == MAX_WATCHES + 1


async def test_a_parents_question_is_kept(ward: Ward) -> None:
    parent = await ward.bench.submit(question=QUESTION)
    asked = request("And in children?", parent=parent)
    made, new = await ward.watches.create(asked, WEEK, tenant=ward.bench.tenant)
    assert new
    assert made.question == f"{QUESTION} And in children?"
    assert made.request.get("parent") is None


@pytest.mark.parametrize("watch", ["watch_1", "watch_1:changes", "ä", ""])
async def test_an_id_of_none(ward: Ward, watch: str) -> None:
    with pytest.raises(WatchNotFound, match="there is no watch"):
        await ward.get(watch)
    with pytest.raises(WatchNotFound, match="there is no watch"):
        await ward.turn(watch, WatchState.PAUSED)


async def test_tenants_do_not_see_each_others_watches(ward: Ward) -> None:
    watch = await ward.create()
    with pytest.raises(WatchNotFound):
        await ward.watches.get(watch, tenant=f"{ward.bench.tenant}b")
    assert await ward.watches.all(tenant=f"{ward.bench.tenant}b") == ()
    found = [name async for name in ward.bench.redis.scan_iter(match=f"*{watch}*")]
    assert all(cast("str", name).startswith(keys.prefix(ward.bench.tenant)) for name in found)


async def test_a_worker_checks_with_its_own_index_and_settings(
    ward: Ward, redis_url: str, tiny_encoder: Path, tmp_path: Path
) -> None:
    (tmp_path / "own").mkdir()
    place = await anyio.to_thread.run_sync(index_of, tmp_path / "own", tiny_encoder, groups(3))
    given = {
        "REDIS_URL": redis_url,
        "INDEX": str(place),
        "EMBEDDER": str(tiny_encoder),
        "RETENTION_DAYS": "1",
    }
    settings = Settings.model_validate({f"POSOLOGY_{name}": value for name, value in given.items()})
    async with Process(settings, lambda _: None) as process:
        watcher, watch = process._watcher(), await ward.create()
        await watcher.sweep()
        (job,) = await ward.jobs()
        record = await ward.bench.redis.hgetall(ward.bench.key(f"job:{job}"))
        assert record["retention"] == str(86_400_000)
        held = await ward.bench.claimed((await ward.bench.next()).job)
        await ward.bench.worker().decide(held, DIRECT, calls=1)
        version = (await process.service()).index.version
        await ward.bench.worker().succeed(held, an_answer(index=version))
        await ward.bench.redis.zadd(ward.bench.key("watches:due"), {watch: 0})
        await watcher.sweep()
        out = await ward.get(watch)
        assert (out.error, out.asked) == (None, 1)
        assert out.answer is not None
