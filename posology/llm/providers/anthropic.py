"""Anthropic's messages API."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import anthropic
import httpx2

from posology.errors import AuthenticationFailed, ProviderUnreachable
from posology.llm.calls import Told
from posology.llm.models.families import capabilities
from posology.llm.providers.fields import believed, count, fields_of, section
from posology.llm.providers.replies.faults import Fault
from posology.llm.providers.replies.finishes import finish_of
from posology.llm.providers.replies.reader import Reply
from posology.llm.providers.streaming import StreamingAdapter
from posology.llm.providers.streams.messages import MessageAssembly
from posology.llm.providers.translation import Vendor
from posology.llm.providers.wire import MAX_SCHEMAS, mark_prefixes, served_tier
from posology.types import Call, Completion, Finish, Role, Served, Tier, Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

_SERVED: Mapping[str, Served] = MappingProxyType(
    {"standard": "standard", "priority": "priority", "batch": "batch"}
)
#: fields of a message that its tokens can be counted with (types/message_count_tokens_params.py)
_COUNTED = ("model", "messages", "system", "thinking", "output_config")
VENDOR = Vendor(
    provider="anthropic",
    key_variable="ANTHROPIC_API_KEY",
    url_variable="ANTHROPIC_BASE_URL",
    base_url="https://api.anthropic.com",
    id_header="request-id",
    error=anthropic.AnthropicError,
    api_error=anthropic.APIError,
    status_error=anthropic.APIStatusError,
    by_name={"CredentialsError": AuthenticationFailed, "RetryableError": ProviderUnreachable},
)


class AnthropicAdapter(StreamingAdapter):
    """A :class:`~posology.seams.Send` over Anthropic's API: one HTTP request for each call.

    Args:
        api_key: the account's key.
        base_url: without the version; ``None``: Anthropic's own.
        timeout: seconds of silence, before and within a streamed reply; of any other request, seconds as a whole.
        min_tokens_per_second: floor, see :func:`~posology.llm.pace.generation`.
        native_schema: send the schema of a structured reply, for the provider to enforce. Older
            models refuse it; for them, the prompt alone says what form is wanted.
        stream: whether replies are streamed.
        client: an HTTP client of the caller's, which the caller closes.
        more: more options of the SDK's client.

    Raises:
        MissingKey: ``api_key`` is empty.
        ConfigurationError: the key or the base URL is malformed.
    """

    #: names and errors of the service, and the SDK's class of clients
    VENDOR: ClassVar[Vendor] = VENDOR
    SDK: ClassVar[type[Any]] = anthropic.AsyncAnthropic

    def __init__(
        self,
        *,
        api_key: str | None,
        base_url: str | None = None,
        timeout: float = 60.0,
        min_tokens_per_second: float | None = None,
        native_schema: bool = True,
        stream: bool = True,
        client: httpx2.AsyncClient | None = None,
        **more: Any,
    ) -> None:
        super().__init__(
            self.VENDOR,
            self.SDK,
            api_key=api_key,
            base_url=base_url,
            timeout=timeout,
            min_tokens_per_second=min_tokens_per_second,
            stream=stream,
            http=client,
            # by default the SDK asks the environment whether to trace
            open_telemetry=False,
            **more,
        )
        self._native_schema = native_schema
        # the SDK fills it from the environment, which only our settings may read
        self._sdk.webhook_key = None

    async def __call__(
        self, call: Call, *, attempt_id: str | None = None, told: Told | None = None
    ) -> Completion:
        """Send one call; see :class:`~posology.seams.Send`."""
        reply = await self._say(call, "/v1/messages", self.body(call), attempt_id, told)
        return self.read(reply, call.model, tier=call.tier)

    def assembly(self) -> MessageAssembly:
        """Return what puts a streamed reply together."""
        return MessageAssembly()

    def usage_of(self, body: Mapping[str, Any], *, wrote: bool = False) -> Usage | None:
        """See :func:`usage_of`."""
        return usage_of(body, wrote=wrote)

    async def count(self, call: Call) -> int:
        """Return the input tokens of a call as the provider counts them, which costs nothing.

        Raises:
            ProviderError: see :class:`~posology.seams.Send`.
        """
        body = {name: value for name, value in self.body(call).items() if name in _COUNTED}
        reply = await self._send(call, "/v1/messages/count_tokens", body, None)
        counted = count(reply.body.get("input_tokens"))
        if counted is None:
            raise self.unusable(reply, "it has no count", model=call.model, usage=Usage())
        return counted

    def body(self, call: Call) -> dict[str, Any]:
        """Return the body of a call's request.

        Raises:
            UnknownModel: the model is of another provider.
        """
        body: dict[str, Any] = {
            "model": self._name(call.model),
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
        family = capabilities(call.model)
        if family.cache == "asked":
            mark_prefixes(body["messages"], call, {"cache_control": {"type": "ephemeral"}})
        if call.temperature is not None:
            body["temperature"] = call.temperature
        elif family.takes_temperature(call.effort):
            body["temperature"] = 0
        config: dict[str, Any] = {}
        if call.effort is not None:
            # the provider has no level for no reasoning: that is said apart, at the level of least effort
            config["effort"] = "low" if call.effort == "none" else call.effort
        if call.effort == "none" and family.off:
            body["thinking"] = {"type": family.off}
        if call.schema is not None and self._native_schema:
            config |= _output_format(call.schema)
        if config:
            body["output_config"] = config
        if call.tier == "standard" and self.VENDOR is VENDOR:
            # by default an account's priority capacity is used, whose price is unknown
            body["service_tier"] = "standard_only"
        return body

    def read(self, reply: Reply, model: str, *, tier: Tier = "standard") -> Completion:
        """Return the completion of a reply to a request that was sent in a service tier.

        Raises:
            MalformedReply: the reply is not one of the provider's.
            ProviderError: it holds an error instead.
        """
        blocks = _blocks(reply.body.get("content"))
        texts = [one.get("text") for one in blocks or () if one.get("type") == "text"]
        wrote = any(one.get("text") or one.get("thinking") for one in blocks or ())
        known: dict[str, Any] = {
            "model": model,
            "usage": usage_of(reply.body, wrote=wrote),
            "served": served_tier(tier, section(reply.body, "usage").get("service_tier"), _SERVED),
        }
        if (fault := Fault.within(reply.body, answered=blocks is not None)) is not None:
            raise self.told(reply, fault, wrote=wrote, **known)
        if blocks is None:
            reason = f"it has no content (its fields are {fields_of(reply.body)})"
            raise self.malformed(reason, request_id=reply.request_id, **known)
        if not all(isinstance(text, str) for text in texts):
            raise self.malformed("its content is not text", request_id=reply.request_id, **known)
        finish = finish_of(reply.body.get("stop_reason"))
        text = "".join(map(str, texts))
        if finish is Finish.FILTERED and not text:
            text = str(section(reply.body, "stop_details").get("explanation") or "")
        return self._completion(reply, text=text, finish=finish, **known)


def _blocks(content: object) -> list[dict[str, Any]] | None:
    """Return the blocks of a message; ``None``: it has none. Some gateways send a text in their place."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list) and all(isinstance(block, dict) for block in content):
        return content
    return None


@functools.lru_cache(maxsize=MAX_SCHEMAS)
def _output_format(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the schema's form in a request, cached: pydantic would write it for every call."""
    return {"format": {"type": "json_schema", "schema": anthropic.transform_schema(schema)}}


def usage_of(body: Any, *, wrote: bool = False) -> Usage | None:
    """Return disjoint buckets from Anthropic's counts: cache tokens add to input, thinking is in output.

    Cache writes without a lifetime have the default one, five minutes. A malformed count makes the whole
    usage unknown. So do web searches, which are billed beside the tokens and which we never ask for, and counts of zero.

    Args:
        body: of the reply.
        wrote: whether it has a text.
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
    found = Usage(
        input=plain,
        cache_read=read,
        cache_write_5m=max(short, written - hour),
        cache_write_1h=hour,
        output=output - reasoning,
        reasoning=reasoning,
    )
    return believed(found, wrote=wrote)


def _added(counts: Mapping[str, Any], name: str) -> int | None:
    """Return a count that adds to the others: 0 if it is absent, ``None`` if it is malformed."""
    value = counts.get(name)
    return 0 if value is None else count(value)
