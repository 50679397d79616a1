"""Chat completions through a real stack: workers, a priced model, and a cap that many questions race for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import openai
import pytest
from openai import AsyncOpenAI

from tests.support.raced import CAP, raced

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ASKED: Any = [{"role": "user", "content": "Did aspirin lower the risk of stroke?"}]


async def test_many_chats_never_spend_more_than_their_tenants_cap(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    found, gone = await raced(tmp_path, tiny_encoder, _race)
    assert set(found) == {"stop", "insufficient_quota"}, found
    assert 0 < gone <= CAP


async def _race(url: str, key: str) -> Counter[str]:
    """Ask 20 questions at once, in both ways, and return how they ended."""
    found: Counter[str] = Counter()

    async def ask(client: AsyncOpenAI, n: int) -> None:
        try:
            if n % 2:
                plain = await client.chat.completions.create(model="posology", messages=ASKED)
                assert "Aspirin lowered the risk" in str(plain.choices[0].message.content)
            else:
                stream = await client.chat.completions.create(
                    model="posology", messages=ASKED, stream=True
                )
                async for _ in stream:
                    pass
        except openai.APIError as error:
            found[str(error.type)] += 1
        else:
            found["stop"] += 1

    async with (
        AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=240) as client,
        anyio.create_task_group() as group,
    ):
        for n in range(20):
            group.start_soon(ask, client, n)
    return found
