"""Streamed replies, put together: however the bytes come, whatever they lack, and wherever they end."""

from __future__ import annotations

import json
import struct
from typing import Any

import anyio
import httpx2
import pytest

from posology.errors import ProviderError
from posology.llm.calls import ReplyProgress
from posology.llm.providers.anthropic import AnthropicAdapter
from posology.llm.providers.clouds.azure import AzureAdapter
from posology.llm.providers.clouds.bedrock import BedrockAdapter
from posology.llm.providers.local.ollama import OllamaAssembly
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.providers.streaming import LONG
from posology.llm.providers.streams.assembly import Assembly, NoReply
from posology.llm.providers.streams.chat import ChatAssembly
from posology.llm.providers.streams.messages import MessageAssembly
from posology.llm.providers.streams.receiving import Incoming, receive
from posology.testing.provider import formats
from posology.testing.provider.streaming import (
    FRAMES,
    SENT_EVENTS,
    anthropic_failure,
    anthropic_stream,
    framed,
    openai_stream,
)
from posology.types import Finish, Usage
from tests.support.calls import a_call

USAGE = Usage(input=80, cache_read=20, output=6, reasoning=4)
#: with characters of several bytes, and what looks like an end of a line
TEXT = "Salt drops lowered falls by 12 µg — “yes”.\n\nIn 3 of 4 trials\u2028each."
ASKED = {"stream_options": {"include_usage": True}}


def in_pieces(body: bytes, size: int, assembly: Assembly, kind: str) -> Incoming:
    incoming = Incoming(assembly, kind)
    for at in range(0, len(body), size):
        incoming.feed(body[at : at + size])
    incoming.end()
    return incoming


def chunks(*events: dict[str, Any], end: bytes = b"data: [DONE]\n\n") -> bytes:
    return b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in events) + end


def chat(*events: dict[str, Any], end: bytes = b"data: [DONE]\n\n") -> ChatAssembly:
    assembly = ChatAssembly()
    in_pieces(chunks(*events, end=end), 1_000, assembly, SENT_EVENTS)
    return assembly


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


@pytest.mark.anyio
@pytest.mark.parametrize("cuts", [True, False])
@pytest.mark.parametrize(
    ("assembly", "kind", "event", "end"),
    [
        (
            ChatAssembly,
            SENT_EVENTS,
            lambda text: chunks(delta(content=text), end=b""),
            {"finish_reason": "length"},
        ),
        (
            OllamaAssembly,
            "application/x-ndjson",
            lambda text: json.dumps({"message": {"content": text}}).encode() + b"\n",
            {"done_reason": "length"},
        ),
        (
            MessageAssembly,
            SENT_EVENTS,
            lambda text: chunks(
                {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"type": "text_delta", "text": text},
                },
                end=b"",
            ),
            {"stop_reason": "max_tokens"},
        ),
    ],
)
async def test_a_reply_that_repeats_itself_is_cut_where_that_is_asked_for(
    cuts: bool, assembly: Any, kind: str, event: Any, end: dict[str, str]
) -> None:
    """The usage stays unknown: what the server spent on it was never said."""
    sent = 0

    async def pieces() -> Any:
        nonlocal sent
        for _ in range(1_000):
            sent += 1
            yield event(f"{TEXT} ")

    incoming = Incoming(assembly(), kind)
    began = anyio.current_time()
    assert await receive(
        pieces(), incoming, first=60.0, between=60.0, began=began, told=None, cuts=cuts
    )
    assert (sent < 100) is cuts
    assert incoming.assembly.ended is cuts
    body = incoming.assembly.body()
    (said,) = body.get("choices", [body])
    assert (end.items() <= said.items()) is cuts
    assert "usage" not in body


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1_000_000])
def test_the_body_is_that_of_the_whole_however_the_bytes_come(size: int) -> None:
    whole = formats.openai_reply("m", TEXT, USAGE, Finish.STOP)
    assembly = ChatAssembly()
    in_pieces(b"".join(openai_stream(whole, ASKED)), size, assembly, SENT_EVENTS)
    body = assembly.body()
    assert body.pop("object") == "chat.completion.chunk"
    assert assembly.ended
    assert body == {k: v for k, v in whole.items() if k != "object"} | {"choices": body["choices"]}
    (choice,) = body["choices"]
    # an empty field does not come
    assert choice["message"] | {"refusal": None} == whole["choices"][0]["message"]
    assert choice["finish_reason"] == "stop"

    message = formats.anthropic_reply("m", TEXT, USAGE, Finish.STOP)
    events = list(anthropic_stream(message, {}))
    for kind, sent in ((SENT_EVENTS, events), (FRAMES, [framed(one) for one in events])):
        built = MessageAssembly()
        in_pieces(b"".join(sent), size, built, kind)
        assert built.ended
        assert built.body() == message


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_names_comments_and_both_ends_of_lines_are_no_part_of_an_event(end: str) -> None:
    lines = (
        ": ping",
        "",
        "event: chunk",
        "id: 7",
        f"data: {json.dumps(delta(content='yes'))}",
        "",
        "data:[DONE]",
    )
    assembly = ChatAssembly()
    in_pieces(end.join(lines).encode(), 5, assembly, SENT_EVENTS + "; charset=utf-8")
    assert assembly.done
    assert assembly.body()["choices"][0]["message"]["content"] == "yes"


