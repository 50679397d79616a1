"""Webhooks from a real stack: the API takes the endpoint, and workers deliver."""

from __future__ import annotations

from pathlib import Path

import anyio
import httpx2
import pytest
from standardwebhooks import Webhook

from posology.client import Client
from tests.support.raced import raced
from tests.support.receiver import receiving

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_a_worker_tells_of_the_job_that_it_ended(tiny_encoder: Path, tmp_path: Path) -> None:
    async with receiving() as receiver:
        came = anyio.Event()

        async def arrived() -> None:
            came.set()

        receiver.before = arrived

        async def ask(url: str, key: str) -> tuple[str, str]:
            headers = {"Authorization": f"Bearer {key}"}
            async with httpx2.AsyncClient(base_url=url, headers=headers) as http:
                made = await http.post("/v1/webhooks", json={"url": receiver.url})
                assert made.status_code == 201, made.text
            async with Client(url, api_key=key) as client:
                job = await client.submit("Did aspirin lower the risk of stroke?")
            with anyio.fail_after(90):
                await came.wait()
            return str(made.json()["secret"]), job.id

        allowed = {"POSOLOGY_WEBHOOK_NETWORKS": "127.0.0.0/8"}
        (secret, job), spent = await raced(tmp_path, tiny_encoder, ask, **allowed)
    (got,) = receiver.received
    told = Webhook(secret).verify(got.body, got.headers)["data"]
    assert (told["job"], told["state"], told["status"]) == (job, "succeeded", "answered")
    assert float(told["charged_usd"]) == float(spent)
