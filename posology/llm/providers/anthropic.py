"""Anthropic's messages."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2

from posology.errors import AuthenticationFailed, ProviderError, ProviderUnreachable
from posology.llm.providers.translation import from_response, from_transport, named
from posology.llm.providers.wire import (
    MAX_SCHEMAS,
    Reply,
    Wire,
    attempt_headers,
    checked_key,
    checked_url,
    count,
    http_client,
    section,
    timeouts,
)
from posology.types import Call, Completion, Finish, Role, Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

PROVIDER = "anthropic"
KEY_VARIABLE = "ANTHROPIC_API_KEY"
DEFAULT_BASE_URL = "https://api.anthropic.com"

_FINISH = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "max_tokens": Finish.LENGTH,
    # cut all the same, though by the window and not by the bound
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.FILTERED,
}
#: errors that no message of ours should lead to; by name, since releases of the SDK differ
_BY_NAME: dict[str, type[ProviderError]] = {
    "CredentialsError": AuthenticationFailed,
    "RetryableError": ProviderUnreachable,
}


class AnthropicAdapter:
    """A :class:`~posology.seams.Complete` over Anthropic's API: one HTTP request a call.

    Args:
        api_key: the account's key.
        base_url: without the version; ``None``: Anthropic's own.
        timeout: seconds for one request as a whole.
        native_schema: send the schema of a structured reply, for the provider to enforce. Older
            models refuse it; for them, the prompt alone says what form is wanted.
        client: an HTTP client of the caller's, which stays the caller's to close.

    Raises:
        MissingKey: ``api_key`` is empty.
        ConfigurationError: the key or the base URL cannot be one.
    """

    def __init__(
        self,
        *,
        api_key: str | None,
        base_url: str | None = None,
        timeout: float = 60.0,
        native_schema: bool = True,
        client: httpx2.AsyncClient | None = None,
    ) -> None:
        key = checked_key(api_key, variable=KEY_VARIABLE)
        url = checked_url(base_url or DEFAULT_BASE_URL, variable="ANTHROPIC_BASE_URL")
        self._native_schema = native_schema
        self._owned = http_client(url, timeout=timeout) if client is None else None
        self._sdk = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=url,
            timeout=timeouts(timeout),
            max_retries=0,
            http_client=client or self._owned,
            # unless told so the SDK asks the environment whether to trace
            open_telemetry=False,
        )
        # the SDK fills these from the environment, which only our settings may read
        self._sdk.webhook_key = None
        self._sdk._custom_headers = {}  # noqa: SLF001 - there is no public way; a test watches it
        self._wire = Wire(
            provider=PROVIDER,
            base_url=url,
            timeout=timeout,
            id_header="request-id",
            vendor_errors=(anthropic.AnthropicError,),
            translate=lambda error, model: translate(error, model, secret=key),
        )

    async def __call__(self, call: Call) -> Completion:
        """Send one call; see :class:`~posology.seams.Complete`."""
        name = self._wire.name(call.model)
        reply = await self._wire.send(call.model, lambda: self._request(name, call))
        return self._completion(reply, call.model, name)

    async def aclose(self) -> None:
        """Close the connections, unless they are the caller's."""
        if self._owned is not None:
            await self._owned.aclose()

    async def _request(self, name: str, call: Call) -> httpx2.Response:
        body: dict[str, Any] = {
            "model": name,
            "messages": [
                {"role": str(m.role), "content": m.content}
                for m in call.messages
                if m.role is not Role.SYSTEM
            ],
            "max_tokens": call.max_tokens,
        }
        system = [m.content for m in call.messages if m.role is Role.SYSTEM]
        if system:
            body["system"] = "\n\n".join(system)
        if call.temperature is not None:
            body["temperature"] = call.temperature
        if call.schema is not None and self._native_schema:
            body["output_config"] = _output_config(call.schema)
        # not through the SDK's method for messages: it has no temperature any more, takes a long
        # time-out for a reason to insist on streaming, and walks every message and schema
        return await self._sdk.post(
            "/v1/messages",
            cast_to=httpx2.Response,
            body=body,
            options={"headers": attempt_headers() or {}},
        )

    def _completion(self, reply: Reply, model: str, name: str) -> Completion:
        usage = usage_of(reply.body)
        blocks = reply.body.get("content")
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise self._wire.malformed(
                "it has no content", model=model, request_id=reply.request_id, usage=usage
            )
        texts = [block.get("text") for block in blocks if block.get("type") == "text"]
        if not all(isinstance(text, str) for text in texts):
            raise self._wire.malformed(
                "its content is not text", model=model, request_id=reply.request_id, usage=usage
            )
        finish = _FINISH.get(str(reply.body.get("stop_reason")), Finish.OTHER)
        text = "".join(texts)
        if finish is Finish.FILTERED and not text:
            text = str(section(reply.body, "stop_details").get("explanation") or "")
        served = reply.body.get("model")
        return Completion(
            text=text,
            usage=usage,
            finish=finish,
            served_model=served if isinstance(served, str) else name,
            request_id=reply.request_id,
            latency=reply.latency,
        )


@functools.lru_cache(maxsize=MAX_SCHEMAS)
def _output_config(schema: type[BaseModel]) -> dict[str, Any]:
    """Made once: pydantic would write it anew for every call."""
    return {"format": {"type": "json_schema", "schema": anthropic.transform_schema(schema)}}


def usage_of(body: Any) -> Usage | None:
    """Disjoint buckets from Anthropic's counts: cache tokens add to input, thinking is in output.

    Where the cache writes are not broken down by lifetime they are of the default one, five
    minutes. A count that adds and is none makes the whole unknown, and so do searches, which are
    billed beside the tokens and which we never ask for.
    """
    usage = section(body, "usage")
    plain, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    lifetimes = section(usage, "cache_creation")
    read = _added(usage, "cache_read_input_tokens")
    written = _added(usage, "cache_creation_input_tokens")
    short = _added(lifetimes, "ephemeral_5m_input_tokens")
    hour = _added(lifetimes, "ephemeral_1h_input_tokens")
    searches = _added(section(usage, "server_tool_use"), "web_search_requests")
    if (
        plain is None
        or output is None
        or read is None
        or written is None
        or short is None
        or hour is None
        or searches != 0
    ):
        return None
    thinking = count(section(usage, "output_tokens_details").get("thinking_tokens")) or 0
    reasoning = min(thinking, output)
    return Usage(
        input=plain,
        cache_read=read,
        cache_write_5m=max(short, written - hour),
        cache_write_1h=hour,
        output=output - reasoning,
        reasoning=reasoning,
    )


def _added(counts: Mapping[str, Any], name: str) -> int | None:
    """A count on top of the others: 0 where it is not told, ``None`` where it is told wrongly."""
    value = counts.get(name)
    return 0 if value is None else count(value)


def translate(error: Exception, model: str, *, secret: str) -> ProviderError:
    """The error of ours that one of the SDK's, or of its HTTP library's, stands for."""
    match error:
        case anthropic.APIStatusError():
            return from_response(
                provider=PROVIDER,
                model=model,
                status=error.status_code,
                headers=error.response.headers,
                body=error.body,
                request_id=error.request_id,
                secret=secret,
            )
        case anthropic.AnthropicError() if not isinstance(error, anthropic.APIError):
            kind = named(error, _BY_NAME) or ProviderError
            return kind(
                f"{PROVIDER} failed for {model} ({type(error).__name__})",
                provider=PROVIDER,
                model=model,
            )
        case _:
            return from_transport(error, provider=PROVIDER, model=model)
