"""A real Redis for all tests that need one, and jobs that end without a worker."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from redis import Redis as SyncRedis
from redis.asyncio import Redis

from orchestrator.api.app import create_app
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from orchestrator.stack.redis_server import find_server
from posology.errors import ConfigurationError
from posology.store import keys
from posology.store.connection import connect
from tests.integration.jobs_store.helpers import Bench, open_bench
from tests.support.commands import Cli, command_line
from tests.support.console_bench import CONSOLE_KEY, Console, open_console
from tests.support.desk import Desk, open_desk

# what the machine's own comparisons say of a difference
pytest.register_assert_rewrite("tests.integration.jobs_store.machine")


_URL = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def redis_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A ``redis-server`` of this test process, which keeps nothing."""
    try:
        server = find_server(os.environ.get("PATH"))
    except ConfigurationError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("redis")
    socket = folder / "redis.sock"
    command = [str(server), "--port", "0", "--unixsocket", str(socket), "--dir", str(folder),
               "--save", "", "--appendonly", "no"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 90
            while not socket.exists():
                assert time.monotonic() < deadline, "Redis did not start in 90 s"
                time.sleep(0.02)
            request.config.stash[_URL] = f"unix://{socket}"
            yield f"unix://{socket}"
        finally:
            process.terminate()


@pytest.fixture(autouse=True, scope="module")
def _forget(request: pytest.FixtureRequest) -> Iterator[None]:
    """Redis forgets the tenants of a module's tests: what reads those of all has few to read."""
    yield
    if url := request.config.stash.get(_URL, None):
        with SyncRedis.from_url(url) as client:
            client.flushdb()


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    """A connection to it, as the system itself has one."""
    client = connect(redis_url)
    try:
        yield client
    finally:
        await client.aclose()


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test has."""
    return f"t{uuid.uuid4().hex}"


@pytest.fixture
def cli(redis_url: str, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs commands of the tenant, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    named = {"POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_TENANT": tenant, "COLUMNS": "200"}
    return command_line(named)


@pytest.fixture
async def bench(redis_url: str, tenant: str) -> AsyncIterator[Bench]:
    """Jobs of the tenant, whose time the test moves."""
    async with open_bench(redis_url, tenant) as opened:
        yield opened


@pytest.fixture
async def visitor(redis: Redis, redis_url: str, tenant: str) -> AsyncIterator[Console]:
    """The console of an API with keys, and nobody has signed in."""
    async with open_console(redis, redis_url, tenant) as opened:
        yield opened


@pytest.fixture
async def user(visitor: Console) -> Console:
    """The console, after the tenant has signed in."""
    await visitor.sign_in()
    return visitor


@pytest.fixture
async def chief(visitor: Console) -> Console:
    """The console, after the operator has signed in."""
    await visitor.sign_in(CONSOLE_KEY)
    return visitor


@pytest.fixture
async def desk(redis_url: str, tenant: str) -> AsyncIterator[Desk]:
    """Webhooks of the tenant, and who receives them."""
    async with open_desk(redis_url, tenant) as opened:
        yield opened


@pytest.fixture
def store(redis: Redis, redis_url: str) -> JobStore:
    return JobStore(redis, redis_url)


@pytest.fixture
async def client(store: JobStore, tenant: str) -> AsyncIterator[httpx2.AsyncClient]:
    """Asks an API without keys as the tenant; it buffers responses, so streams are tested over a socket."""
    app = create_app(Settings(), store)
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app, raise_app_exceptions=False),
        base_url="http://localhost",
        headers={"X-Posology-Tenant": tenant},
    ) as opened:
        yield opened


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """An API that serves on a port."""

    app: FastAPI
    url: str


@contextmanager
def _serve(app: FastAPI) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = time.monotonic() + 90
        while not server.started:
            assert time.monotonic() < deadline, "the API did not start in 90 s"
            assert thread.is_alive(), "the API ended"
            time.sleep(0.02)
        host, port = server.servers[0].sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        thread.join(90)
    assert not thread.is_alive()


Serve = Callable[[FastAPI], AbstractContextManager[str]]


@pytest.fixture(scope="session")
def serve() -> Serve:
    """Serves an app on a port, in a thread of this process."""
    return _serve


@pytest.fixture(scope="session")
def served(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The API on the tests' Redis. It has a folder of uploads, which keys alone would open."""
    uploads = tmp_path_factory.mktemp("uploads")
    settings = {"POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_UPLOADS": str(uploads)}
    app = create_app(Settings.model_validate(settings))
    with _serve(app) as url:
        yield Served(app=app, url=url)


Finish = Callable[..., Awaitable[str | None]]


@pytest.fixture
def finish() -> Finish:
    """Ends the job that has waited longest, by the scripts that workers use; ``None``: none waits."""
    return _finish


async def _finish(
    store: JobStore, tenant: str, *, state: str = "succeeded", nano: int | None = 1_000
) -> str | None:
    prefix = keys.prefix(tenant)
    member = await store.run("take", prefix)
    if member is None:
        return None
    job = str(member).partition("|")[0]
    _, token, *_ = await store.run("claim", prefix, job, "answer", job, "test", 15_000)
    opening = {
        "id": f"{job}-1", "call": None, "attempt": 1, "stage": "answer", "model": "openai:x",
        "prompt": {"name": "answer", "digest": "0" * 16}, "key": "k", "started": 1.0,
        "strategy": "direct",
    }  # fmt: skip
    await store.run("open_attempt", prefix, job, "answer", token, json.dumps(opening), 2_000)
    closing = {"outcome": "ok", "error": None, "latency": 0.5, "request_id": None,
               "usage": {"input": 10}, "cost": None if nano is None else nano / 1e9}  # fmt: skip
    await store.run(
        "close_attempt", prefix, job, f"{job}-1", "ok", json.dumps(closing),
        "" if nano is None else nano, 10, 0, 500, "",
    )  # fmt: skip
    question = (await store.get(job, tenant=tenant)).question
    payload = _refusal(question) if state == "succeeded" else _FAILURE
    await store.run("conclude", prefix, job, "answer", token, state, json.dumps(payload))
    return job


_FAILURE = {
    "type": "ProviderUnreachable", "message": "no \x1b[31mconnection", "exit_code": 6,
    "details": {}, "spending": None,
}  # fmt: skip


def _refusal(question: str) -> dict[str, Any]:
    return {
        "status": "refused", "question": question, "form": "free", "model": "openai:x",
        "answer": None, "choice": None, "refusal": "Not in \x1b[31mthere.", "evidence": [],
        "dropped_quotes": 0, "notes": [], "conflicts": [], "coverage": None, "strategy": "direct",
        "decision": {"dose": {"strategy": "direct"}, "policy": "fixed", "reason": "it is fixed"},
        "spending": {"attempts": [], "usage": {}, "usage_complete": True, "cost_usd": "0",
                     "charged_usd": "0"},
        "retrieved": [], "index": "none", "retrieval_seconds": 0.0, "seconds": 0.0,
    }  # fmt: skip
