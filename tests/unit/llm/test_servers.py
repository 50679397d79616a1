"""Replies in the forms that servers document, and what comes of each: text, finish, usage, error, attempts and charge.

A file of ``servers/`` is a server and version. Each reply is sent to every attempt; ``@GOOD`` stands for the object that was
asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from posology import errors
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.testing import FlatPrices, by_bytes
from posology.testing.provider.streaming import (
    FRAMES,
    SENT_EVENTS,
    anthropic_stream,
    framed,
    openai_stream,
)
from posology.types import Finish, Usage
from tests.support.calls import a_call
from tests.support.clouds import adapter_to

pytestmark = pytest.mark.anyio


class Answered(BaseModel):
    answer: str
    sources: list[int]


GOOD = Answered(answer="Salt drops lowered falls.", sources=[1])
NOWHERE: Any = SimpleNamespace(
    openai_url="http://127.0.0.1:9/v1",
    anthropic_url="http://127.0.0.1:9",
    vertex_url="http://127.0.0.1:9/v1",
)
#: where a model may not have any name
NAMES = {"bedrock": "anthropic.m"}
ATTEMPTS = 3


def replies() -> Iterator[Any]:
    for path in sorted((Path(__file__).parent / "servers").glob("*.json")):
        quoted = json.dumps(GOOD.model_dump_json())[1:-1]
        text = path.read_text(encoding="utf-8").replace("@GOOD", quoted)
        found = json.loads(text)
        for reply in found["replies"]:
            name = f"{path.stem}: {reply['case']}"
            yield pytest.param(found["provider"], reply, id=name)


def as_a_whole(_provider: str, body: Any) -> tuple[bytes, str]:
    """A reply, and its media type."""
    return json.dumps(body).encode(), "application/json"


def as_a_stream(provider: str, body: dict[str, Any]) -> tuple[bytes, str]:
    """A reply as its server streams it: the wire as :mod:`posology.testing` writes it."""
    if provider in ("openai", "azure"):
        asked = {"stream_options": {"include_usage": True}}
        return b"".join(openai_stream(body, asked)), SENT_EVENTS
    events = list(anthropic_stream(body, {}))
    if provider == "bedrock":
        return b"".join(map(framed, events)), FRAMES
    return b"".join(events), SENT_EVENTS


async def no_wait(_seconds: float) -> None:
    return


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("form", [as_a_whole, as_a_stream])
@pytest.mark.parametrize(("provider", "reply"), list(replies()))
async def test_a_reply_gives_what_its_server_means(
    provider: str, reply: dict[str, Any], form: Any
) -> None:
    gives, account = reply["gives"], Account()
    status, body, before = reply.get("status", 200), reply["body"], reply.get("before", "")
    text, kind = str(body), "application/json"
    if not isinstance(body, str):
        if form is as_a_stream and (status != 200 or before):
            pytest.skip("only a reply is streamed")
        text, kind = form(provider, body)
        text = before.encode() + text
    headers = {"content-type": kind} | reply.get("headers", {})
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(status, content=text, headers=headers)
    )
    async with httpx2.AsyncClient(transport=transport) as client:
        complete = build(
            adapter_to(provider, NOWHERE, client=client),
            journal=account,
            prices=FlatPrices(),
            bound=by_bytes,
            retry=RetryPolicy(attempts=ATTEMPTS),
            caller=Caller(sleep=no_wait),
        )
        call = a_call(model=f"{provider}:{NAMES.get(provider, 'm')}", schema=Answered)
        if "error" not in gives:
            completion = await complete(call)
            (attempt,) = account.attempts
            filtered = gives["finish"] == Finish.FILTERED
            assert completion.parsed == (None if filtered else GOOD)
            assert completion.finish == gives["finish"]
            assert completion.usage == attempt.usage == usage_of(gives["tokens"])
            return
        with pytest.raises(errors.ProviderError) as caught:
            await complete(call)
    assert type(caught.value).__name__ == gives["error"]
    for words in gives["says"]:
        assert words in str(caught.value)
    assert [(a.call, a.attempt) for a in account.attempts] == [
        (1, n + 1) for n in range(gives["attempts"])
    ]
    for attempt in account.attempts:
        charged = {"nothing": Decimal(0), "bound": attempt.reserved}.get(gives["charged"])
        if charged is None:
            assert attempt.usage is not None
            charged = FlatPrices().cost("m", attempt.usage)
            assert charged
        assert attempt.charged == charged


def usage_of(tokens: list[int] | None) -> Usage | None:
    if tokens is None:
        return None
    plain, read, output, reasoning = tokens
    return Usage(input=plain, cache_read=read, output=output, reasoning=reasoning)
