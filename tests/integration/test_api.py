"""The HTTP API on a real Redis."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from orchestrator.api.app import create_app
from orchestrator.api.context import Limits
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.published.jobs import BatchOutput, BatchRow, JobOutput, JobPage
from posology.store import keys
from posology.store.connection import connect
from tests.integration.conftest import Finish

pytestmark = pytest.mark.anyio

QUESTION = "Does aspirin reduce the risk of preeclampsia?"
JSON = {"content-type": "application/json"}
NDJSON = {"content-type": "application/x-ndjson"}


@asynccontextmanager
async def api(
    url: str, tenant: str, limits: Limits | None = None, patience: int = 8
) -> AsyncIterator[tuple[httpx2.AsyncClient, JobStore]]:
    """A client of an app on that Redis; it buffers responses, so streams are tested over a socket."""
    redis = connect(url, tries=patience)
    store = JobStore(redis, url)
    app = create_app(Settings(), store, limits=limits)
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    headers = {"X-Posology-Tenant": tenant}
    try:
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", headers=headers
        ) as client:
            yield client, store
    finally:
        await redis.aclose()


def problem(response: httpx2.Response, status: int, name: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert found["type"] == f"urn:posology:problem:{name}"
    assert found["status"] == status
    assert found["title"]
    assert found["detail"]
    assert isinstance(found, dict)
    return found


async def test_a_job_is_created_found_and_its_key_stands_for_it(
    client: httpx2.AsyncClient, tenant: str
) -> None:
    key = {"Idempotency-Key": "a"}
    made = await client.post("/v1/jobs", json={"question": QUESTION}, headers=key)
    assert made.status_code == 202
    job = JobOutput.model_validate_json(made.content)
    assert job.state == "queued"
    assert job.tenant == tenant
    assert job.request["max_tokens"] == Settings().max_tokens
    assert made.headers["location"] == f"/v1/jobs/{job.id}"
    again = await client.post("/v1/jobs", json={"question": QUESTION}, headers=key)
    assert again.status_code == 200
    assert again.json() == made.json() == (await client.get(made.headers["location"])).json()
    other = await client.post("/v1/jobs", json={"question": "Does it?"}, headers=key)
    assert problem(other, 409, "idempotency-conflict")["job"] == job.id
    assert JobPage.model_validate_json((await client.get("/v1/jobs")).content).next is None


async def test_pages_follow_each_other(client: httpx2.AsyncClient) -> None:
    made = [
        (await client.post("/v1/jobs", json={"question": f"{i}?"})).json()["id"] for i in range(5)
    ]
    url, found = "/v1/jobs?limit=2&state=queued", list[str]()
    for _ in range(4):
        reply = await client.get(url)
        found += [job["id"] for job in reply.json()["jobs"]]
        if "next" not in reply.links:
            break
        url = reply.links["next"]["url"]
        assert "state=queued" in url
    assert sorted(found, reverse=True) == found
    assert sorted(found) == sorted(made)
    assert (await client.get("/v1/jobs?state=failed")).json() == {"jobs": [], "next": None}


async def test_tenants_do_not_see_each_other(client: httpx2.AsyncClient, tenant: str) -> None:
    job = (await client.post("/v1/jobs", json={"question": QUESTION})).json()["id"]
    other = {"X-Posology-Tenant": f"{tenant}x"}
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/retry"), ("GET", "/events")):
        reply = await client.request(method, f"/v1/jobs/{job}{path}", headers=other)
        assert problem(reply, 404, "job-not-found")["job"] == job
    assert (await client.get("/v1/jobs", headers=other)).json()["jobs"] == []
    bad = await client.get("/v1/jobs", headers={"X-Posology-Tenant": "a b"})
    assert problem(bad, 422, "invalid-query")["field"] == "tenant"


async def test_a_job_is_cancelled_and_tried_again(
    client: httpx2.AsyncClient, store: JobStore, tenant: str, finish: Finish
) -> None:
    place = (await client.post("/v1/jobs", json={"question": QUESTION})).headers["location"]
    assert (
        problem(await client.post(f"{place}/retry"), 409, "job-not-failed")["job"]
        == place.rpartition("/")[2]
    )
    cancelled = JobOutput.model_validate_json((await client.delete(place)).content)
    assert cancelled.state == "cancelled"
    assert cancelled.cancellation is not None
    assert cancelled.cancellation.calls_made == 0
    assert (await client.delete(place)).status_code == 200, "a repeated request is answered alike"
    assert (await client.post(f"{place}/retry")).json()["state"] == "queued"
    await finish(store, tenant)
    done = JobOutput.model_validate_json((await client.get(place)).content)
    assert done.result is not None
    assert done.result.status == "refused"
    problem(await client.delete(place), 409, "job-finished")
    problem(await client.post(f"{place}/retry"), 409, "job-not-failed")


@pytest.mark.parametrize(
    ("body", "status", "name"),
    [
        (b"", 400, "malformed-body"),
        (b"{", 400, "malformed-body"),
        (b'{"question": "\\ud800"}', 400, "malformed-body"),
        (b'{"question": "a\x00"}', 400, "malformed-body"),
        (b'{"question": "\xff"}', 400, "malformed-body"),
        (b'{"question": "a", "k": ' + b"9" * 5_000 + b"}", 400, "malformed-body"),
        (b'{"question": ' + b"[" * 100_000 + b"}", 400, "malformed-body"),
        (b'{"question": "a", "deadline_seconds": NaN}', 422, "invalid-query"),
        (b'{"question": "a", "colour": 1}', 422, "invalid-query"),
        (b'{"question": ""}', 422, "invalid-query"),
        (b'{"question": "a", "model": "nobody:x"}', 422, "unknown-model"),
        (b"[]", 422, "invalid-query"),
        (b'{"question": "' + b"a" * 1_100_000 + b'"}', 413, "body-too-large"),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, bytes) else None,
)
async def test_what_cannot_be_asked_is_refused(
    client: httpx2.AsyncClient, store: JobStore, tenant: str, body: bytes, status: int, name: str
) -> None:
    reply = await client.post("/v1/jobs", content=body, headers=JSON)
    found = problem(reply, status, name)
    assert len(reply.content) < 3_000
    if name == "invalid-query":
        assert found["field"]
    assert (await store.page(tenant=tenant)).jobs == ()


async def test_a_body_is_read_no_further_than_is_allowed(
    redis_url: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what still arrives is dropped, up to a limit
    monkeypatch.setattr("orchestrator.api.bodies.BYTES", 5_000)
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 100_000:
            sent += 1_000
            yield b" " * 1_000

    async with api(redis_url, tenant, Limits(job_bytes=10_000)) as (client, _):
        reply = await client.post("/v1/jobs", content=endless(), headers=JSON)
        assert problem(reply, 413, "body-too-large")["limit"] == 10_000
        assert sent <= 17_000


async def test_http_itself_is_answered_with_problems(client: httpx2.AsyncClient) -> None:
    problem(await client.get("/nothing"), 404, "not-found")
    problem(await client.get("/v1/jobs/"), 404, "not-found")
    refused = await client.put("/v1/jobs/x")
    problem(refused, 405, "method-not-allowed")
    assert refused.headers["allow"] == "DELETE, GET"
    text = await client.post("/v1/jobs", content=b"{}", headers={"content-type": "text/plain"})
    assert problem(text, 415, "unsupported-media-type")["accepted"] == ["application/json"]
    for query in ("limit=0", "limit=x", "limit=501", "state=lost", "cursor=%00", "cursor=a*"):
        assert problem(await client.get(f"/v1/jobs?{query}"), 422, "invalid-query")["field"]
    key = {"Idempotency-Key": "a" * 201}
    long = await client.post("/v1/jobs", json={"question": QUESTION}, headers=key)
    problem(long, 422, "invalid-query")


@pytest.mark.parametrize("part", ["calls", "events", "units", "memo"])
async def test_no_other_key_is_taken_for_a_job(client: httpx2.AsyncClient, part: str) -> None:
    place = (await client.post("/v1/jobs", json={"question": QUESTION})).headers["location"]
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/retry"), ("GET", "/events")):
        reply = await client.request(method, f"{place}:{part}{path}")
        problem(reply, 404, "job-not-found")


async def test_without_redis_it_says_so_and_shows_nothing(tenant: str) -> None:
    async with api("redis://:secret@127.0.0.1:1/0", tenant, patience=0) as (client, _):
        for path in ("/v1/jobs", "/v1/jobs/job_1", f"/v1/batches/batch_{'0' * 28}"):
            reply = await client.get(path)
            found = problem(reply, 503, "store-unavailable")
            assert int(reply.headers["retry-after"]) > 0
            assert "address" not in found
            assert "secret" not in reply.text
            assert "127.0.0.1" not in reply.text
        made = await client.post("/v1/jobs", json={"question": QUESTION})
        problem(made, 503, "store-unavailable")
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert problem(await client.get("/readyz"), 503, "not-ready")["failing"] == ["redis"]
        metrics = await client.get("/metrics")
        assert metrics.status_code == 200
        assert "posology_store_up 0.0" in metrics.text


async def test_ready_while_a_worker_lives(client: httpx2.AsyncClient, store: JobStore) -> None:
    await store.redis.delete(keys.ANSWERING)
    # those that only make calls answer no question
    await store.redis.zadd(keys.WORKERS, {"calls:1": (await store.redis.time())[0] * 1000})
    assert problem(await client.get("/readyz"), 503, "not-ready")["failing"] == ["workers"]
    seconds, _ = await store.redis.time()
    await store.redis.zadd(keys.ANSWERING, {"host:1": seconds * 1000, "host:2": 0})
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ok", "workers": 1})
    await store.redis.zadd(keys.ANSWERING, {"host:1": (seconds - 40) * 1000})
    problem(await client.get("/readyz"), 503, "not-ready")
    await store.redis.delete(keys.ANSWERING)


async def figures(client: httpx2.AsyncClient) -> dict[str, float]:
    text = (await client.get("/metrics")).text
    return {
        f"{sample.name}{json.dumps(sample.labels, sort_keys=True)}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_figures_count_jobs_attempts_tokens_and_money(
    client: httpx2.AsyncClient, store: JobStore, tenant: str, finish: Finish
) -> None:
    before = await figures(client)
    for _ in range(4):
        await client.post("/v1/jobs", json={"question": QUESTION})
    await finish(store, tenant, nano=2_000_000_000)
    await finish(store, tenant, nano=None)
    await finish(store, tenant, state="failed")
    after = await figures(client)

    def grew(name: str, **labels: str) -> float:
        label = f"{name}{json.dumps(labels, sort_keys=True)}"
        return after[label] - before.get(label, 0.0)

    work = {"stage": "answer", "model": "openai:x"}
    assert grew("posology_jobs", state="succeeded") == 2
    assert grew("posology_jobs", state="failed") == 1
    assert grew("posology_jobs", state="queued") == 1
    assert grew("posology_jobs_waiting") == 1
    assert grew("posology_attempts_total", outcome="ok", **work) == 3
    assert grew("posology_tokens_total", direction="input", **work) == 30
    assert grew("posology_tokens_total", direction="output", **work) == 0
    assert grew("posology_spend_usd_total", **work) == pytest.approx(2.000001)
    assert grew("posology_unknown_costs_total", **work) == 1
    assert grew("posology_attempt_seconds_count", stage="answer") == 3
    assert grew("posology_attempt_seconds_sum", stage="answer") == pytest.approx(1.5)
    for bound, below in (("0.25", 0), ("0.5", 3), ("300.0", 3), ("+Inf", 3)):
        assert grew("posology_attempt_seconds_bucket", stage="answer", le=bound) == below
    assert after['posology_queue_messages{"queue": "posology.jobs"}'] == 0
    posted = {"method": "POST", "route": "/v1/jobs"}
    assert grew("posology_http_requests_total", status="202", **posted) == 4
    assert grew("posology_http_request_seconds_count", **posted) == 4


async def test_a_batch_has_good_rows_and_bad_ones(
    client: httpx2.AsyncClient, store: JobStore, tenant: str, finish: Finish
) -> None:
    rows = [{"id": "a", "question": QUESTION}, {"id": "b"}, {"id": 3, "question": QUESTION, "k": 2}]
    body = "\n".join(map(json.dumps, rows)).encode() + b"\nnot JSON\n\n" + b"{" + b" " * 70_000
    body += b'\n{"question": "a", "options": {"A": "\\ud800", "B": "x"}}'
    made = await client.post("/v1/batches?k=5", content=body, headers=NDJSON)
    assert made.status_code == 202, made.text
    place = made.headers["location"]
    batch = BatchOutput.model_validate_json(made.content)
    assert (batch.total, batch.rejected, batch.over) == (6, 4, False)
    while await finish(store, tenant):
        pass
    assert (await client.get(place)).json()["over"]
    first = await client.get(f"{place}/rows?limit=4")
    second = await client.get(first.links["next"]["url"])
    assert "next" not in second.links
    found = [BatchRow.model_validate(row) for r in (first, second) for row in r.json()["rows"]]
    assert [row.id for row in found] == ["a", "b", 3, None, None, None]
    assert [row.error is None for row in found] == [True, False, True, False, False, False]
    assert "65537" in (found[4].error.message if found[4].error else "")
    asked = [await store.get(row.job, tenant=tenant) for row in found if row.job]
    assert [job.request["k"] for job in asked] == [5, 2]
    lines = await client.get(f"{place}/rows?limit=2", headers={"Accept": "application/x-ndjson"})
    assert [BatchRow.model_validate_json(line) for line in lines.text.splitlines()] == found


async def test_a_batch_may_be_packed_and_is_submitted_once(
    client: httpx2.AsyncClient, store: JobStore, tenant: str
) -> None:
    line = json.dumps({"question": QUESTION}).encode() + b"\n"
    headers = {**NDJSON, "Content-Encoding": "gzip", "Idempotency-Key": "b"}
    # two members, as when files are appended to each other
    packed = gzip.compress(line * 3) + gzip.compress(line)
    made = await client.post("/v1/batches", content=packed, headers=headers)
    assert made.json()["total"] == 4
    again = await client.post("/v1/batches", content=packed, headers=headers)
    assert again.json() == made.json()
    assert len((await store.page(tenant=tenant)).jobs) == 4
    other = await client.post("/v1/batches", content=gzip.compress(line), headers=headers)
    problem(other, 409, "idempotency-conflict")


async def test_a_batch_that_is_too_large_or_broken_leaves_nothing(
    redis_url: str, tenant: str
) -> None:
    line = json.dumps({"question": QUESTION}).encode() + b"\n"
    packed = {**NDJSON, "Content-Encoding": "gzip"}
    limits = Limits(batch_bytes=1_000_000, batch_rows=10)
    async with api(redis_url, tenant, limits) as (client, store):
        bomb = gzip.compress(b" " * 50_000_000)
        assert len(bomb) < 100_000
        for body, headers, status, name in (
            (bomb, packed, 413, "body-too-large"),
            (b" " * 1_000_001, NDJSON, 413, "body-too-large"),
            (line * 11, NDJSON, 413, "too-many-rows"),
            (gzip.compress(line)[:-9], packed, 400, "malformed-body"),
            (b"not gzip", packed, 400, "malformed-body"),
            (line, {**NDJSON, "Content-Encoding": "br"}, 415, "unsupported-encoding"),
            (line, JSON, 415, "unsupported-media-type"),
        ):
            reply = await client.post("/v1/batches", content=body, headers=headers)
            problem(reply, status, name)
        problem(
            await client.post("/v1/batches?k=0", content=line, headers=NDJSON), 422, "invalid-query"
        )
        problem(
            await client.post("/v1/batches?model=x:y", content=line, headers=NDJSON),
            422,
            "unknown-model",
        )
        assert (await store.page(tenant=tenant)).jobs == ()
        for name in ("batch_1", "x:y", "batch_" + "0" * 28):
            problem(await client.get(f"/v1/batches/{name}"), 404, "batch-not-found")
            problem(await client.get(f"/v1/batches/{name}/rows"), 404, "batch-not-found")
