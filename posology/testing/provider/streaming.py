"""The two providers' streams, written from the provider's side: the events of a reply that has a body as a whole."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

#: about as much as a token
_PIECE = re.compile(r"\s*\S{1,5}|\s+", re.DOTALL)
#: media types of streams: of server-sent events, and of Bedrock's frames
SENT_EVENTS, FRAMES = "text/event-stream", "application/vnd.amazon.eventstream"
#: of Ollama's lines
LINES = "application/x-ndjson"


def openai_stream(body: Any, asked: Mapping[str, Any]) -> Iterator[bytes]:
    """The chunks of a chat completion; a body that is none is one event.

    Args:
        body: of the reply as a whole.
        asked: the request's body.
    """
    # as OpenRouter begins
    yield b": processing\n\n"
    choices = body.get("choices") if isinstance(body, dict) else None
    if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
        yield _sent(body)
        yield b"data: [DONE]\n\n"
        return
    top = {k: v for k, v in body.items() if k not in ("choices", "usage")}
    if "object" in top:
        top["object"] = "chat.completion.chunk"
    if asked.get("return_progress"):
        for read in (0, 1):
            progress = {"total": 1, "cache": 0, "processed": read, "time_ms": read}
            yield _sent({**top, "choices": [_delta({"role": "assistant"})], "prompt_progress": progress})  # fmt: skip
    ending = {k: v for k, v in choices[0].items() if k not in ("index", "message", "delta")}
    message = choices[0].get("message")
    for delta in _deltas(message) if isinstance(message, dict) else [message]:
        yield _sent({**top, "choices": [_delta(delta)]})
    yield _sent({**top, "choices": [{**_delta({}), **ending}]})
    if (asked.get("stream_options") or {}).get("include_usage") and "usage" in body:
        yield _sent({**top, "choices": [], "usage": body["usage"]})
    yield b"data: [DONE]\n\n"


def _delta(delta: Any) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": None}


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A message in parts: texts in pieces, the arguments of tools in pieces, and all else as it is."""
    role = message.get("role", "assistant")
    yield {"role": role, "content": "" if isinstance(message.get("content"), str) else None}
    for name, value in message.items():
        if name == "tool_calls" and isinstance(value, list):
            yield from _tools(value)
        elif isinstance(value, str) and name != "role":
            for piece in _PIECE.findall(value):
                yield {name: piece}
        elif name != "role":
            yield {name: value}


def _tools(calls: list[Any]) -> Iterator[dict[str, Any]]:
    for place, call in enumerate(calls):
        function = dict(call.get("function") or {})
        given = function.get("arguments")
        pieces = _PIECE.findall(given) if isinstance(given, str) else [given]
        yield {"tool_calls": [{**call, "index": place, "function": {**function, "arguments": pieces[0]}}]}  # fmt: skip
        for piece in pieces[1:]:
            yield {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}


def anthropic_stream(body: Any, asked: Mapping[str, Any]) -> Iterator[bytes]:  # noqa: ARG001 - as the other one
    """The events of a message; a body that is none is one event."""
    content = body.get("content") if isinstance(body, dict) else None
    if not isinstance(content, list):
        yield _event(body)
        return
    usage = body.get("usage")
    begun = {**body, "content": [], "stop_reason": None, "stop_sequence": None}
    if isinstance(usage, dict):
        begun["usage"] = {**usage, "output_tokens": 1}
        begun["usage"].pop("output_tokens_details", None)
    yield _event({"type": "message_start", "message": begun})
    yield _event({"type": "ping"})
    for place, block in enumerate(content):
        yield from _block(place, block)
    ending = {k: body.get(k) for k in ("stop_reason", "stop_sequence", "stop_details") if k in body}
    last = {"type": "message_delta", "delta": ending}
    yield _event(last if usage is None else {**last, "usage": usage})
    yield _event({"type": "message_stop"})


def _block(place: int, block: Mapping[str, Any]) -> Iterator[bytes]:
    kind = block.get("type")
    text = block.get(str(kind))
    pieces = _PIECE.findall(text) if isinstance(text, str) else []
    begun = {**block, str(kind): ""} if isinstance(text, str) else block
    yield _event({"type": "content_block_start", "index": place, "content_block": begun})
    for piece in pieces:
        delta = {"type": f"{kind}_delta", str(kind): piece}
        yield _event({"type": "content_block_delta", "index": place, "delta": delta})
    yield _event({"type": "content_block_stop", "index": place})


def ollama_stream(body: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[bytes]:  # noqa: ARG001 - as the others
    """The lines of a chat; a body that is none is one line."""
    message = body.get("message")
    if not isinstance(message, dict):
        yield _line(body)
        return
    told = {name: body.get(name) for name in ("model", "created_at")}
    for name, value in message.items():
        for piece in _PIECE.findall(value) if name != "role" else ():
            yield _line({**told, "message": {"role": "assistant", name: piece}, "done": False})  # fmt: skip
    yield _line({**body, "message": {"role": "assistant", "content": ""}})


def _sent(data: Any) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _event(data: Any) -> bytes:
    name = data.get("type", "error") if isinstance(data, dict) else "error"
    return f"event: {name}\n".encode() + _sent(data)


def openai_failure(error: Mapping[str, Any]) -> bytes:
    """The event with which a stream fails."""
    return _sent(error)


def anthropic_failure(error: Mapping[str, Any]) -> bytes:
    """The event with which a stream fails."""
    return _event(error)


def ollama_failure(error: Mapping[str, Any]) -> bytes:
    """The line with which a stream fails."""
    return _line(error)


def _line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data).encode() + b"\n"


def framed(event: bytes) -> bytes:
    """An event of a message in a frame of Bedrock's; an error is an exception."""
    data = event.partition(b"data: ")[2].strip()
    told = json.loads(data)
    if told.get("type") == "error":
        payload = json.dumps({"message": told["error"].get("message")}).encode()
        headers = {":message-type": "exception", ":exception-type": "modelStreamErrorException"}
    else:
        payload = json.dumps({"bytes": base64.b64encode(data).decode(), "p": "abcd"}).encode()
        headers = {":message-type": "event", ":event-type": "chunk"}
    block = b"".join(
        bytes([len(name)]) + name.encode() + b"\7" + struct.pack(">H", len(value)) + value.encode()
        for name, value in ({":content-type": "application/json"} | headers).items()
    )
    prelude = struct.pack(">II", 16 + len(block) + len(payload), len(block))
    frame = prelude + struct.pack(">I", zlib.crc32(prelude)) + block + payload
    return frame + struct.pack(">I", zlib.crc32(frame))
