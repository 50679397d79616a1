"""A chat completion's request, and the job that it asks for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from orchestrator.api.chat.models import choice_of
from orchestrator.question.request import AskRequest, JobRequest
from orchestrator.question.sent import invalid_field
from orchestrator.settings import Settings
from posology.errors import InvalidQuery
from posology.published.base import Described, parse_strictly
from posology.text.follow_ups import continued

M = TypeVar("M", bound=AskRequest)

#: fields of a job that the request says in OpenAI's own way → how
_ELSEWHERE = MappingProxyType(
    {
        "question": "the last message of the user",
        "policy": "`model`, e.g. posology/router:keep=own",
        "strategy": "`model`, e.g. posology/direct",
    }
)
#: parameters that would change what the caller receives → their values that change nothing
_NEUTRAL: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "n": (None, 1),
        "logprobs": (None, False),
        "audio": (None,),
        "functions": (None, []),
        "function_call": (None, "none", "auto"),
        "tool_choice": (None, "none", "auto"),
        "modalities": (None, ["text"]),
        "response_format": (None, {"type": "text"}),
        "service_tier": (None, "auto", "default", "flex"),
    }
)


class ChatPart(Described):
    """A part of a message."""

    model_config = ConfigDict(extra="ignore")

    type: str
    """Type: `text`."""
    text: str | None = None
    """Text of the part."""


class ChatTurn(Described):
    """A message of the conversation."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    """Author of the message."""
    content: str | tuple[ChatPart, ...] | None = None
    """Its text."""


class ChatStreaming(Described):
    """Options of a stream."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool | None = None
    """Whether a last chunk has the tokens. Default: false."""


class ChatRequest(Described):
    """A chat completion's request. The last message of the user is the question.

    Fields that do not stand here have no effect and are named in `posology.ignored` of the response.
    """

    model_config = ConfigDict(extra="allow")

    model: Annotated[str, Field(min_length=1, max_length=300)]
    """How the question is answered: a name of `GET /v1/models`, with settings of the policy if need be, e.g.
    posology/router:keep=own."""
    messages: Annotated[tuple[ChatTurn, ...], Field(min_length=1)]
    """Messages. The last one of the user is the question. If it continues the user's earlier ones ("And in children?"), it is
    asked with them; the others are not read."""
    stream: bool | None = None
    """Whether the stages and the answer come as server-sent events. Default: false."""
    stream_options: ChatStreaming | None = None
    """Options of the stream. Default: none."""
    max_tokens: int | None = None
    """Older name of `max_completion_tokens`. Default: none."""
    max_completion_tokens: int | None = None
    """Maximum output tokens of one model call, 64 to 200000. Default: POSOLOGY_MAX_TOKENS, else the bound of each stage."""
    reasoning_effort: str | None = None
    """Reasoning effort. Default: POSOLOGY_EFFORT, else low to answer and the model's lowest to extract."""
    service_tier: str | None = None
    """Service tier: auto or default (the service's own), or flex. Default: auto."""
    posology: dict[str, Any] | None = None
    """Any other field of a job, e.g. k, filters, form, model (the language model) or max_cost_usd. Default: none."""

    def to_job(self, settings: Settings, *, deadline: float) -> JobRequest:
        """Return the job that the request asks for, with every default filled in.

        Args:
            settings: defaults of a question.
            deadline: seconds until the job expires, unless the request says.

        Raises:
            InvalidQuery: a field is invalid, or asks for what an answer cannot be.
            RequestProblem: the model is unknown.
            UnknownModel: the language model in ``posology`` is unknown.
        """
        self._check_parameters()
        parts = self._parts()
        if not parts:
            raise InvalidQuery(
                "messages: the last message of the user is the question, and there is none",
                field="messages",
            )
        given = self.posology or {}
        for name, where in _ELSEWHERE.items():
            if name in given:
                raise InvalidQuery(
                    f"posology.{name} is given by {where}: omit it", field="posology"
                )
        own = {
            "question": " ".join(parts),
            "max_tokens": self.max_tokens
            if self.max_completion_tokens is None
            else self.max_completion_tokens,
            "effort": self.reasoning_effort,
            "tier": "flex" if self.service_tier == "flex" else None,
        }
        sent = {name: value for name, value in own.items() if value is not None}
        fields = {**given, **choice_of(self.model), **sent}
        try:
            # someone waits: the tier batch is refused, and as the service's default it is not taken
            waiting = {
                k: v for k, v in fields.items() if k not in ("deadline_seconds", "collection")
            }
            asked = _parse(AskRequest, waiting)
            tier = asked.to_request(settings).tier
            return _parse(
                JobRequest, {"deadline_seconds": deadline} | fields | {"tier": tier}
            ).settled(settings)
        except InvalidQuery as error:
            raise InvalidQuery(error.message, field=_named(error.field, given)) from None

    def ignored(self) -> tuple[str, ...]:
        """Return the names of the fields that have no effect, in the order of the request."""
        more = ["messages"] if len(self.messages) > max(1, len(self._parts())) else []
        return (*more, *(name for name in self.model_extra or {} if name not in _NEUTRAL))

    @property
    def completed(self) -> str | None:
        """The question with those of the user's that it continues; ``None``: it is asked as it was sent."""
        parts = self._parts()
        return " ".join(parts) if len(parts) > 1 else None

    def _check_parameters(self) -> None:
        sent = {**(self.model_extra or {}), "service_tier": self.service_tier}
        for name, neutral in _NEUTRAL.items():
            if sent.get(name) not in neutral:
                allowed = " or ".join(json.dumps(value) for value in neutral if value is not None)
                raise InvalidQuery(
                    f"{name} is not supported: {f'send {allowed}, or ' if allowed else ''}omit it",
                    field=name,
                )

    def _parts(self) -> Sequence[str]:
        questions = ["\n".join(_texts(turn)) for turn in self.messages if turn.role == "user"]
        return continued(questions) if questions else ()


def _texts(turn: ChatTurn) -> Iterator[str]:
    if isinstance(turn.content, str):
        yield turn.content
        return
    for part in turn.content or ():
        if part.type != "text" or part.text is None:
            raise InvalidQuery(
                f"messages: a question is text (got a part of type {part.type[:50]!r})",
                field="messages",
            )
        yield part.text


def _parse(form: type[M], fields: Mapping[str, Any]) -> M:
    try:
        return parse_strictly(form, json.dumps(fields))
    except ValidationError as error:
        raise invalid_field(error.errors(include_url=False, include_input=False), form) from None


def _named(field: str, given: Mapping[str, Any]) -> str:
    """Return the name of a job's field in the request."""
    if field.partition(".")[0] in given:
        return f"posology.{field}"
    return {
        "question": "messages",
        "max_tokens": "max_completion_tokens",
        "effort": "reasoning_effort",
        "tier": "service_tier",
        "policy": "model",
    }.get(field, field)
