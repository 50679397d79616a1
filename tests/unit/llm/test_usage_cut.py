"""What was cut off may have been billed: its usage is unknown, never 0."""

from __future__ import annotations

import gzip
import json
from typing import Any

import httpx2
import pytest

from posology.errors import MalformedReply, ProviderError, ProviderUnreachable, UnusableReply
from posology.llm.providers.anthropic import AnthropicAdapter
from posology.llm.providers.openai import OpenAIAdapter
from posology.testing import Cut, Reply, StubProvider
from posology.testing.provider import formats
from posology.types import Finish, Usage
from tests.support.calls import a_call

pytestmark = pytest.mark.anyio

USAGE = Usage(input=800, cache_read=200, output=60, reasoning=40)
BODIES = {
    "openai": json.dumps(formats.openai_reply("gpt-4o-mini", "Yes.", USAGE, Finish.STOP)).encode(),
    "anthropic": json.dumps(
        formats.anthropic_reply("claude-haiku-4-5", "Yes.", USAGE, Finish.STOP)
    ).encode(),
}
#: the whole of a stream, sent although none was asked for
STREAMS = {
    "openai": b'data: {"choices":[{"delta":{"content":"Yes."}}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":1}}\n\ndata: [DONE]\n\n',
    "anthropic": b'event: message_start\ndata: {"type":"message_start","message":{"usage":'
    b'{"input_tokens":8,"output_tokens":1}}}\n\nevent: message_stop\n'
    b'data: {"type":"message_stop"}\n\n',
}
MODELS = {"openai": "openai:gpt-4o-mini", "anthropic": "anthropic:claude-haiku-4-5"}
both = pytest.mark.parametrize("provider", ["openai", "anthropic"])


def adapter_to(
    provider: str,
    client: httpx2.AsyncClient | None,
    stub: StubProvider | None,
    *,
    stream: bool = True,
) -> Any:
    nowhere = "http://127.0.0.1:9"
    if provider == "openai":
        url = stub.openai_url if stub else nowhere
        return OpenAIAdapter(api_key="none", base_url=url, client=client, stream=stream)
    url = stub.anthropic_url if stub else nowhere
    return AnthropicAdapter(api_key="none", base_url=url, client=client, stream=stream)


async def received(
    provider: str, body: bytes, *, stream: bool = True, headers: dict[str, str] | None = None
) -> ProviderError:
    """What the adapter makes of a response that arrived, whole as far as HTTP can tell."""
    replies = httpx2.MockTransport(lambda _: httpx2.Response(200, content=body, headers=headers))
    async with httpx2.AsyncClient(transport=replies) as client:
        with pytest.raises(ProviderError) as caught:
            await adapter_to(provider, client, None, stream=stream)(a_call(model=MODELS[provider]))
    return caught.value


@both
@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 0.5, 0.8, 0.99])
async def test_a_body_that_a_proxy_cut_is_an_unusable_reply_of_unknown_usage(
    provider: str, share: float
) -> None:
    whole = BODIES[provider]
    error = await received(provider, whole[: int(len(whole) * share)])
    assert type(error) is MalformedReply
    # so that its attempt counts as paid for and unusable, not as failed
    assert isinstance(error, UnusableReply)
    assert (error.status, error.usage) == (200, None)


@both
async def test_a_compressed_body_that_was_cut_is_too(provider: str) -> None:
    packed = gzip.compress(BODIES[provider])
    kinds = {"content-encoding": "gzip", "content-type": "application/json"}
    for body in (packed[:30], b"\0" + packed):
        error = await received(provider, body, headers=kinds)
        assert (type(error), error.usage) == (MalformedReply, None)


@both
async def test_a_stream_that_nobody_asked_for_is_unknown(provider: str) -> None:
    for body in (STREAMS[provider], STREAMS[provider][:60]):
        error = await received(provider, body, stream=False)
        # the next one would be a stream as well
        assert (type(error), error.usage) == (UnusableReply, None)
        assert "stream" in str(error)


@both
async def test_a_page_is_no_reply_and_names_the_base_url(provider: str) -> None:
    for body in (b"<!DOCTYPE html><title>Sign in</title>", b"\xef\xbb\xbf\n <html>"):
        error = await received(provider, body, headers={"content-type": "text/html"})
        assert (type(error), error.usage) == (UnusableReply, None)
        assert f"{provider.upper()}_BASE_URL" in str(error)


@both
async def test_the_words_of_a_gateway_are_kept(provider: str) -> None:
    error = await received(provider, b"upstream closed\n")
    assert type(error) is MalformedReply
    assert str(error).endswith("its body is not a JSON object (upstream closed)")
    # a reply that was cut is not repeated in the message
    error = await received(provider, BODIES[provider][:-1])
    assert "Yes." not in str(error)


@both
async def test_a_mark_of_byte_order_before_the_body_is_no_fault(provider: str) -> None:
    body = b"\xef\xbb\xbf" + BODIES[provider]
    replies = httpx2.MockTransport(lambda _: httpx2.Response(200, content=body))
    async with httpx2.AsyncClient(transport=replies) as client:
        completion = await adapter_to(provider, client, None)(a_call(model=MODELS[provider]))
    assert completion.text == "Yes."


@both
@pytest.mark.parametrize("sent", [None, 0, 1, 40, 200])
async def test_a_connection_cut_after_the_work_was_done_is_unknown(
    provider: str, sent: int | None
) -> None:
    step = Cut(of=Reply(text="Yes.", usage=USAGE), after_bytes=sent)
    with StubProvider([step]) as stub:
        adapter = adapter_to(provider, None, stub)
        with pytest.raises(ProviderUnreachable) as caught:
            await adapter(a_call(model=MODELS[provider]))
        await adapter.aclose()
    assert caught.value.usage is None
    assert not isinstance(caught.value, UnusableReply)
