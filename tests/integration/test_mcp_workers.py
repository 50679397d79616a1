"""An assistant's questions through a real stack: workers, a priced model, and a cap that many calls race for."""

from __future__ import annotations

import json
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.settings import Settings
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.budget.tenants.store import TenantStore
from posology.client import Client as Service
from posology.store.connection import connect
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub
from posology.types import Limits

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CAP = Decimal("0.0015")
ASKED = {"question": "Did aspirin lower the risk of stroke?"}


async def test_many_calls_never_spend_more_than_their_tenants_cap(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    texts = [f"Aspirin lowered the risk of stroke in group {n} of adults." for n in range(16)]
    lines = (json.dumps({"id": f"t:{n}", "text": text}) for n, text in enumerate(texts))
    rows.write_text("\n".join(lines), encoding="utf-8")
    place, encoder = str(tmp_path / "index"), str(tiny_encoder)
    run_ingest([rows], Settings(), Target(place=place, embedder=encoder))
    with LoadStub(Faults(latency=(0.2, 0.2))) as stub:
        options = StackOptions(
            environment=os.environ,
            folder=tmp_path / "stack",
            workers=1,
            concurrency=20,
            api=True,
            port=0,
            index=place,
            overrides={
                "POSOLOGY_EMBEDDER": encoder,
                "POSOLOGY_MODEL": "openai:gpt-4o-mini",
                "OPENAI_API_KEY": "sk-test",
                "OPENAI_BASE_URL": stub.openai_url,
            },
        )
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(running_stack(options)) as info,
        ):
            redis = connect(info.redis_url)
            try:
                issued = await TenantStore(redis, info.redis_url).create("acme", Limits(day=CAP))
            finally:
                await redis.aclose()
            url = str(info.api_url)
            found = await _race(url, issued.key)
            async with Service(url, api_key=issued.key) as client:
                spend = await client.spend()
    assert set(found) == {"answered", 402}, found
    (day,) = [balance for balance in spend.balances if balance.scope == "day"]
    assert 0 < day.spent_usd + day.reserved_usd <= CAP


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
