"""OpenAI's chat completions and embeddings, and servers with the same API."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import httpx2
import openai

from posology.errors import (
    AuthenticationFailed,
    ProviderUnreachable,
    TruncatedReply,
    UnusableReply,
)
from posology.llm.calls import Told
from posology.llm.models.families import capabilities
from posology.llm.providers.fields import believed, count, fields_of, section
from posology.llm.providers.replies.faults import Fault
from posology.llm.providers.replies.finishes import finish_of, gave_up
from posology.llm.providers.replies.messages import said_in
from posology.llm.providers.replies.reader import Reply
from posology.llm.providers.streaming import StreamingAdapter
from posology.llm.providers.streams.assembly import Assembly
from posology.llm.providers.streams.chat import ChatAssembly
from posology.llm.providers.translation import Vendor
from posology.llm.providers.vectors import BadVectors, pack, read_vectors
from posology.llm.providers.vectors import usage_of as embedding_usage
from posology.llm.providers.windows import check_whole
from posology.llm.providers.wire import MAX_SCHEMAS, mark_prefixes, served_tier
from posology.llm.schema import response_schema
from posology.network.hosts import is_loopback
from posology.types import Call, Completion, Finish, Served, Stage, Tier, Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

#: the provider's names of its service tiers
_SERVED: Mapping[str, Served] = MappingProxyType(
    {"default": "standard", "flex": "flex", "priority": "priority", "fast": "priority"}
)
#: kinds of tokens with a price but no bucket
_PRICED_APART = ("audio_tokens", "image_tokens")
VENDOR = Vendor(
    provider="openai",
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    base_url="https://api.openai.com/v1",
    id_header="x-request-id",
    error=openai.OpenAIError,
    api_error=openai.APIError,
    status_error=openai.APIStatusError,
    by_name={
        "LengthFinishReasonError": TruncatedReply,
        "ContentFilterFinishReasonError": UnusableReply,
        "SubjectTokenProviderError": AuthenticationFailed,
        "WebSocketConnectionClosedError": ProviderUnreachable,
        "WebSocketQueueFullError": ProviderUnreachable,
    },
)


class OpenAIAdapter(StreamingAdapter):
    """A :class:`~posology.seams.Send` over OpenAI's API: one HTTP request for each call.

    Args:
        api_key: the account's key; any word for servers without keys.
        base_url: with the version, e.g. ``http://127.0.0.1:8000/v1``; ``None``: OpenAI's own.
        timeout: seconds of silence, before and within a streamed reply; of any other request, seconds as a whole.
        min_tokens_per_second: floor, see :func:`~posology.llm.pace.generation`.
        legacy_max_tokens: send ``max_tokens``, for compatible servers that do not know
            ``max_completion_tokens``.
        native_schema: send the schema of a structured reply, for the provider to enforce.
        stream: whether replies in words are streamed.
        client: an HTTP client of the caller's, which the caller closes.
        vendor: names of another service; ``None``: those of the class.
        more: more options of the SDK's client.

    Raises:
        MissingKey: ``api_key`` is empty.
        ConfigurationError: the key or the base URL is malformed.
    """

    #: names and errors of the service, and the SDK's class of clients
    VENDOR: ClassVar[Vendor] = VENDOR
    SDK: ClassVar[type[openai.AsyncOpenAI]] = openai.AsyncOpenAI
    #: whether a server on this machine is asked how far it has read the prompt
    PROGRESS: ClassVar[bool] = True

    def __init__(
        self,
        *,
        api_key: str | None,
        base_url: str | None = None,
        timeout: float = 60.0,
        min_tokens_per_second: float | None = None,
        legacy_max_tokens: bool = False,
        native_schema: bool = True,
        stream: bool = True,
        client: httpx2.AsyncClient | None = None,
        vendor: Vendor | None = None,
        **more: Any,
    ) -> None:
        super().__init__(
            vendor or self.VENDOR,
            self.SDK,
            api_key=api_key,
            base_url=base_url,
            timeout=timeout,
            min_tokens_per_second=min_tokens_per_second,
            stream=stream,
            http=client,
            **more,
        )
        self._legacy_max_tokens = legacy_max_tokens
        self._native_schema = native_schema
        #: whether another server answers, whose models this table does not know
        self._compatible = base_url is not None and base_url.rstrip("/") != VENDOR.base_url
        # the SDK fills these from the environment, which only our settings may read
        self._sdk.admin_api_key = None
        self._sdk.organization = None
        self._sdk.project = None

    async def __call__(
        self, call: Call, *, attempt_id: str | None = None, told: Told | None = None
    ) -> Completion:
        """Send one call; see :class:`~posology.seams.Send`.

        The text of the reply to an ``EMBED`` call is its vectors, see :mod:`posology.llm.providers.vectors`.
        """
        path, body = self.path(call), self.body(call)
        if call.stage is Stage.EMBED:
            reply = await self._send(call, path, body, attempt_id)
            return self.read_vectors(
                reply,
                call.model,
                texts=len(call.messages),
                dimensions=call.dimensions,
                tier=call.tier,
            )
        reply = await self._say(call, path, body, attempt_id, told)
        completion = self.read(reply, call.model, tier=call.tier)
        if self._compatible:
            check_whole(call, completion)
        return completion

    def stream_fields(self) -> Mapping[str, Any]:
        """Return the fields with which a request asks for a stream.

        A server on this machine may be llama.cpp's, which is silent while it reads the prompt unless it is asked for its
        progress (tools/server/README.md, ``return_progress``). Others leave out what they do not know, or refuse it.
        """
        fields = {"stream": True, "stream_options": {"include_usage": True}}
        asks = self.PROGRESS and is_loopback(self._base_url)
        return fields | ({"return_progress": True} if asks else {})

    def assembly(self) -> Assembly:
        """Return what puts a streamed reply together."""
        return ChatAssembly()

    def usage_of(self, body: Mapping[str, Any], *, wrote: bool = False) -> Usage | None:
        """See :func:`usage_of`."""
        return usage_of(body, wrote=wrote)

    def path(self, call: Call) -> str:
        """Return the path of a call's request, below the base URL."""
        return "/embeddings" if call.stage is Stage.EMBED else "/chat/completions"

    def body(self, call: Call) -> dict[str, Any]:
        """Return the body of a call's request.

        Raises:
            UnknownModel: the model is of another provider.
        """
        return self._embedding(call) if call.stage is Stage.EMBED else self._chat(call)

    def _chat(self, call: Call) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._name(call.model),
            "messages": [{"role": str(m.role), "content": m.content} for m in call.messages],
            "max_tokens" if self._legacy_max_tokens else "max_completion_tokens": call.max_tokens,
        }
        family = capabilities(call.model)
        if call.temperature is not None:
            body["temperature"] = call.temperature
        elif family.takes_temperature(call.effort) or (self._compatible and not family.known):
            body["temperature"] = 0
        if call.effort is not None:
            body["reasoning_effort"] = call.effort
        if family.cache == "declined":
            # explicit breakpoints only: no write is billed for a prompt that is sent once
            body["prompt_cache_options"] = {"mode": "explicit"}
            mark_prefixes(body["messages"], call, {"prompt_cache_breakpoint": {"mode": "explicit"}})
        if call.schema is not None and self._native_schema:
            body["response_format"] = _response_format(call.schema)
        if call.tier == "flex":
            body["service_tier"] = "flex"
        elif call.tier == "standard" and self._tiered(call.model):
            # unsaid, it is the one that the project is set to, which may cost more than is reserved
            body["service_tier"] = "default"
        return body

    def _tiered(self, model: str) -> bool:
        """Whether a model is sold in service tiers where the request goes: clouds and servers have names of their own."""
        own = self._vendor is VENDOR and not self._compatible
        return own or len(capabilities(model).tiers) > 1

    def _served(self, reply: Reply, model: str, tier: Tier) -> Served:
        named = reply.body.get("service_tier") if self._tiered(model) else None
        return served_tier(tier, named, _SERVED)

    def _embedding(self, call: Call) -> dict[str, Any]:
        texts = [m.content for m in call.messages]
        body: dict[str, Any] = {"model": self._name(call.model), "input": texts}
        if call.dimensions is not None:
            body["dimensions"] = call.dimensions
        return body

    def read_vectors(
        self,
        reply: Reply,
        model: str,
        *,
        texts: int | None = None,
        dimensions: int | None = None,
        tier: Tier = "standard",
    ) -> Completion:
        """Return the completion of a reply with vectors.

        Args:
            reply: with one vector for each text.
            model: ``provider:name``.
            texts: number of texts sent; ``None``: any.
            dimensions: requested length of a vector; ``None``: any.
            tier: service tier that the request was sent in.

        Raises:
            MalformedReply: the reply has other vectors.
            ProviderError: it holds an error instead.
        """
        usage = embedding_usage(reply.body)
        try:
            vectors = read_vectors(reply.body, texts=texts, dimensions=dimensions)
        except BadVectors as error:
            raise self.unusable(reply, str(error), model=model, usage=usage) from None
        return self._completion(
            reply,
            model=model,
            text=pack(vectors),
            usage=usage,
            finish=Finish.STOP,
            served=self._served(reply, model, tier),
        )

    def read(self, reply: Reply, model: str, *, tier: Tier = "standard") -> Completion:
        """Return the completion of a reply in words, to a request that was sent in a service tier.

        Raises:
            MalformedReply: the reply is not one of the provider's.
            UnusableReply: its text stands in another field.
            ProviderError: it holds an error instead.
        """
        choices = reply.body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        content = said_in(message) if isinstance(message, dict) else None
        wrote = content is not None and bool(content.text or content.reasoning)
        known: dict[str, Any] = {
            "model": model,
            "usage": usage_of(reply.body, wrote=wrote),
            "served": self._served(reply, model, tier),
        }
        fault = _failed(choice) or Fault.within(reply.body, answered=content is not None)
        if fault is not None:
            raise self.told(reply, fault, wrote=wrote, **known)
        if content is None or not isinstance(choice, dict):
            lacks = f"it has no choices with a message (its fields are {fields_of(reply.body)})"
            reason = "its content is not text" if isinstance(message, dict) else lacks
            raise self.malformed(reason, request_id=reply.request_id, **known)
        finish = Finish.FILTERED if content.refused else finish_of(choice.get("finish_reason"))
        if content.misplaced and finish in (Finish.STOP, Finish.OTHER):
            raise self.useless(content.misplaced, request_id=reply.request_id, **known)
        return self._completion(reply, text=content.text, finish=finish, **known)