def test_a_stream_of_another_media_type_is_read_as_one() -> None:
    assembly = ChatAssembly()
    incoming = in_pieces(chunks(delta("stop", content="yes")), 9, assembly, "application/json")
    assert (incoming.streamed, assembly.ended) == (True, True)
    assert assembly.body()["choices"][0]["message"]["content"] == "yes"


def test_parts_of_a_message_are_joined_by_their_kinds() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    assembly = chat(
        delta(role="assistant", content=None),
        delta(role="assistant", reasoning_content="I "),
        delta(reasoning_content="think."),
        delta(content=[thought]),
        delta(content="ye"),
        delta(content="s"),
        delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
        {"choices": [{"index": 1, "delta": {"content": "another choice"}}]},
        delta("tool_calls"),
    )
    (choice,) = assembly.body()["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": [thought, "ye", "s"],
        "reasoning_content": "I think.",
        "tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x": 1}'}}],
    }


def test_a_message_as_a_whole_counts_where_no_part_came() -> None:
    whole = {"choices": [{"index": 0, "message": {"content": "yes"}, "finish_reason": "stop"}]}
    assert chat(whole).body()["choices"][0]["message"]["content"] == "yes"
    twice = chat(delta(content="yes"), whole).body()
    assert twice["choices"][0]["message"]["content"] == "yes"


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [], "usage": {"prompt_tokens": 9}},
        {**delta(), "usage": {"prompt_tokens": 9}},
        {"choices": [{"index": 0, "delta": {}, "usage": {"prompt_tokens": 9}}]},
        {**delta(), "x_groq": {"usage": {"prompt_tokens": 9}}},
    ],
)
def test_the_usage_is_found_wherever_servers_put_it(event: dict[str, Any]) -> None:
    assembly = chat(delta("stop", content="yes"), event, end=b"")
    assert assembly.body()["usage"] == {"prompt_tokens": 9}


def test_a_usage_before_the_end_is_that_of_a_part() -> None:
    counting = [
        {**delta(content=word), "usage": {"completion_tokens": n}} for n, word in enumerate("abc")
    ]
    cut = chat(*counting, end=b"")
    assert not cut.ended
    assert "usage" not in cut.body()
    failed = chat(*counting, {"error": {"message": "Bad gateway", "code": 502}})
    assert failed.ended
    assert "usage" not in failed.body()
    assert chat(*counting).body()["usage"] == {"completion_tokens": 2}


