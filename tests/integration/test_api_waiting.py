"""Requests that wait for the end of a job, and batches that are listed and cancelled, over HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx2
import pytest

from orchestrator.api.context import Limits
from orchestrator.jobs.store import JobStore
from posology.published.answers import AskOutput
from posology.published.jobs import BatchPage, JobOutput
from tests.integration.conftest import Finish
from tests.integration.test_api import NDJSON, QUESTION, api, problem

pytestmark = pytest.mark.anyio
#: longer than any test
LONG = {"wait": "300"}


async def ended_meanwhile(
    client: httpx2.AsyncClient,
    store: JobStore,
    tenant: str,
    path: str,
    end: Callable[[], Awaitable[object]],
) -> httpx2.Response:
    """Return the response to a request that waits while its job is ended."""
    found: list[httpx2.Response] = []

    async def ask() -> None:
        found.append(await client.post(path, params=LONG, json={"question": QUESTION}))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        with anyio.fail_after(90):
            while not (await store.page(tenant=tenant)).jobs:  # noqa: ASYNC110 - the request's doing
                await anyio.sleep(0.01)
            await end()
    return found[0]


async def test_a_submission_waits_for_the_end(
    client: httpx2.AsyncClient, store: JobStore, tenant: str, finish: Finish
) -> None:
    reply = await ended_meanwhile(client, store, tenant, "/v1/jobs", lambda: finish(store, tenant))
    job = JobOutput.model_validate_json(reply.content)
    assert (reply.status_code, job.state) == (200, "succeeded")
    assert job.result is not None
    assert reply.headers["location"] == f"/v1/jobs/{job.id}"


async def test_what_takes_longer_is_answered_with_the_job(client: httpx2.AsyncClient) -> None:
    for path in ("/v1/jobs?wait=0.2", "/v1/ask?wait=0.2"):
        begun = time.monotonic()
        reply = await client.post(path, json={"question": QUESTION})
        assert time.monotonic() - begun >= 0.2
        assert reply.status_code == 202, reply.text
        job = JobOutput.model_validate_json(reply.content)
        assert job.state == "queued"
        assert (await client.get(reply.headers["location"])).json()["id"] == job.id
    for wait in ("-1", "301", "nan", "inf", "x"):
        for path in ("jobs", "ask"):
            reply = await client.post(
                f"/v1/{path}", params={"wait": wait}, json={"question": QUESTION}
            )
            assert problem(reply, 422, "invalid-query")["field"] == "wait"


async def test_an_answer_is_returned_alone(
    client: httpx2.AsyncClient, store: JobStore, tenant: str, finish: Finish
) -> None:
    reply = await ended_meanwhile(client, store, tenant, "/v1/ask", lambda: finish(store, tenant))
    assert reply.status_code == 200, reply.text
    answer = AskOutput.model_validate_json(reply.content)
    assert answer.question == QUESTION
    assert (await client.get(reply.headers["location"])).json()["result"] == reply.json()
    key = {"Idempotency-Key": "a"}
    made = await client.post("/v1/jobs", json={"question": QUESTION}, headers=key)
    await finish(store, tenant)
    again = await client.post("/v1/ask", json={"question": QUESTION}, headers=key)
    assert again.status_code == 200
    assert again.headers["location"] == made.headers["location"]


async def test_a_job_without_an_answer_is_its_errors_problem(
    client: httpx2.AsyncClient, store: JobStore, tenant: str, finish: Finish
) -> None:
    failed = await ended_meanwhile(
        client, store, tenant, "/v1/ask", lambda: finish(store, tenant, state="failed")
    )
    found = problem(failed, 502, "provider-unreachable")
    assert found["job"] == (await store.page(tenant=tenant)).jobs[0].id

    async def cancel() -> None:
        with anyio.fail_after(90):
            while True:
                job = (await store.page(tenant=tenant)).jobs[0]
                if not job.state.over:
                    break
                await anyio.sleep(0.01)
        await store.cancel(job.id, tenant=tenant)

    gone = await ended_meanwhile(client, store, tenant, "/v1/ask", cancel)
    assert problem(gone, 409, "job-cancelled")["job"]


async def test_only_so_many_requests_wait(redis_url: str, tenant: str, finish: Finish) -> None:
    async with api(redis_url, tenant, Limits(waits=1)) as (client, store):

        async def others() -> None:
            begun = time.monotonic()
            at_once = await client.post("/v1/jobs", params=LONG, json={"question": QUESTION})
            assert time.monotonic() - begun < 90
            assert at_once.status_code == 202
            before = len((await store.page(tenant=tenant)).jobs)
            refused = await client.post("/v1/ask", json={"question": QUESTION})
            assert int(refused.headers["retry-after"]) > 0
            problem(refused, 503, "too-many-waits")
            assert len((await store.page(tenant=tenant)).jobs) == before, "nothing was submitted"
            await finish(store, tenant)

        reply = await ended_meanwhile(client, store, tenant, "/v1/jobs", others)
        assert reply.status_code == 200
        # the place is free again
        late = await client.post("/v1/ask", params={"wait": "0.1"}, json={"question": QUESTION})
        assert late.status_code == 202


async def test_a_client_that_leaves_frees_its_place(
    client: httpx2.AsyncClient, store: JobStore, tenant: str
) -> None:
    """The app is called as a server calls it: the disconnection is a message."""
    app = client._transport.app  # type: ignore[attr-defined]
    body = json.dumps({"question": QUESTION}).encode()
    left = anyio.Event()
    sent: list[Any] = []
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": "/v1/jobs", "raw_path": b"/v1/jobs", "root_path": "",
        "query_string": b"wait=300", "client": ("c", 1), "server": ("s", 1),
        "headers": [(b"content-type", b"application/json"),
                    (b"x-posology-tenant", tenant.encode())],
    }  # fmt: skip
    with anyio.fail_after(90):
        async with anyio.create_task_group() as group:
            group.start_soon(app, scope, receive, send)
            while not app.state.context.waits.taken:  # noqa: ASYNC110 - the request's doing
                await anyio.sleep(0.01)
            left.set()
    assert app.state.context.waits.taken == 0
    assert len((await store.page(tenant=tenant)).jobs) == 1, "the job remains"


async def test_a_wait_asks_redis_seldom(client: httpx2.AsyncClient, store: JobStore) -> None:
    await store.redis.config_resetstat()
    await client.post("/v1/ask?wait=3", json={"question": QUESTION})
    stats = await store.redis.info("commandstats")
    assert stats["cmdstat_xread"]["calls"] <= 3
    assert sum(one["calls"] for one in stats.values()) < 60


async def test_batches_are_listed_page_by_page_and_cancelled(
    client: httpx2.AsyncClient, store: JobStore, tenant: str, finish: Finish
) -> None:
    rows = b'{"question": "Is it so?"}\n' * 3
    made = []
    for _ in range(3):
        reply = await client.post("/v1/batches", content=rows, headers=NDJSON)
        made.append(reply.json()["id"])
        await anyio.sleep(0.003)
    url, found = "/v1/batches?limit=2", list[str]()
    for _ in range(3):
        reply = await client.get(url)
        page = BatchPage.model_validate_json(reply.content)
        found += [batch.id for batch in page.batches]
        if "next" not in reply.links:
            break
        url = reply.links["next"]["url"]
    assert found == made[::-1]
    await finish(store, tenant)
    for _ in range(2):
        gone = await client.delete(f"/v1/batches/{made[0]}")
        assert gone.status_code == 200
        assert gone.json()["states"] == {"cancelled": 2, "succeeded": 1}
    listed = (await client.get("/v1/batches?state=cancelled")).json()["batches"]
    assert [batch["id"] for batch in listed] == [made[0]]
    other = {"X-Posology-Tenant": f"{tenant}x"}
    refused = await client.delete(f"/v1/batches/{made[1]}", headers=other)
    assert problem(refused, 404, "batch-not-found")["batch"] == made[1]
    assert (await client.get("/v1/batches", headers=other)).json()["batches"] == []
    for query in ("limit=0", "limit=501", "state=lost", "cursor=x", "cursor=%00"):
        problem(await client.get(f"/v1/batches?{query}"), 422, "invalid-query")


async def test_a_large_batch_is_cancelled_in_several_requests(redis_url: str, tenant: str) -> None:
    rows = b'{"question": "Is it so?"}\n' * 600
    async with api(redis_url, tenant, Limits(cancellation=0)) as (client, _):
        reply = await client.post("/v1/batches", content=rows, headers=NDJSON)
        place = reply.headers["location"]
        first = await client.delete(place)
        assert (first.status_code, first.json()["states"]) == (
            202,
            {"queued": 100, "cancelled": 500},
        )
        assert (await client.delete(place)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "near"),
    [
        ("POST", "/v1/jobs", {"questoin": "Is it?"}, "questoin", "question"),
        ("POST", "/v1/ask", {"question": "Is it?", "Model": "x"}, "Model", "model"),
        ("POST", "/v1/jobs", {"question": "a", "filters": {"sinse": 1}}, "filters.sinse", "since"),
        ("POST", "/v1/jobs", {"question": "a", "zzz": 1}, "zzz", "max_tokens"),
        ("POST", "/v1/jobs?wiat=3", {"question": "a"}, "wiat", "wait"),
        ("GET", "/v1/jobs?stat=failed", None, "stat", "state"),
        ("POST", "/v1/batches?modle=x", "{}", "modle", "model"),
    ],
)
async def test_an_unknown_field_is_named_with_the_nearest(
    client: httpx2.AsyncClient,
    store: JobStore,
    tenant: str,
    method: str,
    path: str,
    body: Any,
    field: str,
    near: str,
) -> None:
    headers = NDJSON if isinstance(body, str) else {"content-type": "application/json"}
    content = body if isinstance(body, str) else json.dumps(body)
    reply = await client.request(method, path, content=content, headers=headers)
    found = problem(reply, 422, "invalid-query")
    assert found["field"] == field
    assert near in found["detail"]
    assert (await store.page(tenant=tenant)).jobs == ()
