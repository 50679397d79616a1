"""The API as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import httpx2
import pytest

from orchestrator.stack.ports import free_port
from posology.client import Client

pytestmark = pytest.mark.anyio


@contextmanager
def process(**environment: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port("127.0.0.1")
    command = [
        sys.executable, "-m", "uvicorn", "--factory", "orchestrator.api.app:from_environment",
        "--port", str(port), "--log-level", "warning",
    ]  # fmt: skip
    with subprocess.Popen(command, env={**os.environ, **environment}) as running:
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + 90
            while True:
                assert time.monotonic() < deadline
                assert running.poll() is None
                try:
                    httpx2.get(f"{url}/healthz", trust_env=False, timeout=60).raise_for_status()
                    break
                except httpx2.TransportError:
                    time.sleep(0.05)
            yield running, url
        finally:
            running.kill()


@pytest.mark.slow
async def test_it_ends_in_time_although_somebody_watches(redis_url: str, tenant: str) -> None:
    with process(POSOLOGY_REDIS_URL=redis_url) as (running, url):
        async with Client(url, tenant=tenant, attempts=1) as client:
            job = await client.submit("Does it?")
            events = client.events(job.id)
            assert (await anext(events)).data == {"state": "queued"}
            running.send_signal(signal.SIGTERM)
            with anyio.fail_after(90):
                while running.poll() is None:  # noqa: ASYNC110  # a process's end
                    await anyio.sleep(0.05)
            assert running.returncode in (0, -signal.SIGTERM)
            await events.aclose()


def test_a_wrong_environment_is_named_and_not_shown() -> None:
    command = [sys.executable, "-c", "from orchestrator.api.app import from_environment as f; f()"]
    environment = {**os.environ, "POSOLOGY_ATTEMPTS": "secret"}
    run = subprocess.run(
        command, check=False, env=environment, capture_output=True, text=True, timeout=60
    )
    assert run.returncode
    assert "POSOLOGY_ATTEMPTS" in run.stderr.splitlines()[-1]
    assert "secret" not in run.stderr
