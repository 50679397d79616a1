"""Chat completions and models in OpenAI's form, as far as Posology sends them."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import ConfigDict, Field

from posology.published.answers import Status
from posology.published.base import Dollars, Published


class ChatModel(Published):
    """A model to ask: how questions are answered, not which language model answers."""

    id: str = Field(examples=["posology/router"])
    """Name: `posology` (the service's own policy), `posology/POLICY` or `posology/STRATEGY`."""
    object: Literal["model"] = "model"
    """Always `model`."""
    created: int
    """Time when this process of the service started, in POSIX seconds."""
    owned_by: str = "posology"
    """Always `posology`."""


class ChatModels(Published):
    """All models to ask."""

    object: Literal["list"] = "list"
    """Always `list`."""
    data: tuple[ChatModel, ...]
    """The models."""


class UrlCitation(Published):
    """A link to a cited article."""

    start_index: int
    """First code point of the Markdown link in the message."""
    end_index: int
    """Code point after its last one."""
    url: str
    """Address of the article at PubMed, PubMed Central or its publisher."""
    title: str
    """Title of the article; empty: unknown."""


class ChatAnnotation(Published):
    """An annotation of a message."""

    type: Literal["url_citation"] = "url_citation"
    """Always `url_citation`."""
    url_citation: UrlCitation
    """The citation."""


class ChatFunction(Published):
    """The function of a tool call."""

    name: str
    """Name that the request gave it."""
    arguments: str
    """Arguments, a JSON object as text."""


class ChatToolCall(Published):
    """A call of a function that a chat interface asked for to receive a title."""

    index: Literal[0] = 0
    """Always 0."""
    id: str
    """Id of the call."""
    type: Literal["function"] = "function"
    """Always `function`."""
    function: ChatFunction
    """The function."""


class ChatMessage(Published):
    """The answer or refusal as a message."""

    role: Literal["assistant"] = "assistant"
    """Always `assistant`."""
    content: str | None
    """Answer or reason of the refusal, with its sources and their verified quotes, as Markdown; null: a title is in
    `tool_calls`."""
    refusal: None = None
    """Always null: that the literature does not answer is an answer, see `posology.status`."""
    annotations: tuple[ChatAnnotation, ...]
    """One for each link to an article in `content`."""
    tool_calls: tuple[ChatToolCall, ...] = Field(default=(), exclude_if=lambda calls: not calls)
    """The title of a conversation, if it was asked for as a function's arguments; absent otherwise."""


class ChatChoice(Published):
    """The one choice of a completion."""

    index: Literal[0] = 0
    """Always 0."""
    message: ChatMessage
    """The message."""
    finish_reason: Literal["stop"] = "stop"
    """Always `stop`."""
    logprobs: None = None
    """Always null."""


class ChatPromptDetails(Published):
    """Input tokens in detail."""

    cached_tokens: int
    """Input tokens read from a prompt cache."""


class ChatCompletionDetails(Published):
    """Output tokens in detail."""

    reasoning_tokens: int
    """Hidden output tokens."""


class ChatUsage(Published):
    """Tokens of all model calls of the question; `posology.usage_complete` says whether more may have been billed."""

    prompt_tokens: int
    """Input tokens."""
    completion_tokens: int
    """Output tokens, hidden ones included."""
    total_tokens: int
    """Their sum."""
    prompt_tokens_details: ChatPromptDetails
    """Input tokens in detail."""
    completion_tokens_details: ChatCompletionDetails
    """Output tokens in detail."""


class ChatTask(StrEnum):
    """Request of a chat interface that is no question."""

    TITLE = "title"
    TAGS = "tags"
    FOLLOW_UPS = "follow_ups"
    QUERIES = "queries"
    PROBE = "probe"


class ChatOutcome(Published):
    """Outcome, cost and versions, which OpenAI's form lacks. The job has the quotes with their offsets."""

    job: str | None
    """Id of the job; null: there is none, as for each `task`."""
    status: Status | None
    """Answered, unsupported (no quote passed the check) or refused; null: a `task`."""
    choice: str | None
    """Verdict, if the question asked for one and the model gave one."""
    model: str | None
    """Language model that answered, as `provider:name`; null: none was called."""
    strategy: str | None
    """Strategy that answered; null: a `task`."""
    index: str | None
    """Name and version of the index; null: a `task`."""
    task: ChatTask | None = None
    """Request of a chat interface (a title, tags, follow-ups, search queries) or test of the connection (probe) that was
    answered from its own words at no cost; null: a question."""
    cost_usd: Dollars | None
    """Cost in dollars; null: usage or price of an attempt is unknown."""
    charged_usd: Dollars
    """Dollars that count against limits: unknown costs at their bounds."""
    usage_complete: bool
    """Whether every attempt's usage is known."""
    ignored: tuple[str, ...]
    """Fields of the request that have no effect here. `messages`: those that were not read."""
    question: str | None = None
    """Question that was asked, where the user's earlier ones complete the last; null: as it was sent."""


class ChatCompletion(Published):
    """A completion in OpenAI's form."""

    id: str
    """Id of the job; of a `task`, which has none, an id of its own."""
    object: Literal["chat.completion"] = "chat.completion"
    """Always `chat.completion`."""
    created: int
    """Time of submission, in POSIX seconds."""
    model: str
    """Model that was asked."""
    choices: tuple[ChatChoice]
    """The one choice."""
    usage: ChatUsage
    """Tokens."""
    posology: ChatOutcome
    """Outcome, cost and version."""


class ChatDelta(Published):
    """Addition of a chunk to the message."""

    role: Literal["assistant"] | None = None
    """Role, in the first chunk."""
    reasoning_content: str | None = None
    """A stage of the work, in words. No text of a model that is not verified is ever sent."""
    content: str | None = None
    """The whole verified answer, in one chunk."""
    annotations: tuple[ChatAnnotation, ...] | None = None
    """Citations, in the same chunk."""
    tool_calls: tuple[ChatToolCall, ...] | None = None
    """The title of a conversation, if it was asked for as a function's arguments."""


class ChatChunkChoice(Published):
    """The one choice of a chunk."""

    index: Literal[0] = 0
    """Always 0."""
    delta: ChatDelta
    """The addition."""
    finish_reason: Literal["stop"] | None = None
    """`stop` in the last chunk with a choice."""


class ChatChunk(Published):
    """A chunk of a streamed completion in OpenAI's form; absent fields are left out."""

    id: str
    """Id of the job; of a `task`, which has none, an id of its own."""
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    """Always `chat.completion.chunk`."""
    created: int
    """Time of submission, in POSIX seconds."""
    model: str
    """Model that was asked."""
    choices: tuple[ChatChunkChoice, ...]
    """The one choice; empty in the chunk with the usage."""
    usage: ChatUsage | None = None
    """Tokens, in a last chunk of its own, if the request asked for them."""
    posology: ChatOutcome | None = None
    """Outcome, cost and version, in the last chunk with a choice."""


class ChatErrorBody(Published):
    """An error in OpenAI's form; the fields of the problem, such as `resets` of a budget, stand beside these."""

    model_config = ConfigDict(extra="allow")

    message: str
    """What is wrong, and what to do."""
    type: str
    """Kind: invalid_request_error, authentication_error, permission_error, insufficient_quota (the budget),
    rate_limit_error or server_error."""
    param: str | None = None
    """Field of the request; null: none."""
    code: str | None = Field(default=None, examples=["budget-exhausted"])
    """Name of the problem, as in `urn:posology:problem:NAME`; `model_not_found` for an unknown model."""


class ChatError(Published):
    """The body of a response that reports an error, in OpenAI's form."""

    error: ChatErrorBody
    """The error."""
