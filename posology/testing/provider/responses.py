"""Responses to the steps of a script, common to all stub servers."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from posology.testing.provider import formats, streaming
from posology.testing.provider.steps import (
    Broken,
    Cut,
    Hang,
    Malformed,
    NoSuchModel,
    Reply,
    Status,
    Step,
    Vectors,
)
from posology.testing.provider.streaming import FRAMES, LINES, SENT_EVENTS
from posology.types import Usage

_WORD = re.compile(r"\w+")
#: the end of Bedrock's path for streams
_FRAMED = "invoke-with-response-stream"
#: paths, and the provider whose format is spoken there; Azure's, Bedrock's and Vertex AI's hold the model
_ROUTES: Mapping[str, str] = {
    "/v1/chat/completions": "openai",
    "/v1/embeddings": "openai",
    "/api/chat": "ollama",
    "/v1/messages": "anthropic",
    "/v1/messages/count_tokens": "anthropic",
    r"/openai/deployments/[^/]+/chat/completions": "openai",
    rf"/model/[^/]+/(invoke|{_FRAMED})": "anthropic",
    r"/v1/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/[^/]+:(rawPredict|streamRawPredict)": "anthropic",
}
#: where providers put their id of a request
_ID_HEADERS = ("x-request-id", "request-id", "x-amzn-requestid")


#: the end of a body in chunks
_LAST = b"0\r\n\r\n"
#: of a body that drips
PIECES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """One response as it goes out, and what the provider makes of the request."""

    #: for people and counts, e.g. ``reply`` or ``status 429``
    played: str
    #: ``None``: not even a status line goes out
    code: int | None
    body: bytes = b""
    #: beyond ``body`` where the connection ends too early
    content_length: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    #: seconds from the request to the first byte, or to the end of the connection
    latency: float = 0.0
    #: seconds over which the body goes out, in pieces
    drip: float = 0.0
    #: seconds from the last byte to the end of the connection
    silence: float = 0.0
    #: whether the provider did the work, and bills it, whatever becomes of the reply
    finished: bool = False
    #: whether the body ends where the reply does, as far as HTTP does not tell
    whole: bool = True
    #: of the work; ``None``: none was done, or the reply does not say
    usage: Usage | None = None

    @property
    def framing(self) -> dict[str, str]:
        """The headers, with the length of a body that is not in chunks."""
        headers = dict(self.headers)
        if "transfer-encoding" not in headers:
            headers["content-length"] = str(self.content_length)
        return headers

    @property
    def pieces(self) -> tuple[bytes, ...]:
        """The body in the pieces in which it drips; each after the first one comes later by the same time."""
        size = max(1, -(-len(self.body) // PIECES))
        return tuple(self.body[at : at + size] for at in range(0, len(self.body), size))

    @property
    def cut(self) -> bool:
        """Whether the connection ends too early."""
        return self.code is None or self.content_length > len(self.body)


def speaks(path: str) -> str | None:
    """Return the provider whose format is spoken at a path, a query apart; ``None``: there is no such path."""
    plain = path.partition("?")[0]
    return next((name for known, name in _ROUTES.items() if re.fullmatch(known, plain)), None)


def streamed(path: str, asked: Any) -> str | None:
    """Return the media type of the stream that a request asks for; ``None``: it asks for none."""
    if path.partition("?")[0].endswith(_FRAMED):
        return FRAMES
    if not (isinstance(asked, dict) and asked.get("stream")):
        return None
    return LINES if speaks(path) == "ollama" else SENT_EVENTS


def respond(
    step: Step, *, provider: str, asked: Any, request_id: str, stream: str | None = None
) -> Response:
    """The response that a step stands for, in a provider's format.

    Args:
        step: what to do.
        provider: ``openai``, ``anthropic`` or ``ollama``.
        asked: the request's body, decoded.
        request_id: the provider's id of this request, unique while the stub runs.
        stream: see :func:`streamed`.
    """
    speaker = _Speaker(provider=provider, asked=asked, request_id=request_id, stream=stream)
    match step:
        case Reply() if _wants_vectors(asked):
            # whatever else is scripted, a server of both answers each in its form
            return _embedded(Vectors(latency=step.latency), asked=asked, request_id=request_id)
        case Vectors():
            return _embedded(step, asked=asked, request_id=request_id)
        case Reply():
            return speaker.reply(step)
        case Status():
            return speaker.error(step)
        case NoSuchModel():
            error = getattr(formats, f"{provider}_no_such_model")(_model(asked))
            return _whole("no such model", 404, _encode(error, request_id), request_id)
        case Hang():
            return Response(played="hang", code=None, latency=step.seconds)
        case Cut():
            return speaker.cut(step)
        case Broken():
            return speaker.broken(step)
        case Malformed():
            kind = {"content-type": step.content_type}
            return _whole("malformed", 200, step.body, request_id, headers=kind)


def no_such_path(request_id: str) -> Response:
    """The response at a path that no provider has."""
    return _whole("no such path", 404, b'{"detail": "no such path"}', request_id)


def document(body: Any) -> Response:
    """The response at the path of a document."""
    return _whole("document", 200, json.dumps(body).encode(), "none")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Speaker:
    """Writes responses to one request; the fields are :func:`respond`'s."""

    provider: str
    asked: Any
    request_id: str
    stream: str | None

    def reply(self, step: Reply) -> Response:
        """A success."""
        text = step.text if isinstance(step.text, str) else step.text(self.asked)
        usage = step.usage(self.asked, text) if callable(step.usage) else step.usage
        fields = self._fields(step, text, usage)
        headers = _headers(self.request_id)
        if self.stream is None:
            body = _encode(fields, self.request_id)
        else:
            body = _chunked(self._events(fields)) + _LAST
            headers |= self._of_streams()
        return Response(
            played="reply of zeros" if step.zeros else "reply",
            code=200,
            body=body,
            content_length=len(body),
            headers=headers,
            latency=step.latency,
            drip=step.drip,
            finished=True,
            usage=usage,
        )

    def error(self, step: Status) -> Response:
        """An error; of status 200, it stands in a stream where one is asked for."""
        if not step.within:
            body = step.body
            if body is None:
                error = getattr(formats, f"{self.provider}_error")
                body = _encode(error(step.code, step.kind, step.message), self.request_id)
            return _whole(f"status {step.code}", step.code, body, self.request_id, headers=step.headers)  # fmt: skip
        failed = self._failure(step)
        played = f"error {step.code} within"
        if self.stream is None:
            body = step.body or _encode(failed, self.request_id)
            return _whole(played, 200, body, self.request_id, headers=step.headers)
        body = step.body or _chunked([self._failed(failed)]) + _LAST
        headers = self._of_streams() | dict(step.headers)
        return _whole(played, 200, body, self.request_id, headers=headers)

    def cut(self, step: Cut) -> Response:
        """A reply that ends after some bytes, with the connection."""
        if step.after_bytes is None and step.of is None:
            return Response(played="cut before the work", code=None)
        whole = self.reply(step.of or Reply(text="cut short"))
        sent = step.after_bytes
        if sent is None:
            return replace(whole, played="cut before the reply", code=None, body=b"", drip=0.0)
        return replace(whole, played="cut within the reply", body=whole.body[:sent], drip=0.0)

    def broken(self, step: Broken) -> Response:
        """A stream that breaks off in the middle."""
        whole = self.reply(step.of)
        if self.stream is None:
            half = whole.body[: len(whole.body) // 2]
        else:
            text = step.of.text if isinstance(step.of.text, str) else step.of.text(self.asked)
            events = list(self._events(self._fields(step.of, text, whole.usage)))
            half = _chunked(events[: len(events) // 2])
            if step.by == "error":
                half += _chunked([self._failed(self._failure(Status(code=502, within=True)))])
            if step.by in ("error", "end"):
                half += _LAST
        return replace(
            whole,
            played=f"broken by {step.by}",
            body=half,
            content_length=len(half) if half.endswith(_LAST) else len(half) + 1,
            whole=False,
            drip=0.0,
            silence=step.seconds if step.by == "silence" else 0.0,
        )

    def _fields(self, step: Reply, text: str, usage: Usage | None) -> dict[str, Any]:
        """The body of a success."""
        asked = self.asked
        write = getattr(formats, f"{self.provider}_reply")
        told = Usage() if step.zeros else usage
        fields: dict[str, Any] = write(_model(asked), text, told, step.finish)
        if self.provider == "anthropic" and isinstance(asked, dict) and "max_tokens" not in asked:
            # tokens are to be counted
            return {"input_tokens": None if usage is None else usage.total_input}
        if not fields["model"]:
            # Bedrock and Vertex AI have it in the path
            del fields["model"]
        named = step.tier or (asked.get("service_tier") if isinstance(asked, dict) else None)
        getattr(formats, f"{self.provider}_tier")(fields, named)
        return fields

    def _events(self, fields: dict[str, Any]) -> Iterator[bytes]:
        """The events of a success."""
        write = getattr(streaming, f"{self.provider}_stream")
        events: Iterator[bytes] = write(fields, self.asked)
        return map(streaming.framed, events) if self.stream == FRAMES else events

    def _failure(self, step: Status) -> dict[str, Any]:
        error = getattr(formats, f"{self.provider}_error_within")
        failed: dict[str, Any] = error(step.code, step.kind, step.message)
        return failed

    def _failed(self, failed: dict[str, Any]) -> bytes:
        """The event with which a stream fails."""
        event: bytes = getattr(streaming, f"{self.provider}_failure")(failed)
        return streaming.framed(event) if self.stream == FRAMES else event

    def _of_streams(self) -> dict[str, str]:
        return {"content-type": str(self.stream), "transfer-encoding": "chunked"}


def _chunked(events: Iterable[bytes]) -> bytes:
    """Events as HTTP sends them whose length is not known: each is a chunk (RFC 9112, section 7.1)."""
    return b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events)


def _embedded(step: Vectors, *, asked: Any, request_id: str) -> Response:
    texts = list(asked.get("input") or []) if isinstance(asked, dict) else []
    wanted = asked.get("dimensions") if isinstance(asked, dict) else None
    vectors = [hashed(text, wanted or step.dim) for text in texts]
    usage = step.usage(texts) if callable(step.usage) else step.usage
    body = formats.openai_embeddings(_model(asked), step.change(vectors), usage)
    content = _encode(body, request_id)
    return Response(
        played="vectors",
        code=200,
        body=content,
        content_length=len(content),
        headers=_headers(request_id),
        latency=step.latency,
        finished=True,
        usage=usage,
    )


def _wants_vectors(asked: Any) -> bool:
    return isinstance(asked, dict) and "input" in asked and "messages" not in asked


def _whole(
    played: str,
    code: int,
    body: bytes,
    request_id: str,
    *,
    headers: Mapping[str, str] | None = None,
) -> Response:
    return Response(
        played=played,
        code=code,
        body=body,
        content_length=len(body),
        headers=_headers(request_id) | dict(headers or {}),
    )


def _headers(request_id: str) -> dict[str, str]:
    return {"content-type": "application/json"} | dict.fromkeys(_ID_HEADERS, request_id)


def _model(asked: Any) -> str:
    return str(asked.get("model", "")) if isinstance(asked, dict) else ""


def _encode(body: dict[str, Any], request_id: str) -> bytes:
    if "request_id" in body:
        body["request_id"] = request_id
    return json.dumps(body).encode()


def hashed(text: str, dim: int) -> list[float]:
    """Each word counts at one place of the vector; a text without words has the first unit vector.

    Args:
        text: any.
        dim: numbers.
    """
    vector = [0.0] * dim
    for word in _WORD.findall(text.lower()):
        code = zlib.crc32(word.encode(errors="replace"))
        vector[code % dim] += 1.0 if code >> 31 else -1.0
    if not any(vector):
        vector[0] = 1.0
    return vector
