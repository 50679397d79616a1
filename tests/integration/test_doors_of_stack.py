"""Doors of a real stack: questions that race for a cap in each form, and webhooks that workers deliver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import openai
import pytest
from mcp.client.client import Client as Assistant
from mcp.client.streamable_http import streamable_http_client
from openai import AsyncOpenAI
from standardwebhooks import Webhook

from posology.client import Client
from posology.published.problems import URN
from tests.support.raced import CAP, raced
from tests.support.receiver import receiving

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

QUESTION = "Did aspirin lower the risk of stroke?"
#: questions that are asked at once
MANY = 20
#: error of a question for which calls in flight hold what is left, and of which a slow machine makes it wait too long
RESERVED = "headroom-reserved"


async def chats(url: str, key: str) -> Counter[str]:
    """Ask in the form of chat completions, whole and streamed, and return how each ended."""
    found: Counter[str] = Counter()
    asked: Any = {"model": "posology", "messages": [{"role": "user", "content": QUESTION}]}

    async def ask(client: AsyncOpenAI, n: int) -> None:
        try:
            if n % 2:
                plain = await client.chat.completions.create(**asked)
                assert "Aspirin lowered the risk" in str(plain.choices[0].message.content)
            else:
                async for _ in await client.chat.completions.create(**asked, stream=True):
                    pass
        except openai.APIError as error:
            found[RESERVED if error.code == RESERVED else str(error.type)] += 1
        else:
            found["answered"] += 1

    async with (
        AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=240) as client,
        anyio.create_task_group() as group,
    ):
        for n in range(MANY):
            group.start_soon(ask, client, n)
    return found


async def tools(url: str, key: str) -> Counter[str]:
    """Ask by the tool of an assistant, and return how each ended."""
    found: Counter[str] = Counter()

    async def ask(client: Assistant, n: int) -> None:
        # without a key, equal calls are one job; a question that takes longer than a call is pending
        asked = {"question": QUESTION, "idempotency_key": f"asked-{n}"}
        status = "pending"
        while status == "pending":
            result = await client.call_tool("ask", asked)
            said = result.structured_content
            status = str(said["status"])
        found[RESERVED if said.get("type") == URN + RESERVED else status] += 1

    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=240) as http,
        Assistant(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        anyio.create_task_group() as group,
    ):
        for n in range(MANY):
            group.start_soon(ask, client, n)
    return found


@pytest.mark.parametrize(("race", "refused"), [(chats, "insufficient_quota"), (tools, "402")])
async def test_many_questions_never_spend_more_than_their_tenants_cap(
    tiny_encoder: Path,
    tmp_path: Path,
    race: Callable[[str, str], Awaitable[Counter[str]]],
    refused: str,
) -> None:
    found, gone = await raced(tmp_path, tiny_encoder, race)
    assert found["answered"]
    assert set(found) <= {"answered", refused, RESERVED}, found
    assert 0 < gone <= CAP


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
                job = await client.submit(QUESTION)
            with anyio.fail_after(90):
                await came.wait()
            return str(made.json()["secret"]), job.id

        allowed = {"POSOLOGY_WEBHOOK_NETWORKS": "127.0.0.0/8"}
        (secret, job), spent = await raced(tmp_path, tiny_encoder, ask, **allowed)
    (got,) = receiver.received
    told = Webhook(secret).verify(got.body, got.headers)["data"]
    assert (told["job"], told["state"], told["status"]) == (job, "succeeded", "answered")
    assert float(told["charged_usd"]) == float(spent)
