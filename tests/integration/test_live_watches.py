"""Watches whose literature is fetched before each check, on a real Redis, with a clock that the tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.ingest.live.request import LiveRequest
from orchestrator.ingest.uploads.fetches import Fetches
from orchestrator.ingest.uploads.process import open_stores
from orchestrator.models import Models
from orchestrator.settings import Settings
from orchestrator.watches.request import WatchRequest
from orchestrator.watches.store import LOOK
from posology.budget.tenants.store import TenantStore
from posology.errors import InvalidQuery, StoreUnavailable
from posology.index.store import Index
from posology.published.ingests import IngestFailure, IngestOutput, IngestState
from posology.testing.literature.articles import ARTICLES
from posology.testing.literature.stub import LiteratureStub
from posology.types import Limits, WatchState
from tests.integration.jobs_store.helpers import Bench, request
from tests.integration.test_affected import put
from tests.integration.test_uploads import ingest_all
from tests.integration.test_watches import ASPIRIN, NEW, WEEK, Cut, Ward
from tests.integration.test_watches import ward as ward  # noqa: PLC0414 - a fixture

pytestmark = pytest.mark.anyio
LIVE = LiveRequest(max_records=20)
HOUR = 3_600


@pytest.fixture
def given(tmp_path: Path, tiny_encoder: Path, redis_url: str) -> dict[str, str]:
    return {
        "POSOLOGY_INDEX": str(tmp_path / "index"),
        "POSOLOGY_EMBEDDER": str(tiny_encoder),
        "POSOLOGY_UPLOADS": str(tmp_path / "uploads"),
        "POSOLOGY_REDIS_URL": redis_url,
        "POSOLOGY_TOKEN_CODES": "false",
        "POSOLOGY_FETCHES_PER_HOUR": "2",
    }


@pytest.fixture
async def live(ward: Ward, given: dict[str, str]) -> AsyncIterator[Ward]:
    await ward.bench.redis.flushdb()
    settings = Settings.model_validate(given)
    async with open_stores(settings) as stores:
        ward.fetches = Fetches(uploads=stores.uploads, settings=settings)
        yield ward


async def ingests(ward: Ward) -> list[IngestOutput]:
    """The tenant's ingests, newest first."""
    assert ward.fetches is not None
    return await ward.fetches.uploads.all(ward.bench.tenant)


async def fetched(
    ward: Ward, *, error: str | None = None, state: IngestState = IngestState.SUCCEEDED
) -> str:
    """End the fetch that waits, as the ingesting process does, and have the watch see it."""
    assert ward.fetches is not None
    work = ward.fetches.uploads.work
    claim = await work.claim_next("", lease=60)
    assert claim is not None
    ended = {"ended": datetime.now(UTC), "state": state}
    if error is not None:
        ended["state"] = state = IngestState.FAILED
        ended["error"] = IngestFailure(type=error, message="no way")
    record = IngestOutput.model_validate_json(claim.record).model_copy(update=ended)
    await work.finish(claim, state.value, record=record.model_dump_json(), size=0)
    await ward.sweep(LOOK)
    return record.id


async def answered(ward: Ward) -> str:
    """A live watch with a first answer that cites :data:`ASPIRIN`."""
    watch = await ward.create(live=LIVE)
    await ward.sweep()
    await fetched(ward)
    await ward.answer(ASPIRIN, choice="yes")
    return watch