@pytest.mark.parametrize(
    ("end", "ended"),
    [
        ([], False),
        ([delta(content="s")], False),
        ([delta("")], False),
        ([{"choices": [], "usage": {"prompt_tokens": 9}}], False),
        ([delta("stop")], True),
        ([{"error": {"message": "no"}}], True),
        ([{"object": "error", "message": "no", "code": 500}], True),
        # such as gateways send with every reply
        ([{**delta(content="s"), "error": {"code": 0, "message": "ok"}}], False),
    ],
)
def test_a_reply_is_whole_by_its_own_words(end: list[dict[str, Any]], ended: bool) -> None:
    assembly = chat(delta(content="ye"), *end, end=b"")
    assert assembly.ended is ended
    assert assembly.body()["choices"][0]["message"]["content"].startswith("ye")


def test_an_end_in_the_middle_of_an_event_is_a_cut() -> None:
    body = chunks(delta(content="yes"), delta("stop"), end=b"")
    assembly = ChatAssembly()
    in_pieces(body[:-30], 8, assembly, SENT_EVENTS)
    assert assembly.began
    assert not assembly.ended


def test_an_error_of_older_servers_of_llama_cpp_is_one() -> None:
    assembly = ChatAssembly()
    in_pieces(b'error: {"code": 500, "message": "no"}\n\n', 1_000, assembly, SENT_EVENTS)
    assert assembly.body()["error"] == {"code": 500, "message": "no"}


@pytest.mark.parametrize("data", [b"data: no\n\n", b"data: 7\n\n", b"data: [1, 2]\n\n"])
def test_what_is_no_event_is_no_reply(data: bytes) -> None:
    for assembly in (ChatAssembly(), MessageAssembly()):
        with pytest.raises(NoReply, match="JSON object"):
            in_pieces(data, 1_000, assembly, SENT_EVENTS)


def test_counts_at_the_start_of_a_message_are_not_its_usage() -> None:
    message = formats.anthropic_reply("m", "yes, it does", USAGE, Finish.STOP)
    events = list(anthropic_stream(message, {}))
    for keep, ended in ((len(events) - 1, True), (len(events) - 2, False), (1, False)):
        assembly = MessageAssembly()
        in_pieces(b"".join(events[:keep]), 1_000, assembly, SENT_EVENTS)
        assert assembly.ended is ended
        assert ("usage" in assembly.body()) is ended
    failed = MessageAssembly()
    error = formats.anthropic_error(529, None, "Overloaded")
    in_pieces(b"".join((*events[:6], anthropic_failure(error))), 1_000, failed, SENT_EVENTS)
    assert failed.ended
    assert failed.body()["error"]["type"] == "overloaded_error"
    assert "usage" not in failed.body()


def test_what_comes_behind_an_error_takes_it_back_no_more() -> None:
    error = {"error": {"message": "overloaded", "code": 503}}
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    failed = ChatAssembly()
    in_pieces(chunks(delta(content="a"), error, usage, end=b""), 1_000, failed, SENT_EVENTS)
    assert failed.ended
    assert failed.body()["error"]["message"] == "overloaded"


def test_an_empty_reason_behind_the_last_one_is_none() -> None:
    whole = ChatAssembly()
    sent = chunks(delta("length", content="a"), delta(""), end=b"")
    in_pieces(sent, 1_000, whole, SENT_EVENTS)
    assert whole.body()["choices"][0]["finish_reason"] == "length"


def test_thinking_and_the_input_of_a_tool_are_joined() -> None:
    events = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "H"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "m"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "yes"}},
    ]  # fmt: skip
    assembly = MessageAssembly()
    in_pieces(chunks(*events, end=b""), 1_000, assembly, SENT_EVENTS)
    assert assembly.body()["content"] == [
        {"type": "thinking", "thinking": "Hm", "signature": "s"},
        {"type": "text", "text": "yes"},
    ]


