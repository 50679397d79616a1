"""What a call to a provider costs this machine: ``python -m evals.provider_load``.

A stub provider in a process of its own replies after 0.2 s. First a bare HTTP client shows what the
stub can bear, so that what follows is not the stub's limit; then each adapter, and for comparison the
OpenAI SDK's method for chats, makes the same calls from one event loop. The calls carry ten passages
and the schema of an answer.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import openai

from posology.llm.providers.anthropic import AnthropicAdapter
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.schema import response_schema
from posology.query import make_query
from posology.testing import Faults, LoadStub
from posology.types import Call, Excerpt, Passage, Sentence, Stage
from prompts.answer import AnswerReply, render_answer

LATENCY = 0.2
SECONDS = 4.0
#: concurrent connections of the bare client, and concurrent calls of the adapters
BARE = (100, 300, 600)
CALLS = (64, 128)
TEXT = "Aspirin lowered the risk of stroke in adults by ten percent. " * 20
Once = Callable[[], Awaitable[object]]


def call_to(model: str) -> Call:
    """A call with ten passages of 1,200 characters."""
    query = make_query("Does aspirin prevent stroke?")
    shown = (Sentence(start=0, end=len(TEXT)),)
    excerpts = tuple(
        Excerpt(passage=Passage(id=f"p{n}", title="A trial", text=TEXT), sentences=shown)
        for n in range(10)
    )
    rendered = render_answer(query, excerpts)
    return Call(
        stage=Stage.ANSWER,
        model=model,
        query=query,
        excerpts=excerpts,
        messages=rendered.messages,
        prompt=rendered.prompt,
        max_tokens=500,
        schema=AnswerReply,
    )


def chat(call: Call) -> dict[str, Any]:
    """The same call as the arguments of the SDK's method."""
    wanted = response_schema(AnswerReply)
    inner = {"name": wanted.name, "schema": wanted.schema, "strict": wanted.strict}
    return {
        "model": "gpt-4o-mini",
        "messages": [{"role": str(m.role), "content": m.content} for m in call.messages],
        "max_completion_tokens": call.max_tokens,
        "response_format": {"type": "json_schema", "json_schema": inner},
    }


async def repeat(name: str, stub: LoadStub, number: int, once: Once | None = None) -> None:
    """Let ``number`` clients call again and again; a line says what came of it."""
    stub.reset()
    before = stub.stats()["cpu_seconds"]
    started, spent = time.perf_counter(), time.process_time()
    until = started + SECONDS

    async def client() -> None:
        while once is not None and time.perf_counter() < until:
            await once()

    clients = (bare(stub.url, until) if once is None else client() for _ in range(number))
    await asyncio.gather(*clients)
    seconds, spent = time.perf_counter() - started, time.process_time() - spent
    stats = stub.stats()
    served = stats["cpu_seconds"] - before
    print(
        f"{name:18} {number:4} at a time  {stats['finished'] / seconds:6.0f}/s   "
        f"here {spent / stats['finished'] * 1e3:5.2f} ms CPU each, {spent / seconds:4.0%} of a core   "
        f"stub {served / stats['finished'] * 1e3:5.2f} ms, {served / seconds:4.0%}   "
        f"{stats['connections']} connections"
    )


async def bare(url: str, until: float) -> None:
    """One connection that sends as soon as it has a reply."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    body = json.dumps(chat(call_to("openai:gpt-4o-mini"))).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    while time.perf_counter() < until:
        writer.write(head + body)
        headers = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = headers.partition("content-length: ")[2].partition("\r\n")[0]
        await reader.readexactly(int(length))
    writer.close()


async def main() -> None:
    """Print one line a measurement."""
    with LoadStub(Faults(latency=(LATENCY, LATENCY))) as stub:
        for number in BARE:
            await repeat("bare HTTP", stub, number)
        to_openai = OpenAIAdapter(api_key="none", base_url=stub.openai_url)
        to_anthropic = AnthropicAdapter(api_key="none", base_url=stub.anthropic_url)
        sdk = openai.AsyncOpenAI(api_key="none", base_url=stub.openai_url, max_retries=0)
        ask, message = call_to("openai:gpt-4o-mini"), call_to("anthropic:claude-haiku-4-5")
        arguments = chat(ask)
        for number in CALLS:
            await repeat("OpenAI adapter", stub, number, lambda: to_openai(ask))
            await repeat("Anthropic adapter", stub, number, lambda: to_anthropic(message))
            await repeat(
                "OpenAI SDK's chats",
                stub,
                number,
                lambda: sdk.chat.completions.with_raw_response.create(**arguments),
            )
        await to_openai.aclose()
        await to_anthropic.aclose()
        await sdk.close()


if __name__ == "__main__":
    asyncio.run(main())