def _failed(choice: object) -> Fault | None:
    """Return the error of a choice that the server gave up."""
    if not isinstance(choice, dict):
        return None
    finish = choice.get("finish_reason")
    fault = Fault.within({"error": choice.get("error")})
    if gave_up(finish) and (fault is None or fault.status == 200):
        words = f"it ended with {finish}" if fault is None else fault.words
        return Fault(words=words, number=502)
    return fault


@functools.lru_cache(maxsize=MAX_SCHEMAS)
def _response_format(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the schema's form in a request, cached: pydantic would write it for every call."""
    wanted = response_schema(schema)
    inner = {"name": wanted.name, "schema": wanted.schema, "strict": wanted.strict}
    return {"type": "json_schema", "json_schema": inner}


def usage_of(body: Any, *, wrote: bool = False) -> Usage | None:
    """Return disjoint buckets from OpenAI's totals, of which the details are subsets.

    Some compatible servers count reasoning or cached tokens beside the totals, not within them. The total of
    all tokens shows it, or a detail that exceeds its total. What the total of all tokens holds beyond that is
    reasoning that nothing else names. A detail that is not a count is ignored. A reply with audio or image tokens,
    which we never ask for, has unknown usage, and so has one of zeros.

    Args:
        body: of the reply.
        wrote: whether it has a text.
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
    stated = completion
    #: tokens of the grand total beyond the two totals
    beyond = (count(usage.get("total_tokens")) or 0) - prompt - completion
    if not (cached > prompt or (cached and beyond in (cached, cached + reasoning))):
        prompt -= cached
    if not (reasoning > completion or (reasoning and beyond in (reasoning, cached + reasoning))):
        completion -= reasoning
    # beside a text, no output is none that could be added to
    if (
        beyond > 0
        and beyond not in (cached, reasoning, cached + reasoning)
        and (stated or not wrote)
    ):
        reasoning += beyond
    found = Usage(
        input=prompt,
        cache_read=read,
        cache_write_5m=written,
        output=completion,
        reasoning=reasoning,
    )
    return believed(found, wrote=wrote)


def _priced_apart(details: Mapping[str, Any]) -> bool:
    return any(details.get(kind) not in (None, 0) for kind in _PRICED_APART)
