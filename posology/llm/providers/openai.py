"""OpenAI's chat completions and embeddings, and the servers that speak their format."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import httpx2
import openai

from posology.errors import (
    AuthenticationFailed,
    ProviderError,
    ProviderUnreachable,
    TruncatedReply,
    UnusableReply,
)
from posology.llm.providers.translation import from_response, from_transport, named
from posology.llm.providers.vectors import BadVectors, pack, read_vectors
from posology.llm.providers.vectors import usage_of as embedding_usage
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
from posology.llm.schema import response_schema
from posology.types import Call, Completion, Finish, Stage, Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

PROVIDER = "openai"
KEY_VARIABLE = "OPENAI_API_KEY"
DEFAULT_BASE_URL = "https://api.openai.com/v1"

_FINISH = {"stop": Finish.STOP, "length": Finish.LENGTH, "content_filter": Finish.FILTERED}
#: tokens that have no bucket of their own although they have a price of their own
_PRICED_APART = ("audio_tokens", "image_tokens")
#: errors that no chat completion of ours should lead to; by name, since releases of the SDK differ
_BY_NAME: dict[str, type[ProviderError]] = {
    "LengthFinishReasonError": TruncatedReply,
    "ContentFilterFinishReasonError": UnusableReply,
    "SubjectTokenProviderError": AuthenticationFailed,
    "WebSocketConnectionClosedError": ProviderUnreachable,
    "WebSocketQueueFullError": ProviderUnreachable,
}


class OpenAIAdapter:
    """A :class:`~posology.seams.Complete` over OpenAI's API: one HTTP request a call.

    Args:
        api_key: the account's key; for servers that want none, any word.
        base_url: with the version, e.g. ``http://127.0.0.1:8000/v1``; ``None``: OpenAI's own.
        timeout: seconds for one request as a whole.
        legacy_max_tokens: send ``max_tokens``, for compatible servers that do not know
            ``max_completion_tokens``.
        native_schema: send the schema of a structured reply, for the provider to enforce.
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
        legacy_max_tokens: bool = False,
        native_schema: bool = True,
        client: httpx2.AsyncClient | None = None,
    ) -> None:
        key = checked_key(api_key, variable=KEY_VARIABLE)
        url = checked_url(base_url or DEFAULT_BASE_URL, variable="OPENAI_BASE_URL")
        self._legacy_max_tokens = legacy_max_tokens
        self._native_schema = native_schema
        self._owned = http_client(url, timeout=timeout) if client is None else None
        self._sdk = openai.AsyncOpenAI(
            api_key=key,
            base_url=url,
            timeout=timeouts(timeout),
            max_retries=0,
            http_client=client or self._owned,
        )
        # the SDK fills these from the environment, which only our settings may read
        self._sdk.admin_api_key = None
        self._sdk.organization = None
        self._sdk.project = None
        self._sdk._custom_headers = {}  # noqa: SLF001 - there is no public way; a test watches it
        self._wire = Wire(
            provider=PROVIDER,
            base_url=url,
            timeout=timeout,
            id_header="x-request-id",
            vendor_errors=(openai.OpenAIError,),
            translate=lambda error, model: translate(error, model, secret=key),
        )

    async def __call__(self, call: Call) -> Completion:
        """Send one call; see :class:`~posology.seams.Complete`.

        The text of the reply to an ``EMBED`` call is its vectors, see :mod:`posology.llm.providers.vectors`.
        """
        name = self._wire.name(call.model)
        if call.stage is Stage.EMBED:
            reply = await self._wire.send(call.model, lambda: self._embedding(name, call))
            return self._vectors(reply, call, name)
        reply = await self._wire.send(call.model, lambda: self._request(name, call))
        return self._completion(reply, call.model, name)

    async def aclose(self) -> None:
        """Close the connections, unless they are the caller's."""
        if self._owned is not None:
            await self._owned.aclose()

    async def _request(self, name: str, call: Call) -> httpx2.Response:
        body: dict[str, Any] = {
            "model": name,
            "messages": [{"role": str(m.role), "content": m.content} for m in call.messages],
            "max_tokens" if self._legacy_max_tokens else "max_completion_tokens": call.max_tokens,
        }
        if call.temperature is not None:
            body["temperature"] = call.temperature
        if call.schema is not None and self._native_schema:
            body["response_format"] = _response_format(call.schema)
        # not through the SDK's method for chats, which compares every message with every form that
        # one may have, schemas too
        return await self._sdk.post(
            "/chat/completions",
            cast_to=httpx2.Response,
            body=body,
            options={"headers": attempt_headers() or {}},
        )

    async def _embedding(self, name: str, call: Call) -> httpx2.Response:
        body: dict[str, Any] = {"model": name, "input": [m.content for m in call.messages]}
        if call.dimensions is not None:
            body["dimensions"] = call.dimensions
        return await self._sdk.post(
            "/embeddings",
            cast_to=httpx2.Response,
            body=body,
            options={"headers": attempt_headers() or {}},
        )

    def _vectors(self, reply: Reply, call: Call, name: str) -> Completion:
        usage = embedding_usage(reply.body)
        try:
            vectors = read_vectors(reply.body, texts=len(call.messages), dimensions=call.dimensions)
        except BadVectors as error:
            raise self._wire.malformed(
                str(error), model=call.model, request_id=reply.request_id, usage=usage
            ) from None
        served = reply.body.get("model")
        return Completion(
            text=pack(vectors),
            usage=usage,
            finish=Finish.STOP,
            served_model=served if isinstance(served, str) else name,
            request_id=reply.request_id,
            latency=reply.latency,
        )

    def _completion(self, reply: Reply, model: str, name: str) -> Completion:
        usage = usage_of(reply.body)
        choices = reply.body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        content = message.get("content") if isinstance(message, dict) else 0
        if not isinstance(choice, dict) or not isinstance(message, dict):
            reason = "it has no choices with a message"
        elif not isinstance(content, str | None):
            reason = "its content is not text"
        else:
            refusal = message.get("refusal")
            refused = isinstance(refusal, str) and bool(refusal)
            finish = _FINISH.get(str(choice.get("finish_reason")), Finish.OTHER)
            served = reply.body.get("model")
            return Completion(
                text=str(refusal) if refused else content or "",
                usage=usage,
                finish=Finish.FILTERED if refused else finish,
                served_model=served if isinstance(served, str) else name,
                request_id=reply.request_id,
                latency=reply.latency,
            )
        raise self._wire.malformed(reason, model=model, request_id=reply.request_id, usage=usage)


