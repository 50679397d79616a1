"""A Redis that hangs: it accepts connections and never replies. Everybody is told so within seconds."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from redis import Redis as SyncRedis
from starlette.requests import Request
from typer.testing import CliRunner

from orchestrator.api.app import create_app
from orchestrator.api.context import Context, Limits
from orchestrator.api.mcp.server import make_server
from orchestrator.api.mcp.service import ServiceDesk
from orchestrator.cli.app import app as commands
from orchestrator.console.routes import ROUTES as CONSOLE
from orchestrator.jobs import tenants
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from orchestrator.stack.redis_server import find_server
from posology.errors import StoreUnavailable
from posology.store.connection import LONG, SHORT, connect
from posology.types import JobState

#: statuses of routes that answer without Redis, the last three from a folder; every other route must say 503
NEEDS_NO_REDIS = {
    "/healthz": 200,
    "/metrics": 200,
    "/openapi.json": 200,
    "/v1/index/files": 403,
    "/v1/index/fetches": 403,
    "/v1/index/ingests": 200,
    "/v1/index/ingests/{ingest}": 404,
    "/v1/models": 200,
    "/v1/models/{model}": 404,
}
#: of a command while Redis hangs, in a test that need not wait for it
SOON = 0.5
BODY = {"question": "Does aspirin help?"}
BODIES: dict[str, Any] = {
    "/feedback": {"score": 1.0},
    "/search": {"query": BODY["question"]},
    "/quotes": {"quote": "Aspirin reduced pain."},
    "/webhooks": {"url": "https://example.org/hook"},
    "/completions": {
        "model": "posology",
        "messages": [{"role": "user", "content": BODY["question"]}],
    },
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """A ``redis-server`` that can be stopped and continued."""

    url: str
    pid: int

    @contextmanager
    def hung(self) -> Iterator[None]:
        os.kill(self.pid, signal.SIGSTOP)
        # a signal is not carried out at once
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)
        while not self._stopped():
            time.sleep(0.01)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def _stopped(self) -> bool:
        stats = Path(f"/proc/{self.pid}/task").glob("*/stat")
        # without /proc, what the kernel reported must do
        return all(stat.read_text().rpartition(") ")[2].startswith("T") for stat in stats)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("hung")
    socket = folder / "redis.sock"
    binary = str(find_server(os.environ.get("PATH")))
    command = [binary, "--port", "0", "--unixsocket", str(socket), "--dir", str(folder),
               "--save", "", "--appendonly", "no"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 90
            while not socket.exists():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield Server(url=f"unix://{socket}", pid=process.pid)
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """The bounds in seconds of all waits for Redis that ran out."""
    found: list[float | None] = []
    bounded = asyncio.timeout

    @asynccontextmanager
    async def timeout(seconds: float | None) -> AsyncIterator[None]:
        try:
            async with bounded(seconds):
                yield
        except TimeoutError:
            found.append(seconds)
            raise

    monkeypatch.setattr("posology.store.connection.asyncio.timeout", timeout)
    return found


@asynccontextmanager
async def api(url: str, seconds: float) -> AsyncIterator[tuple[httpx2.AsyncClient, JobStore]]:
    redis: Any = connect(url)
    # opens a connection, without the bound under test
    await redis.ping()
    redis.seconds = seconds
    store = JobStore(redis, url)
    transport = httpx2.ASGITransport(create_app(Settings(), store), raise_app_exceptions=False)
    try:
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client, store
    finally:
        await redis.aclose()


def operations() -> list[tuple[str, str, Any]]:
    """Every operation of the API: method, path and an example of its body."""
    found: list[tuple[str, str, Any]] = []
    for path, methods in create_app(Settings()).openapi()["paths"].items():
        for method, operation in methods.items():
            bodies = operation.get("requestBody", {}).get("content", {})
            found.append((method.upper(), path, next(iter(bodies), None)))
    return found


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("method", "path", "kind"), operations(), ids=lambda one: str(one).replace("/", "-")
)
async def test_every_route_says_so(
    server: Server, waits: list[float | None], method: str, path: str, kind: str | None
) -> None:
    place = path.replace("{batch}", f"batch_{'0' * 28}").replace("{", "").replace("}", "_1")
    body = next((one for end, one in BODIES.items() if path.endswith(end)), BODY)
    async with api(server.url, SOON) as (client, _):
        with server.hung():
            headers = {"Content-Type": kind} if kind else {}
            reply = await client.request(
                method, place, headers=headers, json=body if kind else None
            )
    assert len(waits) <= 1
    assert reply.status_code == NEEDS_NO_REDIS.get(path, 503), reply.text


#: statuses of pages of the console that need no Redis; every other page must say 503
SHOWN = {"/console": 303, "/console/sign-in": 303, "/console/oidc/start": 404, "/console/oidc/return": 404, "/console/ask": 200, "/console/compare": 200,
         "/console/static/{digest}/{name}": 404, "/console/{rest:path}": 404, "/console/reconciliations": 200,
         "/console/reconciliations/{report}": 404, "/console/compare/{run}": 404,
         "/console/compare/{run}/figures/{figure}": 404}  # fmt: skip


@pytest.mark.anyio
async def test_every_page_of_the_console_says_so(server: Server, waits: list[float | None]) -> None:
    async with api(server.url, SOON) as (client, _):
        for path in [route.path for route in CONSOLE if "GET" in (route.methods or ())]:
            place = path.replace("{batch}", f"batch_{'0' * 28}").replace("{form}", "csv")
            place = place.replace("{", "").replace("}", "_1")
            waits.clear()
            with server.hung():
                reply = await client.get(place)
            assert len(waits) <= 1, path
            assert reply.status_code == SHOWN.get(path, 503), path


@pytest.mark.anyio
async def test_a_tool_of_an_assistant_says_so(server: Server) -> None:
    redis: Any = connect(server.url)
    await redis.ping()
    redis.seconds = SOON
    desk = ServiceDesk(
        api=Context(settings=Settings(), limits=Limits(), store=JobStore(redis, server.url)),
        tenant="default",
        request=Request({"type": "http"}),
    )
    try:
        async with Client(make_server(lambda _: desk)) as client:
            with server.hung():
                found = await client.call_tool("ask", BODY)
    finally:
        await redis.aclose()
    assert found.is_error
    assert found.structured_content["status"] == 503


@pytest.mark.anyio
async def test_what_is_sent_again_with_its_key_is_one_job(server: Server) -> None:
    key = {"Idempotency-Key": "once"}
    async with api(server.url, SOON) as (client, store):
        # known to the pool, so that the question itself is on its way when the server hangs
        await store.run("admit", "posology:{default}:", "openai:x", 0)
        with server.hung():
            for _ in range(2):
                refused = await client.post("/v1/jobs", json=BODY, headers=key)
                assert refused.status_code == 503
        made = await client.post("/v1/jobs", json=BODY, headers=key)
        assert made.status_code in (200, 202)
        again = await client.post("/v1/jobs", json=BODY, headers=key)
        assert (again.status_code, again.json()["id"]) == (200, made.json()["id"])
        found = await store.page(state=JobState.QUEUED)
        assert [job.id for job in found.jobs] == [made.json()["id"]]
        # and workers find it, whichever of the submissions made it
        await tenants.tidy(store)
        assert "default" in await tenants.waiting(store)


@pytest.mark.anyio
async def test_a_command_that_was_given_up_leaves_its_connection_usable(server: Server) -> None:
    redis = connect(server.url, seconds=SOON)
    try:
        await redis.set("a", "1")
        with server.hung():
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await redis.get("a")
            async with redis.pipeline() as pipe:
                pipe.get("a")
                with pytest.raises(TimeoutError):
                    await pipe.execute()
        # no reply of a command before is taken for that of the next
        assert await redis.get("b") is None
        assert await redis.get("a") == "1"
    finally:
        await redis.aclose()


def test_a_person_waits_for_less_than_a_worker() -> None:
    assert SHORT + 1 <= 5 < LONG


COMMANDS = (
    ["jobs", "list"], ["jobs", "show", "job_1"], ["jobs", "cancel", "job_1"], ["jobs", "retry", "job_1"],
    ["jobs", "watch", "job_1"], ["submit", "Does it?"], ["spend"], ["spend", "--all"], ["tenants", "list"],
    ["tenants", "create", "acme"], ["tenants", "show", "acme"], ["tenants", "set", "acme", "--day", "1"], ["tenants", "disable", "acme"], ["tenants", "revoke-key", "acme", "0"], ["ledger", "verify"],
    ["ledger", "verify", "--all"], ["batches", "list"], ["batches", "show", f"batch_{'0' * 28}"],
    ["batches", "cancel", f"batch_{'0' * 28}"], ["ask", "Does it?", "--index", "none"],
    ["policy", "feedback", "job_1", "--score", "1"], ["ledger", "rebuild"], ["ledger", "settle-orphans"], ["webhook", "list"],
    ["webhook", "create", "https://example.org/"], ["webhook", "test", "wh_1"], ["webhook", "rotate", "wh_1"], ["jobs", "retry", "--all-failed"],
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_every_command_says_so(
    server: Server,
    waits: list[float | None],
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {"POSOLOGY_REDIS_URL": server.url}
    # imports the modules of the command
    assert CliRunner().invoke(commands, arguments, env=environment).exit_code != 9
    with SyncRedis.from_url(server.url) as client:
        client.flushdb()
    with server.hung():
        done = CliRunner().invoke(commands, arguments, env=environment)
    assert done.exit_code == StoreUnavailable.exit_code, done.output
    # no stack runs here, and one is of no use while Redis hangs
    assert "does not answer" in done.output
    assert "posology up" not in done.output
    # one wait, however many commands of Redis would follow
    assert waits == [SHORT]
