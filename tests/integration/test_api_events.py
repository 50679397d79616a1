"""Server-sent events over a real socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from fastapi import FastAPI

from orchestrator.api.app import create_app
from orchestrator.api.context import Limits
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.client.events import ServerSent, parse
from posology.store import keys
from posology.store.connection import connect
from tests.integration.conftest import Finish, Serve, Served

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(
    url: str, tenant: str, redis_url: str
) -> AsyncIterator[tuple[httpx2.AsyncClient, JobStore]]:
    redis = connect(redis_url)
    headers = {"X-Posology-Tenant": tenant}
    try:
        async with httpx2.AsyncClient(
            base_url=url, headers=headers, trust_env=False, timeout=60
        ) as client:
            yield client, JobStore(redis, redis_url)
    finally:
        await redis.aclose()


async def events(client: httpx2.AsyncClient, job: str, last: str | None = None) -> list[ServerSent]:
    headers = {} if last is None else {"Last-Event-ID": last}
    async with client.stream("GET", f"/v1/jobs/{job}/events", headers=headers) as reply:
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.headers["cache-control"] == "no-store"
        return [event async for event in parse(reply.aiter_bytes())]


async def until(done: Callable[[], bool], seconds: float = 90.0) -> None:
    with anyio.fail_after(seconds):
        while not done():  # noqa: ASYNC110  # another thread's doing
            await anyio.sleep(0.02)


async def submitted(client: httpx2.AsyncClient) -> str:
    return str((await client.post("/v1/jobs", json={"question": "Does it?"})).json()["id"])


async def test_events_come_in_order_while_a_job_runs_and_end_with_it(
    served: Served, redis_url: str, tenant: str, finish: Finish
) -> None:
    async with opened(served.url, tenant, redis_url) as (client, store):
        job = await submitted(client)
        found: list[ServerSent] = []
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                found.extend(await events(client, job))

            group.start_soon(watch)
            await until(lambda: served.app.state.context.streams.taken == 1)
            await finish(store, tenant)
        told = [(e.event, json.loads(e.data)["data"].get("state")) for e in found]
        assert told == [
            ("state", "queued"),
            ("state", "running"),
            ("call", None),
            ("state", "succeeded"),
        ]
        ids = [tuple(map(int, str(e.id).split("-"))) for e in found]
        assert ids == sorted(set(ids))
        assert [json.loads(e.data)["id"] for e in found] == [e.id for e in found]
        rest = await events(client, job, found[1].id)
        assert rest == found[2:]
        done = await client.get(
            f"/v1/jobs/{job}/events", headers={"Last-Event-ID": str(found[-1].id)}
        )
        assert (done.status_code, done.content) == (204, b"")
        await until(lambda: served.app.state.context.streams.taken == 0)


async def test_a_client_that_leaves_frees_its_connection(
    served: Served, redis_url: str, tenant: str
) -> None:
    async with opened(served.url, tenant, redis_url) as (client, store):
        job = await submitted(client)
        for _ in range(5):
            async with client.stream("GET", f"/v1/jobs/{job}/events") as reply:
                async for event in parse(reply.aiter_bytes()):
                    assert event.event == "state"
                    break
        await until(lambda: served.app.state.context.streams.taken == 0)
        with anyio.fail_after(90):
            while (await store.redis.info("clients"))["blocked_clients"]:  # noqa: ASYNC110  # the server's doing
                await anyio.sleep(0.05)


async def test_a_stream_says_what_is_wrong_before_it_begins(
    served: Served, redis_url: str, tenant: str
) -> None:
    async with opened(served.url, tenant, redis_url) as (client, _):
        job = await submitted(client)
        for last in (
            "x",
            "1-2-3",
            "²",
            "9" * 21,
            "18446744073709551616",
            "1-18446744073709551616",
            "-1",
        ):
            headers = {b"Last-Event-ID": last.encode()}
            reply = await client.get(f"/v1/jobs/{job}/events", headers=headers)
            assert reply.status_code == 422, last
            assert reply.headers["content-type"] == "application/problem+json"


@pytest.fixture
def app(redis_url: str) -> FastAPI:
    settings = Settings.model_validate({"POSOLOGY_REDIS_URL": redis_url})
    return create_app(settings, limits=Limits(streams=1, keep_alive=0.05))


async def test_silence_is_filled_and_streams_are_bounded(
    serve: Serve, app: FastAPI, redis_url: str, tenant: str
) -> None:
    with serve(app) as url:
        async with opened(url, tenant, redis_url) as (client, _):
            job = await submitted(client)
            async with client.stream("GET", f"/v1/jobs/{job}/events") as reply:
                pieces = reply.aiter_bytes()
                seen = b""
                with anyio.fail_after(90):
                    while seen.count(b": ping") < 2:
                        seen += await anext(pieces)
                refused = await client.get(f"/v1/jobs/{job}/events")
                assert refused.status_code == 503
                assert refused.json()["type"] == "urn:posology:problem:too-many-streams"
                assert refused.headers["retry-after"]
            await until(lambda: app.state.context.streams.taken == 0)


@pytest.mark.slow
async def test_a_stream_ends_with_its_jobs_record(
    served: Served, redis_url: str, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(served.url, tenant, redis_url) as (client, store):
        job = await submitted(client)
        async with client.stream("GET", f"/v1/jobs/{job}/events") as reply:
            found = parse(reply.aiter_bytes())
            assert (await anext(found)).event == "state"
            await store.redis.delete(f"{keys.prefix(tenant)}job:{job}")
            with anyio.fail_after(90):
                assert [event async for event in found] == []
        await until(lambda: served.app.state.context.streams.taken == 0)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_an_upload_that_breaks_off_is_no_defect(
    served: Served, redis_url: str, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(served.url, tenant, redis_url) as (client, store):
        for path, media in (("jobs", "application/json"), ("batches", "application/x-ndjson")):
            host, port = httpx2.URL(served.url).host, httpx2.URL(served.url).port
            async with await anyio.connect_tcp(host, port or 0) as stream:
                head = f"POST /v1/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media}\r\n"
                tenants = f"X-Posology-Tenant: {tenant}\r\nContent-Length: 100\r\n\r\n"
                await stream.send(f"{head}{tenants}".encode() + b'{"question": "Does it?"}\n')
            line = f'route="/v1/{path}",status="499"'
            with anyio.fail_after(90):
                while line not in (await client.get("/metrics")).text:  # noqa: ASYNC110  # its doing
                    await anyio.sleep(0.02)
        assert (await store.page(tenant=tenant)).jobs == ()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