@functools.lru_cache(maxsize=MAX_SCHEMAS)
def _response_format(schema: type[BaseModel]) -> dict[str, Any]:
    """Made once: pydantic would write it anew for every call."""
    wanted = response_schema(schema)
    inner = {"name": wanted.name, "schema": wanted.schema, "strict": wanted.strict}
    return {"type": "json_schema", "json_schema": inner}


def usage_of(body: Any) -> Usage | None:
    """Disjoint buckets from OpenAI's totals, of which details are subsets.

    Some compatible servers count reasoning, or what was cached, beside the totals instead of within
    them, which the sum of all or a part that exceeds its whole shows. A detail that is no count
    leaves its tokens where the totals have them. A reply with tokens that are priced apart, and that
    we never ask for, has unknown usage.
    """
    usage = section(body, "usage")
    prompt, completion = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    inward = section(usage, "prompt_tokens_details")
    outward = section(usage, "completion_tokens_details")
    if prompt is None or completion is None or any(map(_priced_apart, (inward, outward))):
        return None
    read = count(inward.get("cached_tokens")) or 0
    written = count(inward.get("cache_write_tokens")) or 0
    reasoning = count(outward.get("reasoning_tokens")) or 0
    cached = read + written
    #: what the sum of all holds beyond the two totals
    beyond = (count(usage.get("total_tokens")) or 0) - prompt - completion
    if not (cached > prompt or (cached and beyond in (cached, cached + reasoning))):
        prompt -= cached
    if not (reasoning > completion or (reasoning and beyond in (reasoning, cached + reasoning))):
        completion -= reasoning
    return Usage(
        input=prompt,
        cache_read=read,
        cache_write_5m=written,
        output=completion,
        reasoning=reasoning,
    )


def _priced_apart(details: Mapping[str, Any]) -> bool:
    return any(details.get(kind) not in (None, 0) for kind in _PRICED_APART)


def translate(error: Exception, model: str, *, secret: str) -> ProviderError:
    """The error of ours that one of the SDK's, or of its HTTP library's, stands for."""
    match error:
        case openai.APIStatusError():
            return from_response(
                provider=PROVIDER,
                model=model,
                status=error.status_code,
                headers=error.response.headers,
                body=error.body,
                request_id=error.request_id,
                secret=secret,
            )
        case openai.OpenAIError() if not isinstance(error, openai.APIError):
            kind = named(error, _BY_NAME) or ProviderError
            return kind(
                f"{PROVIDER} failed for {model} ({type(error).__name__})",
                provider=PROVIDER,
                model=model,
            )
        case _:
            return from_transport(error, provider=PROVIDER, model=model)