async def test_each_check_fetches_first_and_asks_only_for_what_is_new(
    ward: Ward, tmp_path: Path, given: dict[str, str]
) -> None:
    """From the service to the change: pages of a stub, read and indexed as in the ingesting process."""
    await ward.bench.redis.flushdb()
    stub = LiteratureStub(ARTICLES[:1], per_second=None)
    with stub.serving() as url:
        given |= {
            "POSOLOGY_INDEX": str(tmp_path / "live"),
            "POSOLOGY_EUTILS_URL": f"{url}/eutils",
            "POSOLOGY_FETCHES_PER_HOUR": "30",
        }
        settings = Settings.model_validate(given)
        async with open_stores(settings) as stores:
            ward.fetches = Fetches(uploads=stores.uploads, settings=settings)
            watch = await ward.create(live=LiveRequest(query="aspirin AND stroke"))
            await ward.sweep()
            waiting = await ward.get(watch)
            assert (waiting.job, await ward.jobs()) == (None, [])
            (fetch,) = await ingests(ward)
            assert waiting.fetch == fetch.id
            await ward.sweep(LOOK)
            assert (await ward.get(watch)).fetch == fetch.id, "it waits"
            await ingest_all(given)
            ward.index = Index.open(tmp_path / "live")
            ward.embedder = Models(settings.embedder, settings.embedding).embedder()
            await ward.sweep(LOOK)
            asked = await ward.get(watch)
            (job,) = await ward.jobs()
            assert (asked.fetch, asked.job) == (None, job)
            assert (await ward.bench.get(job)).request["fetch"] == fetch.id
            first = replace(ASPIRIN, id="pmid:90000001", pmid="90000001")
            await ward.answer(first, choice="yes")
            # the service has nothing new: nothing is asked
            await ward.sweep(WEEK)
            await ingest_all(given)
            await ward.sweep(LOOK)
            same = await ward.get(watch)
            assert (same.fetch, same.job, same.asked, same.error) == (None, None, 1, None)
            assert len(await ingests(ward)) == 2
            # though it may be less relevant than others; from the fetch on, whenever the watch looked at it
            made = (await ingests(ward))[-1].fetch
            assert made is not None
            day = made.started - timedelta(days=2)
            limited = f'(aspirin AND stroke) AND ("{day:%Y/%m/%d}"[edat] : "3000"[edat])'
            terms = [one.form["term"] for one in stub.seen if "term" in one.form]
            assert terms == ["aspirin AND stroke", "aspirin AND stroke", limited]
            # and now it has
            stub._articles |= {one.pmid: one for one in ARTICLES}
            await ward.sweep(WEEK)
            await ingest_all(given)
            await ward.sweep(LOOK)
            await ward.answer(replace(NEW, id="pmid:90000002", pmid="90000002"), choice="no")
            (change,) = (await ward.get(watch)).changes
            assert (change.choice_before, change.choice) == ("yes", "no")
            assert [one.id for one in change.sources_new] == ["pmid:90000002"]


async def test_a_service_that_fails_takes_nothing_away(live: Ward) -> None:
    watch = await answered(live)
    await live.sweep(WEEK)
    put(live.index, NEW)
    await fetched(live, error="FetchFailed")
    out = await live.get(watch)
    assert (out.error, out.fetch) == ("FetchFailed: no way", None)
    assert out.answer is not None
    assert len(await live.jobs()) == 2, "the index has changed otherwise"
    await live.answer(NEW, choice="no")
    assert [one.choice for one in (await live.get(watch)).changes] == ["no"]


@pytest.mark.parametrize(
    ("ends", "error", "again"),
    [({"error": "FetchFailed"}, "FetchFailed: no way", HOUR), ({"error": "InputError"}, "InputError: no way", WEEK),
     ({"state": IngestState.CANCELLED}, "FetchFailed: the ingest {} was cancelled", HOUR)],
)  # fmt: skip
async def test_a_first_answer_waits_for_its_literature(
    live: Ward, ends: dict[str, object], error: str, again: float
) -> None:
    watch = await live.create(live=LIVE)
    await live.sweep()
    ingest = await fetched(live, **ends)  # type: ignore[arg-type]
    out = await live.get(watch)
    assert (out.error, out.asked, await live.jobs()) == (error.format(ingest), 1, [])
    await live.sweep(again - LOOK - 1)
    assert len(await ingests(live)) == 1
    await live.sweep(LOOK + 1)
    await fetched(live)
    assert len(await live.jobs()) == 1
    await live.answer(ASPIRIN)
    assert (await live.get(watch)).error is None


