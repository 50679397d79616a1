"""Streamed replies through the whole stack: every way in which a stream ends, and servers that do not stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anthropic
import anyio
import httpx2
import openai
import pytest

from orchestrator.connections import Connections
from orchestrator.settings import load_settings
from posology import errors
from posology.llm.accounting import Account
from posology.llm.calls import Caller, ReplyProgress
from posology.llm.providers.places import Allowance
from posology.llm.providers.table import Telling
from posology.llm.retry import RetryPolicy
from posology.seams import Send
from posology.testing import (
    Broken,
    Faults,
    FlatPrices,
    LoadStub,
    Reply,
    Status,
    Step,
    StubProvider,
    Vectors,
)
from posology.types import Call, Finish, Stage, Usage
from tests.support.calls import ASKED, call_to
from tests.support.clouds import KEY, adapter_to
from tests.support.rigs import Rig, rigs

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("streamed")]

USAGE = Usage(input=80, output=12)
WORDS = "Aspirin lowered the risk of stroke in adults, and the difference was small."
QUICK = RetryPolicy(attempts=2, base=0.01, cap=0.02, deadline=20.0)
MODELS = {
    "openai": "openai:m",
    "azure": "azure:m",
    "anthropic": "anthropic:claude-haiku-4-5",
    "bedrock": "bedrock:anthropic.claude-haiku-4-5",
    "vertex": "vertex:claude-haiku-4-5",
}
everyone = pytest.mark.parametrize("provider", MODELS)


both = pytest.mark.parametrize("provider", ["openai", "anthropic"])


def a_call(provider: str, **more: Any) -> Call:
    return call_to(MODELS[provider], f"{ASKED} " * 40, **{"max_tokens": 200, **more})


@pytest.fixture
async def rig() -> AsyncIterator[Callable[..., Rig]]:
    async with rigs() as made:

        def make(provider: str, *script: Step, policy: RetryPolicy = QUICK, **options: Any) -> Rig:
            to = partial(adapter_to, provider, **options)
            return made(to, script, prices=FlatPrices(), retry=policy)

        yield make


@everyone
async def test_a_stream_gives_what_the_reply_as_a_whole_gives(provider: str, rig: Any) -> None:
    step = Reply(text=WORDS, usage=USAGE, finish=Finish.LENGTH)
    found = []
    for stream in (True, False):
        made = rig(provider, step, stream=stream)
        completion = await made.complete(a_call(provider))
        assert made.account.usage == USAGE
        found.append(replace(completion, latency=None))
        path = made.stub.requests[0].path
        # Bedrock and Vertex AI have paths for it
        assert ("stream" in path) is (stream and provider in ("bedrock", "vertex"))
        assert made.sent[0].get("stream") is (True if stream and provider != "bedrock" else None)
    assert found[0] == found[1]
    assert (found[0].text, found[0].finish) == (WORDS, Finish.LENGTH)


@everyone
@pytest.mark.parametrize(
    ("by", "kind"),
    [
        ("cut", errors.ProviderUnreachable),
        ("end", errors.MalformedReply),
        ("silence", errors.ProviderTimeout),
        ("error", errors.ProviderOverloaded),
    ],
)
async def test_a_stream_that_breaks_off_is_a_typed_error_and_charged_at_its_bound(
    provider: str,
    by: Literal["cut", "end", "silence", "error"],
    kind: type[errors.ProviderError],
    rig: Any,
) -> None:
    """It is tried again: each attempt is in the account, with the usage that no one knows."""
    broken = Broken(of=Reply(text=WORDS, usage=USAGE), by=by)
    made = rig(provider, broken, broken, timeout=1.5)
    with pytest.raises(kind) as caught:
        await made.complete(a_call(provider))
    assert type(caught.value) is kind
    assert caught.value.usage is None
    assert caught.value.request_id
    assert WORDS[:10] not in str(caught.value)
    assert [attempt.usage for attempt in made.account.attempts] == [None, None]
    assert all(attempt.charged == attempt.reserved > 0 for attempt in made.account.attempts)


@everyone
async def test_an_error_instead_of_a_stream_is_what_it_is_as_a_whole(
    provider: str, rig: Any
) -> None:
    made = rig(provider, *[Status(code=429, within=True)] * 2)
    with pytest.raises(errors.RateLimited if provider != "bedrock" else errors.ProviderOverloaded):
        await made.complete(a_call(provider))
    assert len(made.account.attempts) == 2


class Speaking(httpx2.AsyncBaseTransport):
    """Streams pieces, each after a pause, and notes the time limits that it is given."""

    def __init__(self, *pieces: bytes, pause: float) -> None:
        self._pieces = pieces
        self._pause = pause

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        async def spoken() -> AsyncIterator[bytes]:
            for piece in self._pieces:
                await anyio.sleep(self._pause)
                yield piece

        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=spoken())


CHUNK = b'data: {"choices": [{"index": 0, "delta": {"content": "yes "}}]}\n\n'
LAST = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'


async def spoken(*pieces: bytes, pause: float, **options: Any) -> Any:
    async with httpx2.AsyncClient(transport=Speaking(*pieces, pause=pause)) as client:
        with StubProvider() as nowhere:
            adapter = adapter_to("openai", nowhere, client=client, **options)
        return await adapter(a_call("openai"))


async def test_a_slow_reply_is_not_silence() -> None:
    """Four pieces take longer than the timeout, and none of them does."""
    found = await spoken(CHUNK, b": ping\n\n", CHUNK, LAST, pause=0.4, timeout=1.0)
    assert found.text == "yes yes "


async def test_a_slow_server_has_more_time_to_its_first_word_only() -> None:
    """200 tokens at 100 tokens a second are 2 s."""
    floor = {"timeout": 0.3, "min_tokens_per_second": 100.0}
    reading = b'data: {"choices": [], "prompt_progress": {"total": 9, "processed": 4}}\n\n'
    with pytest.raises(errors.ProviderTimeout, match=r"within 0\.3 s"):
        await spoken(reading, CHUNK, CHUNK, pause=0.8, **floor)
    with pytest.raises(errors.ProviderTimeout, match=r"within 0\.3 s"):
        await spoken(reading, CHUNK, pause=0.8, timeout=0.3)


async def test_silence_after_the_last_word_does_not_lose_the_reply() -> None:
    class Held(Speaking):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            response = await super().handle_async_request(request)
            stream = response.stream

            async def held() -> AsyncIterator[bytes]:
                async for piece in stream:  # type: ignore[union-attr]
                    yield piece
                await anyio.sleep_forever()

            return httpx2.Response(200, headers=response.headers, content=held())

    async with httpx2.AsyncClient(transport=Held(CHUNK, LAST, pause=0.0)) as client:
        with StubProvider() as nowhere:
            adapter = adapter_to("openai", nowhere, client=client, timeout=0.3)
        completion = await adapter(a_call("openai"))
    assert (completion.text, completion.finish, completion.usage) == ("yes ", Finish.STOP, None)


def refusal(field: str) -> Status:
    return Status(code=400, message=f"Unknown parameter: '{field}'.")


EXTRA = Status(
    code=422,
    body=b'{"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}',
)


@pytest.mark.parametrize("refused", [refusal("stream_options.include_usage"), EXTRA])
async def test_a_server_that_refuses_the_options_is_asked_once_without(
    refused: Status, rig: Any
) -> None:
    made = rig("openai", refused, *[Reply(text=WORDS, usage=USAGE)] * 2)
    for _ in range(2):
        completion = await made.complete(a_call("openai"))
        # nobody asked for it
        assert (completion.text, completion.usage) == (WORDS, None)
    assert ["stream_options" in body for body in made.sent] == [True, False, False]
    assert all(body["stream"] for body in made.sent)
    # one attempt at each call
    assert len(made.account.attempts) == 2


@pytest.mark.parametrize(
    ("provider", "refused"),
    [
        ("openai", Status(code=400, message="Your organization must be verified to stream this model.")),
        ("openai", Status(code=422, message="streaming is not supported")),
        ("anthropic", refusal("stream")),
        ("bedrock", Status(code=403, message="not authorized to perform: bedrock:InvokeModelWithResponseStream")),
    ],
)  # fmt: skip
async def test_a_model_that_is_not_streamed_is_asked_for_whole_replies(
    provider: str, refused: Status, rig: Any
) -> None:
    made = rig(provider, refused, *[Reply(text=WORDS, usage=USAGE)] * 2)
    for _ in range(2):
        completion = await made.complete(a_call(provider))
        assert (completion.text, completion.usage) == (WORDS, USAGE)
    assert len(made.sent) == 3
    assert not any("stream" in body or "stream_options" in body for body in made.sent[1:])
    assert not any("stream" in request.path for request in made.stub.requests[1:])


@both
async def test_a_refusal_for_another_reason_is_not_asked_again(provider: str, rig: Any) -> None:
    made = rig(provider, Status(code=400, message="no healthy upstream takes this"))
    with pytest.raises(errors.RequestRejected):
        await made.complete(a_call(provider))
    assert len(made.sent) == 1


async def test_the_progress_of_reading_is_dropped_where_it_is_refused(rig: Any) -> None:
    made = rig("openai", refusal("return_progress"), Reply(text=WORDS, usage=USAGE))
    assert (await made.complete(a_call("openai"))).usage == USAGE
    assert [body.get("return_progress") for body in made.sent] == [True, None]


async def test_only_replies_in_words_are_streamed(rig: Any) -> None:
    vectors = rig("openai", Vectors())
    await vectors.complete(a_call("openai", stage=Stage.EMBED))
    counted = rig("anthropic", Reply(text="", usage=USAGE))
    assert await counted.adapter.count(a_call("anthropic")) == USAGE.input
    assert "stream" not in vectors.sent[0]
    assert "stream" not in counted.sent[0]


@everyone
async def test_progress_is_told_to_who_asks_for_it(provider: str, rig: Any) -> None:
    made = rig(provider, *[Reply(text=WORDS, usage=USAGE)] * 2)
    told: list[tuple[str, ReplyProgress]] = []
    call, adapter = a_call(provider), made.adapter
    assert isinstance(adapter, Telling)
    completion = await adapter.telling(lambda of, now: told.append((of.model, now)))(call)
    assert completion.text == WORDS
    assert {model for model, _ in told} == {call.model}
    written = [now.written for _, now in told]
    assert written == sorted(written)
    assert written[-1] >= len(WORDS) // 8
    if provider == "openai":
        # the stub has a prompt of one token
        assert (told[-1][1].prompt, told[-1][1].read) == (1, 1)
    # without it, nothing is told
    count = len(told)
    await made.adapter(call)
    assert len(told) == count


async def test_settings_turn_streams_off_and_a_caller_takes_the_progress(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('[free]\nmodels = ["openai:m"]\n')
    monkeypatch.setenv("POSOLOGY_PRICES", str(prices))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with StubProvider([Reply(text=WORDS, usage=USAGE)] * 2) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.openai_url)
        for stream in ("true", "false"):
            monkeypatch.setenv("POSOLOGY_STREAM", stream)
            told: list[ReplyProgress] = []
            caller = Caller(told=lambda _, now, told=told: told.append(now))  # type: ignore[misc]
            connections = Connections(load_settings(), offline=_no_reader)
            complete = connections.complete("openai:m", Account(), caller)
            assert (await complete(a_call("openai"))).text == WORDS
            await connections.aclose()
            assert bool(told) is (stream == "true")
        assert [bool(request.json.get("stream")) for request in stub.requests] == [True, False]


def _no_reader() -> Send:
    raise AssertionError("no offline model is asked")


@both
async def test_connections_are_kept_after_streams_and_not_after_breaks(provider: str) -> None:
    for faults, connections in (
        (Faults(), 1),
        (Faults(errors_within=1.0), 1),
        (Faults(breaks=1.0), 3),
    ):
        with LoadStub(faults, seed=3) as stub:
            adapter = adapter_to(provider, stub)  # type: ignore[arg-type]
            for _ in range(3):
                try:
                    await adapter(a_call(provider), attempt_id="one")
                except errors.ProviderError:
                    continue
            await adapter.aclose()
            stats = stub.stats()
        assert stats["requests"] == 3
        # and the one that asks
        assert stats["connections"] <= connections + 1


@both
async def test_what_headers_say_of_limits_is_heard(provider: str) -> None:
    headers = {"content-type": "text/event-stream", "x-ratelimit-remaining-requests": "7"}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, content=b""))
    heard: list[Allowance] = []
    async with httpx2.AsyncClient(transport=transport) as client:
        with StubProvider() as nowhere:
            adapter = adapter_to(provider, nowhere, client=client)
        adapter.heard = heard.append
        with pytest.raises(errors.MalformedReply, match="ended in the middle"):
            await adapter(a_call(provider))
    assert heard == [Allowance(requests=7)]


async def test_the_sdks_read_the_stub_s_streams() -> None:
    """The stub is written from the provider's side; so it is read by who else reads providers."""
    question: Any = [{"role": "user", "content": "Does it work?"}]
    said: Any = {"model": "m", "messages": question}
    with StubProvider([Reply(text=WORDS, usage=USAGE)] * 4 + [Broken(by="error")] * 2) as stub:
        chat = openai.AsyncOpenAI(api_key=KEY, base_url=stub.openai_url, max_retries=0)
        options: Any = {"include_usage": True}
        chunks = [
            chunk
            async for chunk in await chat.chat.completions.create(
                **said, stream=True, stream_options=options
            )
        ]
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == WORDS
        usage = chunks[-1].usage
        assert (usage.prompt_tokens, usage.completion_tokens) == (80, 12)
        given: Any = {"max_retries": 0, "base_url": stub.anthropic_url}
        clients: Any = (
            anthropic.AsyncAnthropic(api_key=KEY, **given),
            anthropic.AsyncAnthropicBedrock(api_key=KEY, aws_region="eu-west-1", **given),
            anthropic.AsyncAnthropicVertex(
                access_token=KEY,
                project_id="p",
                region="eu",
                max_retries=0,
                base_url=stub.vertex_url,
            ),
        )
        for client in clients:
            async with client.messages.stream(**said, max_tokens=99) as stream:
                message = await stream.get_final_message()
            assert message.content[0].text == WORDS
            assert (message.usage.input_tokens, message.usage.output_tokens) == (80, 12)
        for client in clients[:2]:
            with pytest.raises(anthropic.APIStatusError):
                async with client.messages.stream(**said, max_tokens=99) as stream:
                    await stream.get_final_message()
        for one in (chat, *clients):
            await one.close()