def test_a_frame_that_is_none_is_no_reply() -> None:
    good = framed(
        next(anthropic_stream(formats.anthropic_reply("m", "yes", None, Finish.STOP), {}))
    )
    numbered = bytearray(good)
    numbered[12 + 1 + good[12]] = 3
    for bad in (
        b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
        struct.pack(">III", 4, 0, 0) + good,
        struct.pack(">III", 2**31, 0, 0) + good,
        bytes(numbered),
        good.replace(b"bytes", b"bites"),
    ):
        with pytest.raises(NoReply, match="not a frame"):
            in_pieces(bad, 1_000, MessageAssembly(), FRAMES)


def test_an_exception_in_a_frame_is_an_error_with_its_status() -> None:
    error = formats.anthropic_error(502, None, "The model failed.")
    assembly = MessageAssembly()
    in_pieces(framed(anthropic_failure(error)), 5, assembly, FRAMES)
    assert assembly.body()["error"] == {
        "type": "modelStreamErrorException",
        "code": 424,
        "message": "The model failed.",
    }


def test_a_stream_without_an_end_takes_bounded_memory() -> None:
    for piece in (b": ping\n\n", b"data: x", b"x"):
        incoming = Incoming(ChatAssembly(), SENT_EVENTS, most=1 << 20)
        for _ in range((1 << 20) // len(piece)):
            incoming.feed(piece)
        with pytest.raises(NoReply, match="longer than 1 MiB"):
            incoming.feed(piece)


def test_progress_counts_what_is_read_and_written() -> None:
    assembly = ChatAssembly()
    seen = []
    for event in (
        {
            **delta(role="assistant"),
            "prompt_progress": {"total": 2_913, "cache": 0, "processed": 1_240},
        },
        delta(content="yes"),
        delta(reasoning_content=" it does"),
        # several tokens in one
        delta(content="x" * 80),
    ):
        assembly.feed(json.dumps(event).encode())
        seen.append(assembly.progress)
    assert seen[0] == ReplyProgress(prompt=2_913, read=1_240, written=0)
    assert [one.written for one in seen] == [0, 1, 2, 22]
    assert "prompt_progress" not in assembly.body()


ADAPTERS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "openai": (OpenAIAdapter, "openai:m", {}),
    "anthropic": (AnthropicAdapter, "anthropic:m", {}),
    "azure": (
        AzureAdapter,
        "azure:m",
        {"base_url": "https://trials.openai.azure.com", "version": "2025-04-01-preview"},
    ),
    "bedrock": (BedrockAdapter, "bedrock:anthropic.m", {"region": "eu-west-1"}),
}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("provider", "more", "tokens", "asked"),
    [
        ("openai", {}, LONG - 1, False),
        ("openai", {}, LONG, True),
        ("openai", {"min_tokens_per_second": 5.0}, 64, True),
        ("openai", {"base_url": "http://10.0.0.7:8000/v1"}, 64, True),
        ("anthropic", {}, 64, False),
        ("anthropic", {"base_url": "https://gateway.example.org"}, 64, True),
        ("bedrock", {}, 64, False),
        ("bedrock", {}, LONG, True),
        ("azure", {}, 64, False),
    ],
)
async def test_only_what_may_be_slow_is_streamed(
    provider: str, more: dict[str, Any], tokens: int, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream of a short reply costs processor time for nothing: the provider's own service answers within its limit."""
    monkeypatch.setattr("posology.llm.switch._allowed", True)
    bodies = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append((request.url.path, json.loads(request.content)))
        return httpx2.Response(500, json={"error": {"message": "not now"}})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        make, model, given = ADAPTERS[provider]
        adapter = make(api_key="none", client=client, **given, **more)
        with pytest.raises(ProviderError):
            await adapter(a_call(model=model, max_tokens=tokens))
    ((path, body),) = bodies
    assert bool(body.get("stream") or path.endswith("-stream")) is asked
