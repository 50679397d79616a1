"""Fetches over HTTP: who may, within which limits, and questions whose literature is fetched first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from redis.asyncio import Redis

from orchestrator.api.adding import fetching
from orchestrator.jobs.store import JobStore
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from posology.client import Client
from posology.published.answers import AskOutput
from posology.published.ingests import IngestOutput, IngestState
from posology.store import keys
from posology.testing.literature.stub import LiteratureStub
from tests.integration.conftest import Finish
from tests.integration.test_api import problem
from tests.integration.test_uploads import ingest_all, nothing_is_left, serving

pytestmark = pytest.mark.anyio
FETCHES = "/v1/index/fetches"
QUESTION = "Does aspirin reduce stroke in adults?"


@pytest.fixture
def stub() -> LiteratureStub:
    return LiteratureStub(faults={2: "429"})


@pytest.fixture
def given(
    tmp_path: Path, tiny_encoder: Path, redis_url: str, stub: LiteratureStub
) -> Iterator[dict[str, str]]:
    with stub.serving() as url:
        yield {
            "POSOLOGY_INDEX": str(tmp_path / "index"),
            "POSOLOGY_EMBEDDER": str(tiny_encoder),
            "POSOLOGY_UPLOADS": str(tmp_path / "uploads"),
            "POSOLOGY_OPEN_UPLOADS": "true",
            "POSOLOGY_REDIS_URL": redis_url,
            "POSOLOGY_TOKEN_CODES": "false",
            "POSOLOGY_EUTILS_URL": f"{url}/eutils",
            "POSOLOGY_EUROPEPMC_URL": f"{url}/europepmc",
            "POSOLOGY_FETCH_RECORDS": "200",
            "POSOLOGY_FETCHES_PER_HOUR": "3",
        }


def ingest_of(response: httpx2.Response) -> IngestOutput:
    return IngestOutput.model_validate_json(response.content)


async def test_a_fetch_becomes_passages_with_their_provenance(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str], stub: LiteratureStub
) -> None:
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        body = {"query": "aspirin AND stroke", "full_text": True, "added_since": "2026-01-08"}
        made = await client.post(FETCHES, json=body)
        assert made.status_code == 202, made.text
        assert ingest_of(made).state is IngestState.WAITING
        async with Client("http://localhost", tenant=tenant, transport=client._transport) as known:
            day = date(2026, 1, 8)
            same = await known.fetch("aspirin AND stroke", full_text=True, added_since=day)
        assert same.id == ingest_of(made).id
        again = await client.post(FETCHES, json=body)
        assert (again.status_code, again.json()) == (200, made.json())
        await ingest_all(given)
        found = ingest_of(await client.get(made.headers["location"]))
        assert found.state is IngestState.SUCCEEDED, found
        assert found.fetch is not None
        assert (found.fetch.id, found.fetch.query) == (found.id, "aspirin AND stroke")
        assert (found.fetch.records, found.fetch.full_texts) == (5, 1)
        assert found.fetch.newer == '(aspirin AND stroke) AND ("2026/01/08"[edat] : "3000"[edat])'
        # one record has no abstract
        assert found.bad == 1
        assert "12% to 8%" in (await client.get("/v1/passages/pmid:90000001")).json()["text"]
        assert (await client.get("/v1/passages/pmid:90000003")).json()["passage"]["retracted"]
    nothing_of_it_is_left(given)
    assert stub.paths(status=429)


def nothing_of_it_is_left(given: dict[str, str]) -> None:
    folder = Path(given["POSOLOGY_UPLOADS"])
    left = [p.name for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".lock")]
    assert left == []


@pytest.mark.parametrize(
    ("body", "status", "name"),
    [
        ({}, 422, "invalid-query"),
        ({"query": "a", "pmids": ["1"]}, 422, "invalid-query"),
        ({"query": " "}, 422, "invalid-query"),
        ({"query": "a", "max_records": 201}, 422, "invalid-query"),
        ({"pmids": [str(n) for n in range(1, 202)]}, 422, "invalid-query"),
        ({"pmids": ["1 OR 2"]}, 422, "invalid-query"),
        ({"pmids": ["1"], "added_since": "2026-01-08"}, 422, "invalid-query"),
        ({"query": "a", "added_since": "soon"}, 422, "invalid-query"),
        ({"query": "a", "url": "http://localhost"}, 422, "invalid-query"),
        ({"query": "a", "service": "http://localhost"}, 422, "invalid-query"),
    ],
)
async def test_a_fetch_out_of_bounds_is_refused_and_asks_for_nothing(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str], stub: LiteratureStub,
    body: dict[str, Any], status: int, name: str,
) -> None:  # fmt: skip
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        problem(await client.post(FETCHES, json=body), status, name)
    nothing_is_left(given)
    assert stub.seen == []


async def test_only_those_who_may_fetch(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    body = {"query": "aspirin"}
    async with serving(redis, redis_url, given, tenant=tenant, address="10.0.0.9") as client:
        problem(await client.post(FETCHES, json=body), 403, "ingest-not-allowed")
        asked = await client.post("/v1/ask?live=true", json={"question": QUESTION})
        problem(asked, 403, "ingest-not-allowed")
    del given["POSOLOGY_UPLOADS"]
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        problem(await client.post(FETCHES, json=body), 403, "ingest-not-allowed")


async def test_fetches_of_an_hour_are_counted_for_each_tenant(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        for n in range(3):
            made = await client.post(FETCHES, json={"query": f"aspirin {n}"})
            assert made.status_code == 202
        refused = await client.post(FETCHES, json={"query": "aspirin 4"})
        found = problem(refused, 429, "too-many-fetches")
        assert found["limit"] == 3
        assert 0 < int(refused.headers["retry-after"]) <= 1_201
        mine = made.headers["location"]
    async with serving(redis, redis_url, given, tenant=f"{tenant}-b") as client:
        assert (await client.post(FETCHES, json={"query": "aspirin 4"})).status_code == 202
        problem(await client.get(mine), 404, "ingest-not-found")
        assert len((await client.get("/v1/index/ingests")).json()["ingests"]) == 1
    counted = [key async for key in redis.scan_iter("*rates:fetches")]
    assert f"{keys.prefix(tenant)}rates:fetches" in counted


async def test_a_fetch_of_nothing_and_one_that_fails_say_so(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str], stub: LiteratureStub
) -> None:
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        made = await client.post(FETCHES, json={"query": "walruses"})
        await ingest_all(given)
        found = ingest_of(await client.get(made.headers["location"]))
        assert found.state is IngestState.FAILED
        assert found.error is not None
        assert found.error.type == "InputError"
        assert "`walruses` finds nothing" in found.error.message
        made = await client.post(FETCHES, json={"query": "aspirin"})
        stub._faults[len(stub.seen) + 1] = "redirect"
        await ingest_all(given)
        found = ingest_of(await client.get(made.headers["location"]))
        assert found.error is not None
        assert found.error.type == "FetchFailed"


async def test_a_question_waits_for_its_literature(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str], finish: Finish,
    stub: LiteratureStub,
) -> None:  # fmt: skip
    store = JobStore(redis, redis_url)
    live = {"live": "true", "max_records": "20"}
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        soon = await client.post(
            "/v1/ask", params={**live, "wait": "0.1"}, json={"question": QUESTION}
        )
        waiting = problem(soon, 503, "fetch-unfinished")
        assert (await store.page(tenant=tenant)).jobs == ()
        await ingest_all(given)
        sent = len(stub.seen)
        found: list[httpx2.Response] = []

        async def ask() -> None:
            found.append(
                await client.post(
                    "/v1/ask", params={**live, "wait": "90"}, json={"question": QUESTION}
                )
            )

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            with anyio.fail_after(90):
                while not (await store.page(tenant=tenant)).jobs:  # noqa: ASYNC110 - the request's doing
                    await anyio.sleep(0.01)
                await finish(store, tenant)
        assert found[0].status_code == 200, found[0].text
        out = AskOutput.model_validate_json(found[0].content)
        assert out.fetch is not None
        assert out.fetch.id == waiting["ingest"]
        assert (out.fetch.question, out.fetch.query) == (QUESTION, "aspirin AND stroke")
        assert out.notes[0] == out.fetch.sentence
        job = (await client.get(found[0].headers["location"])).json()
        assert job["request"]["fetch"] == out.fetch.id
        again = await client.post("/v1/jobs", json={"question": QUESTION, "fetch": out.fetch.id})
        assert again.status_code == 202
    async with serving(redis, redis_url, given, tenant=f"{tenant}b") as other:
        claimed = await other.post("/v1/jobs", json={"question": QUESTION, "fetch": out.fetch.id})
        problem(claimed, 422, "invalid-query")
        claimed = await other.post("/v1/ask", json={"question": QUESTION, "fetch": out.fetch.id})
        problem(claimed, 422, "invalid-query")
    # the same fetch of the last hour stands for it
    assert len(stub.seen) == sent


async def test_the_same_request_is_the_same_job_and_fetches_once(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str], finish: Finish,
    stub: LiteratureStub, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Also when the fetch of the last hour is one of an earlier hour."""
    monkeypatch.setattr(fetching, "FRESH", timedelta(0))
    store = JobStore(redis, redis_url)
    key = {"Idempotency-Key": "once"}
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        made = await client.post(FETCHES, json={"query": "aspirin"})
        await ingest_all(given)
        ingest = ingest_of(await client.get(made.headers["location"])).id
        asked = JobRequest(question=QUESTION, fetch=ingest).settled(Settings.model_validate(given))
        job = (await store.submit(asked, tenant=tenant, key="once")).job
        assert await finish(store, tenant)
        sent = len(stub.seen)
        live = {"live": "true", "wait": "9"}
        again = await client.post("/v1/ask", params=live, json={"question": QUESTION}, headers=key)
        assert again.status_code == 200, again.text
        assert again.headers["location"].endswith(job)
        out = AskOutput.model_validate_json(again.content)
        assert out.fetch is not None
        assert out.fetch.id == ingest
        other = await client.post("/v1/ask", params=live, json={"question": "Why?"}, headers=key)
        problem(other, 409, "idempotency-conflict")
    assert len(stub.seen) == sent


async def test_a_question_whose_literature_is_not_found_fails_before_it_is_submitted(
    redis: Redis, redis_url: str, tenant: str, given: dict[str, str]
) -> None:
    asked = {"live": "true", "query": "walruses", "wait": "0.1"}
    async with serving(redis, redis_url, given, tenant=tenant) as client:
        problem(
            await client.post("/v1/ask", params=asked, json={"question": QUESTION}),
            503,
            "fetch-unfinished",
        )
        await ingest_all(given)
        unused = await client.post("/v1/ask?query=walruses", json={"question": QUESTION})
        assert problem(unused, 422, "invalid-query")["field"] == "query"
        # a failed fetch is made again
        soon = await client.post("/v1/ask", params=asked, json={"question": QUESTION})
        problem(soon, 503, "fetch-unfinished")
        refused = await client.post(
            "/v1/ask", params={**asked, "max_records": "201"}, json={"question": QUESTION}
        )
        problem(refused, 422, "invalid-query")
