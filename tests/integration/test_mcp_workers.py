"""An assistant's questions through a real stack: workers, a priced model, and a cap that many calls race for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.raced import CAP, raced

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ASKED = {"question": "Did aspirin lower the risk of stroke?"}


async def test_many_calls_never_spend_more_than_their_tenants_cap(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    found, gone = await raced(tmp_path, tiny_encoder, _race)
    assert set(found) == {"answered", 402}, found
    assert 0 < gone <= CAP


async def _race(url: str, key: str) -> Counter[str | int]:
    """Ask 20 questions at once, and return how they ended."""
    found: Counter[str | int] = Counter()

    async def ask(client: Client) -> None:
        result = await client.call_tool("ask", ASKED)
        found[result.structured_content["status"]] += 1

    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=240) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        anyio.create_task_group() as group,
    ):
        for _ in range(20):
            group.start_soon(ask, client)
    return found
