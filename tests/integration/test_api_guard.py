"""What an API without keys refuses because a web page may have sent it, and places of the API, on a real Redis."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import httpx2
import pytest
from starlette.requests import Request

from orchestrator.api.app import create_app
from orchestrator.api.context import Context, Limits
from orchestrator.api.mcp.service import ServiceDesk
from orchestrator.api.mcp.tools import OFFERS
from orchestrator.api.places import Places
from orchestrator.api.problems import RequestProblem
from orchestrator.jobs.admission import Room
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.published.jobs import JobEvent
from posology.store.connection import connect

pytestmark = pytest.mark.anyio
QUESTION = '{"question": "Does it help?"}'


@asynccontextmanager
async def client(
    url: str, tenant: str, *, room: Room | None = None, limits: Limits | None = None, **given: str
) -> AsyncIterator[httpx2.AsyncClient]:
    redis = connect(url)
    app = create_app(Settings.model_validate(given), JobStore(redis, url, room=room), limits=limits)
    try:
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app),
            base_url="http://localhost:8701",
            headers={"X-Posology-Tenant": tenant},
        ) as opened:
            yield opened
    finally:
        await redis.aclose()


def kind(response: httpx2.Response) -> str:
    return str(response.json()["type"]).rpartition(":")[2]


async def jobs(api: httpx2.AsyncClient, headers: Mapping[str, str]) -> httpx2.Response:
    return await api.post(
        "/v1/jobs", content=QUESTION, headers={"content-type": "application/json", **headers}
    )


@pytest.mark.parametrize(
    "host", ["evil.example:8701", "evil.example", "localhost.evil.example", "[::1", "10.0.0.1.evil"]
)
async def test_a_name_bound_to_this_machine_is_not_its_own(
    redis_url: str, tenant: str, host: str
) -> None:
    async with client(redis_url, tenant) as api:
        for path in ("/v1/jobs", "/metrics", "/healthz"):
            refused = await api.get(path, headers={"host": host})
            assert (refused.status_code, kind(refused)) == (421, "unknown-host")


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8701", "127.0.0.1:8701", "[::1]:8701", "10.0.0.7", "a.localhost"],
)
async def test_loopback_and_addresses_of_digits_are(redis_url: str, tenant: str, host: str) -> None:
    async with client(redis_url, tenant) as api:
        assert (await api.get("/v1/jobs", headers={"host": host})).status_code == 200


async def test_other_names_are_the_operators_to_give(redis_url: str, tenant: str) -> None:
    async with client(redis_url, tenant, POSOLOGY_HOSTS="Api.internal, b") as api:
        assert (await api.get("/v1/jobs", headers={"host": "api.internal:80"})).status_code == 200
        assert (await api.get("/v1/jobs", headers={"host": "c"})).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "http://localhost:3000"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
    ],
)
async def test_the_page_of_another_site_submits_nothing(
    redis_url: str, tenant: str, headers: Mapping[str, str]
) -> None:
    async with client(redis_url, tenant) as api:
        refused = await jobs(api, headers)
        assert (refused.status_code, kind(refused)) == (403, "foreign-origin")
        assert (await api.get("/v1/jobs")).json()["jobs"] == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "same-origin", "origin": "http://localhost:8701"},
    ],
)
async def test_its_own_page_and_programs_do(
    redis_url: str, tenant: str, headers: Mapping[str, str]
) -> None:
    async with client(redis_url, tenant) as api:
        assert (await jobs(api, headers)).status_code == 202


async def test_with_keys_neither_is_looked_at(redis_url: str, tenant: str) -> None:
    async with client(redis_url, tenant, POSOLOGY_AUTH="keys") as api:
        said = await jobs(api, {"host": "api.example", "origin": "https://console.example"})
        assert (said.status_code, kind(said)) == (401, "key-refused")


async def test_a_job_and_a_row_claim_no_fetch_of_others(redis_url: str, tenant: str) -> None:
    fetch = "ingest_0199a1b2c3d45f6e7a8b9c0d1e2f"
    async with client(redis_url, tenant) as api:
        refused = await api.post("/v1/jobs", json={"question": "Does it?", "fetch": fetch})
        assert (refused.status_code, refused.json()["field"]) == (422, "fetch")
        rows = json.dumps({"question": "Does it?", "fetch": fetch})
        made = await api.post(
            "/v1/batches", content=rows, headers={"content-type": "application/x-ndjson"}
        )
        assert made.json()["rejected"] == 1, made.text


async def test_a_batch_is_not_plain_text(redis_url: str, tenant: str) -> None:
    async with client(redis_url, tenant) as api:
        refused = await api.post(
            "/v1/batches", content=QUESTION, headers={"content-type": "text/plain"}
        )
        assert (refused.status_code, kind(refused)) == (415, "unsupported-media-type")


async def test_a_full_queue_is_429_with_the_time_to_wait(redis_url: str, tenant: str) -> None:
    async with client(redis_url, tenant, room=Room(queued=1)) as api:
        assert (await jobs(api, {})).status_code == 202
        refused = await jobs(api, {})
        assert (refused.status_code, kind(refused)) == (429, "queue-full")
        assert int(refused.headers["retry-after"]) >= 1
        assert (refused.json()["limit"], refused.json()["allowed"]) == ("queued", 1)
        rows = {"content-type": "application/x-ndjson"}
        batch = await api.post("/v1/batches", content=QUESTION, headers=rows)
        assert (batch.status_code, kind(batch)) == (429, "queue-full")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_passage", {"passage": "p:1"}),
        ("verify_quote", {"passage": "p:1", "quote": "so it was"}),
        ("find_quote", {"quote": "so it was"}),
        ("check_retraction", {"passages": ["p:1"]}),
    ],
)
async def test_what_reads_passages_takes_turns(
    redis_url: str, tenant: str, tool: str, arguments: Mapping[str, object]
) -> None:
    """One request of a tenant at a time works on a passage, through every door."""
    api = Context(settings=Settings(), limits=Limits(tenant_reads=1))
    desk, offer = (
        ServiceDesk(api=api, tenant=tenant, request=Request({"type": "http"})),
        OFFERS[tool],
    )
    async with api.reads.of(tenant):
        with pytest.raises(RequestProblem, match="under way") as caught:
            await offer.work(desk, offer.parse(arguments), _unheard)
    assert caught.value.status == 429
    async with client(redis_url, tenant, limits=Limits(tenant_reads=0)) as http:
        assert (await http.get("/v1/passages/p:1")).status_code == 429


async def _unheard(_: JobEvent) -> None:
    pass


async def test_an_upload_that_does_not_end_is_given_up(redis_url: str, tenant: str) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield QUESTION.encode()
        await anyio.sleep_forever()

    async with client(redis_url, tenant, limits=Limits(upload=0.05)) as api:
        refused = await api.post(
            "/v1/batches", content=slow(), headers={"content-type": "application/x-ndjson"}
        )
        assert (refused.status_code, kind(refused)) == (408, "upload-too-slow")


async def test_places_are_shared_fairly() -> None:
    places = Places("TooManyX", "x", total=3, each=1, queue=1)
    order: list[str] = []
    leave = anyio.Event()

    async def hold(tenant: str, entered: anyio.Event | None = None) -> None:
        async with places.of(tenant):
            order.append(tenant)
            if entered:
                entered.set()
            await leave.wait()

    async def status(tenant: str) -> int:
        with pytest.raises(RequestProblem) as caught:
            async with places.of(tenant):
                raise AssertionError
        assert caught.value.headers
        assert caught.value.headers["Retry-After"]
        return caught.value.status

    with anyio.fail_after(90):
        async with anyio.create_task_group() as group:
            inside = anyio.Event()
            group.start_soon(hold, "a", inside)
            await inside.wait()
            group.start_soon(hold, "a")
            while places.taken < 2:
                await anyio.lowlevel.checkpoint()
            # one inside, one waits: the third of this tenant does neither
            assert await status("a") == 429
            inside = anyio.Event()
            group.start_soon(hold, "b", inside)
            await inside.wait()
            assert order == ["a", "b"]
            assert await status("c") == 503
            leave.set()
    assert sorted(order) == ["a", "a", "b"]
    assert places.taken == 0
