"""The access log: one line for each request, with its id, and without anything that a caller wrote."""

from __future__ import annotations

import logging
from typing import Any

import httpx2
import pytest
from redis.asyncio import Redis
from structlog.contextvars import get_contextvars

from orchestrator.api import problems
from orchestrator.api.app import create_app
from orchestrator.jobs.store import JobStore
from orchestrator.logs.events import EVENTS
from orchestrator.settings import Settings
from posology.errors import RequestRejected
from posology.version import __version__

pytestmark = pytest.mark.anyio

QUESTION = "Does zyxomab cure lattice fever?"


async def ask(
    redis: Redis, url: str, method: str, path: str, **more: Any
) -> tuple[httpx2.Response, list[str]]:
    app = create_app(Settings(), JobStore(redis, url))
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        reply = await client.request(method, path, **more)
    return reply, list(get_contextvars())


@pytest.mark.parametrize(
    ("method", "path", "route", "status"),
    [
        ("GET", "/v1/jobs/job_zyxomab", "/v1/jobs/{job}", 404),
        ("GET", "/v1/jobs", "/v1/jobs", 200),
        ("POST", "/v1/jobs", "/v1/jobs", 202),
        ("GET", "/zyxomab", "none", 404),
        ("GET", "/healthz", "/healthz", 200),
    ],
)
async def test_every_request_has_one_line(
    redis: Redis,
    redis_url: str,
    tenant: str,
    caplog: pytest.LogCaptureFixture,
    method: str,
    path: str,
    route: str,
    status: int,
) -> None:
    caplog.set_level(logging.DEBUG, logger=EVENTS)
    headers = {"X-Posology-Tenant": tenant, "X-Request-ID": "trace/7"}
    body = {"question": QUESTION} if method == "POST" else None
    reply, left = await ask(redis, redis_url, method, path, headers=headers, json=body)
    assert reply.status_code == status
    assert reply.headers["x-request-id"] == "trace/7"
    # no cache on the way keeps what is of one tenant
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["posology-version"] == __version__
    (line,) = [one for one in caplog.records if one.getMessage() == "request"]
    fields = vars(line)["fields"]
    assert (fields["method"], fields["route"], fields["status"]) == (method, route, status)
    # a request with an unknown parameter is refused before its tenant is looked up
    known = route.startswith("/v1") and status != 422
    assert fields["tenant"] == (tenant if known else None)
    assert fields["client"] == "127.0.0.1"
    assert line.levelno == (logging.DEBUG if route == "/healthz" else logging.INFO)
    assert "zyxomab" not in str([vars(one) for one in caplog.records])
    # nothing of a request is left for the next one
    assert left == []


async def test_a_defect_has_the_headers_of_every_reply(redis: Redis, redis_url: str) -> None:
    app = create_app(Settings(), JobStore(redis, redis_url))

    @app.get("/broken")
    async def broken() -> None:
        raise ValueError(QUESTION)

    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        reply = await client.get("/broken", headers={"X-Request-ID": "trace/7"})
    assert reply.status_code == 500
    assert reply.headers["posology-version"] == __version__
    assert reply.headers["x-request-id"] == "trace/7"
    assert reply.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("given", ["", "two words", "x" * 129, '{"event": "forged"}', "é"])
async def test_an_id_that_could_forge_lines_is_replaced(
    redis: Redis, redis_url: str, given: str
) -> None:
    headers = {"X-Request-ID": given.encode()}
    reply, _ = await ask(redis, redis_url, "GET", "/healthz", headers=headers)
    assert reply.headers["x-request-id"].isalnum()
    assert len(reply.headers["x-request-id"]) == 32


@pytest.mark.parametrize(
    "error", [RequestRejected(QUESTION, provider="openai", model="m"), ValueError(QUESTION)]
)
def test_messages_that_may_quote_are_not_logged(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    instance = problems._logged(error)
    (line,) = caplog.records
    assert vars(line)["fields"] == {"instance": instance}
    assert "zyxomab" not in line.getMessage()
    assert type(error).__name__ in line.getMessage()
