"""The wire formats of the two providers and of Ollama, written from the provider's side.

Kept apart from the adapters that read them, on purpose: a test of one against the other means
something only while they share no code.
"""

from __future__ import annotations

from typing import Any

from posology.types import Finish, Usage

_OPENAI_FINISH = {
    Finish.STOP: "stop",
    Finish.LENGTH: "length",
    Finish.FILTERED: "content_filter",
    Finish.OTHER: "tool_calls",
}
_ANTHROPIC_FINISH = {
    Finish.STOP: "end_turn",
    Finish.LENGTH: "max_tokens",
    Finish.FILTERED: "refusal",
    Finish.OTHER: "pause_turn",
}
_OPENAI_KINDS = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    404: "model_not_found",
    429: "rate_limit_exceeded",
}
_ANTHROPIC_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def openai_reply(model: str, text: str, usage: Usage | None, finish: Finish) -> dict[str, Any]:
    """The body of a chat completion."""
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": None},
                "finish_reason": _OPENAI_FINISH[finish],
            }
        ],
    }
    if usage is not None:
        written = usage.cache_write_5m + usage.cache_write_1h
        body["usage"] = {
            "prompt_tokens": usage.total_input,
            "completion_tokens": usage.total_output,
            "total_tokens": usage.total_input + usage.total_output,
            "prompt_tokens_details": {
                "cached_tokens": usage.cache_read,
                "cache_write_tokens": written,
            },
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }
    return body


def ollama_reply(model: str, text: str, usage: Usage | None, finish: Finish) -> dict[str, Any]:
    """The body of Ollama's own chat, not streamed (``docs/api.md``)."""
    body: dict[str, Any] = {
        "model": model,
        "created_at": "2026-11-01T12:00:00.0Z",
        "message": {"role": "assistant", "content": text},
        "done": True,
        "done_reason": _OPENAI_FINISH[finish],
        "total_duration": 4_883_583_458,
        "load_duration": 1_334_875,
    }
    if usage is not None:
        body |= {"prompt_eval_count": usage.total_input, "eval_count": usage.total_output}
    return body


def openai_tier(body: dict[str, Any], named: str | None) -> None:
    """Name the service tier in a reply; ``None``: the request asked for none, and none is named."""
    if named is not None:
        body["service_tier"] = named


def openai_embeddings(
    model: str, vectors: list[list[float]], usage: Usage | None
) -> dict[str, Any]:
    """The body of a list of embeddings."""
    body: dict[str, Any] = {
        "object": "list",
        "data": [
            {"object": "embedding", "index": place, "embedding": vector}
            for place, vector in enumerate(vectors)
        ],
        "model": model,
    }
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage.total_input, "total_tokens": usage.total_input}
    return body


def openai_error(status: int, kind: str | None, message: str) -> dict[str, Any]:
    """The body of an error."""
    code = kind or _OPENAI_KINDS.get(status, "server_error")
    return {"error": {"message": message, "type": code, "param": None, "code": code}}


def openai_error_within(status: int, kind: str | None, message: str) -> dict[str, Any]:
    """The body of a reply of status 200 that holds an error, as gateways write it."""
    return {"error": {"message": message, "code": kind or status}}


def ollama_tier(_body: dict[str, Any], _named: str | None) -> None:
    """Ollama has no service tiers."""


def ollama_error(_status: int, _kind: str | None, message: str) -> dict[str, Any]:
    """The body of an error, with or without an error status."""
    return {"error": message}


ollama_error_within = ollama_error


def ollama_no_such_model(model: str) -> dict[str, Any]:
    """The body of a 404 for an unknown model."""
    return ollama_error(404, None, f"model '{model}' not found")


def anthropic_reply(model: str, text: str, usage: Usage | None, finish: Finish) -> dict[str, Any]:
    """The body of a message."""
    body: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": _ANTHROPIC_FINISH[finish],
        "stop_sequence": None,
    }
    if usage is not None:
        body["usage"] = {
            "input_tokens": usage.input,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write_5m + usage.cache_write_1h,
            "cache_creation": {
                "ephemeral_5m_input_tokens": usage.cache_write_5m,
                "ephemeral_1h_input_tokens": usage.cache_write_1h,
            },
            "output_tokens": usage.total_output,
            "output_tokens_details": {"thinking_tokens": usage.reasoning},
        }
    return body


def anthropic_tier(body: dict[str, Any], named: str | None) -> None:
    """Name the service tier in a reply with usage; ``None``: the request asked for none."""
    if "usage" in body:
        asked = named in (None, "standard_only", "auto")
        body["usage"]["service_tier"] = "standard" if asked else named


def anthropic_error(status: int, kind: str | None, message: str) -> dict[str, Any]:
    """The body of an error."""
    return {
        "type": "error",
        "error": {"type": kind or _ANTHROPIC_KINDS.get(status, "api_error"), "message": message},
        "request_id": "req_1",
    }


def anthropic_error_within(status: int, kind: str | None, message: str) -> dict[str, Any]:
    """The body of a reply of status 200 that holds an error."""
    return anthropic_error(status, kind, message)


def openai_no_such_model(model: str) -> dict[str, Any]:
    """The body of a 404 for an unknown model."""
    words = f"The model `{model}` does not exist or you do not have access to it."
    return openai_error(404, None, words)


def anthropic_no_such_model(model: str) -> dict[str, Any]:
    """The body of a 404 for an unknown model."""
    return anthropic_error(404, None, f"model: {model}")
