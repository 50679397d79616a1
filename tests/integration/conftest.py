"""A real Redis for all tests that need one, and jobs that end without a worker."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from orchestrator.jobs import keys
from orchestrator.jobs.store import JobStore
from orchestrator.stack.redis_server import find_server
from posology.errors import ConfigurationError


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
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
            deadline = time.monotonic() + 20
            while not socket.exists():
                assert time.monotonic() < deadline, "Redis did not start in 20 s"
                time.sleep(0.02)
            yield f"unix://{socket}"
        finally:
            process.terminate()


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test has."""
    return f"t{uuid.uuid4().hex}"


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
    }  # fmt: skip
    await store.run("open_attempt", prefix, job, "answer", token, json.dumps(opening))
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
        "decision": {"strategy": "direct", "policy": "fixed", "reason": "it is fixed"},
        "spending": {"attempts": [], "usage": {}, "usage_complete": True, "cost_usd": "0"},
        "retrieved": [], "index": "none", "retrieval_seconds": 0.0, "seconds": 0.0,
    }  # fmt: skip