async def test_a_crash_after_the_request_makes_one_fetch(live: Ward) -> None:
    watch = await live.create(live=LIVE)
    watcher = live.watcher()
    watcher._watches = Cut(live.bench.store)
    with pytest.raises(StoreUnavailable):
        await watcher.sweep()
    assert (await live.get(watch)).fetch is None
    await live.sweep(LOOK)
    (fetch,) = await ingests(live)
    assert (await live.get(watch)).fetch == fetch.id
    # and one before the job is recorded makes one job
    live.bench.clock.forward(LOOK)
    assert live.fetches is not None
    claim = await live.fetches.uploads.work.claim_next("", lease=60)
    assert claim is not None
    done = fetch.model_copy(update={"state": IngestState.SUCCEEDED})
    await live.fetches.uploads.work.finish(claim, "succeeded", record=done.model_dump_json())
    with pytest.raises(StoreUnavailable):
        await watcher.sweep()
    await live.sweep(LOOK)
    assert [(await live.get(watch)).job] == await live.jobs()


async def test_fetches_of_watches_count_in_the_hour_and_wait_for_their_turn(live: Ward) -> None:
    watches = [await live.create(live=LiveRequest(max_records=n)) for n in (1, 2, 3)]
    await live.sweep()
    assert len(await ingests(live)) == 2
    (late,) = [one for one in [await live.get(each) for each in watches] if one.fetch is None]
    assert (late.error, late.asked) == (None, 0)
    key = live.bench.key("rates:fetches")
    await live.bench.redis.delete(key)
    await live.sweep(HOUR)
    assert len(await ingests(live)) == 3


async def test_a_tenant_that_may_not_add_literature_has_none_fetched(live: Ward) -> None:
    watch = await live.create(live=LIVE)
    tenants = TenantStore(live.bench.redis, live.bench.url)
    await tenants.create(live.bench.tenant)
    await live.sweep()
    out = await live.get(watch)
    assert out.error is not None
    assert (out.error.split(":")[0], await ingests(live)) == ("IngestNotAllowed", [])
    await tenants.limit(live.bench.tenant, Limits(may_ingest=True))
    await live.sweep(WEEK)
    assert len(await ingests(live)) == 1
    live.fetches = None
    other = await live.create(live=LIVE, max_tokens=100)
    await live.sweep()
    assert "takes no uploads" in str((await live.get(other)).error)


async def test_a_fetch_goes_on_while_its_watch_is_paused(live: Ward) -> None:
    watch = await live.create(live=LIVE)
    await live.sweep()
    await live.turn(watch, WatchState.PAUSED)
    await fetched(live)
    assert await live.jobs() == []
    await live.turn(watch, WatchState.ACTIVE)
    await live.sweep()
    assert len(await live.jobs()) == 1


async def test_live_and_plain_watches_of_a_question_are_two(live: Ward) -> None:
    made = [await live.create(live=one) for one in (None, LIVE, LiveRequest(), LIVE)]
    assert made[1] == made[3]
    assert len(set(made)) == 3
    assert (await live.get(made[1])).live == LIVE.model_dump()


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"collection": "trials"}, "default index"), ({"live": {"max_records": 501}}, "max_records must be ≤ 500"),
     ({"live": {"service": "clinicaltrials", "full_text": True}}, "study records"), ({"live": {"query": " "}}, "empty")],
)  # fmt: skip
def test_literature_that_cannot_be_fetched_is_refused(
    fields: dict[str, object], words: str
) -> None:
    body = {"question": "Does aspirin help?", "live": {}, **fields}
    with pytest.raises(InvalidQuery, match=words):
        WatchRequest.parse(body).settled(Settings())


async def test_a_collection_of_the_parent_is_refused(bench: Bench) -> None:
    await bench.limit(collections="trials")
    parent = await bench.store.submit(
        request("Does aspirin help?", collection="trials"), tenant=bench.tenant
    )
    follow_up = request("And in children?", parent=parent.job)
    with pytest.raises(InvalidQuery, match="default index"):
        await Ward(bench=bench, index=None).watches.create(  # type: ignore[arg-type]
            follow_up, WEEK, tenant=bench.tenant, live=LIVE
        )
