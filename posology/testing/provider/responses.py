"""Responses to the steps of a script, common to all stub servers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from posology.testing.provider import formats
from posology.testing.provider.hashing import hashed
from posology.testing.provider.steps import (
    Cut,
    Hang,
    Malformed,
    NoSuchModel,
    Reply,
    Status,
    Step,
    Vectors,
)
from posology.types import Usage

#: paths, and the provider whose format is spoken there; Azure's, Bedrock's and Vertex AI's hold the model
_ROUTES: Mapping[str, str] = {
    "/v1/chat/completions": "openai",
    "/v1/embeddings": "openai",
    "/api/chat": "ollama",
    "/v1/messages": "anthropic",
    "/v1/messages/count_tokens": "anthropic",
    r"/openai/deployments/[^/]+/chat/completions": "openai",
    r"/model/[^/]+/invoke": "anthropic",
    r"/v1/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/[^/]+:rawPredict": "anthropic",
}
#: where providers put their id of a request
_ID_HEADERS = ("x-request-id", "request-id", "x-amzn-requestid")


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
    #: whether the provider did the work, and bills it, whatever becomes of the reply
    finished: bool = False
    #: of the work; ``None``: none was done, or the reply does not say
    usage: Usage | None = None

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


def respond(step: Step, *, provider: str, asked: Any, request_id: str) -> Response:
    """The response that a step stands for, in a provider's format.

    Args:
        step: what to do.
        provider: ``openai`` or ``anthropic``.
        asked: the request's body, decoded.
        request_id: the provider's id of this request, unique while the stub runs.
    """
    match step:
        case Reply() if _wants_vectors(asked):
            # whatever else is scripted, a server of both answers each in its form
            return _embedded(Vectors(latency=step.latency), asked=asked, request_id=request_id)
        case Vectors():
            return _embedded(step, asked=asked, request_id=request_id)
        case Reply():
            text = step.text if isinstance(step.text, str) else step.text(asked)
            return _success(step, text, provider=provider, asked=asked, request_id=request_id)
        case Status():
            body = step.body
            if body is None:
                named = f"{provider}_error_within" if step.within else f"{provider}_error"
                error = getattr(formats, named)
                body = _encode(error(step.code, step.kind, step.message), request_id)
            played = f"error {step.code} within" if step.within else f"status {step.code}"
            code = 200 if step.within else step.code
            return _whole(played, code, body, request_id, headers=step.headers)
        case NoSuchModel():
            error = getattr(formats, f"{provider}_no_such_model")(_model(asked))
            return _whole("no such model", 404, _encode(error, request_id), request_id)
        case Hang():
            return Response(played="hang", code=None, latency=step.seconds)
        case Cut():
            return _cut(step, provider=provider, asked=asked, request_id=request_id)
        case Malformed():
            kind = {"content-type": step.content_type}
            return _whole("malformed", 200, step.body, request_id, headers=kind)


def no_such_path(request_id: str) -> Response:
    """The response at a path that no provider has."""
    return _whole("no such path", 404, b'{"detail": "no such path"}', request_id)


def document(body: Any) -> Response:
    """The response at the path of a document."""
    return _whole("document", 200, json.dumps(body).encode(), "none")


def _cut(step: Cut, *, provider: str, asked: Any, request_id: str) -> Response:
    if step.after_bytes is None and step.of is None:
        return Response(played="cut before the work", code=None)
    ready = step.of or Reply(text="cut short")
    whole = respond(ready, provider=provider, asked=asked, request_id=request_id)
    sent = step.after_bytes
    return Response(
        played="cut before the reply" if sent is None else "cut within the reply",
        code=None if sent is None else whole.code,
        body=whole.body[: sent or 0],
        content_length=whole.content_length,
        headers=whole.headers,
        latency=whole.latency,
        finished=True,
        usage=whole.usage,
    )


def _success(step: Reply, text: str, *, provider: str, asked: Any, request_id: str) -> Response:
    usage = step.usage(asked, text) if callable(step.usage) else step.usage
    write = getattr(formats, f"{provider}_reply")
    told = Usage() if step.zeros else usage
    fields = write(_model(asked), text, told, step.finish)
    if provider == "anthropic" and isinstance(asked, dict) and "max_tokens" not in asked:
        # tokens are to be counted
        fields = {"input_tokens": None if usage is None else usage.total_input}
    elif not fields["model"]:
        # Bedrock and Vertex AI have it in the path
        del fields["model"]
    named = step.tier or (asked.get("service_tier") if isinstance(asked, dict) else None)
    getattr(formats, f"{provider}_tier")(fields, named)
    body = _encode(fields, request_id)
    return Response(
        played="reply of zeros" if step.zeros else "reply",
        code=200,
        body=body,
        content_length=len(body),
        headers=_headers(request_id),
        latency=step.latency,
        drip=step.drip,
        finished=True,
        usage=usage,
    )


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
