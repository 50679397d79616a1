"""Calls to models, their completions, and the account of their attempts."""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

from posology.described import published
from posology.types.literature import Excerpt, Query

if TYPE_CHECKING:
    from pydantic import BaseModel

    from posology.types.tables import Field


class Stage(StrEnum):
    """The task of a model in one call."""

    ANSWER = "answer"
    EXTRACT = "extract"
    REDUCE = "reduce"
    #: an answer once more, after its sentences were compared with its quotes
    REPAIR = "repair"
    #: what quotes say of each sentence of an answer
    JUDGE = "judge"
    COMPRESS = "compress"
    LABEL = "label"
    #: vectors of the messages' texts, without a reply in words
    EMBED = "embed"


#: how much a model may reason before it replies
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
#: the levels of effort, lowest first
EFFORTS: Final[tuple[Effort, ...]] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

#: how a reply names its evidence: by the numbers of sentences, or by quotes that it copies
QuoteForm = Literal["sentences", "copied"]
#: the forms of quotes, the default first
QUOTE_FORMS: Final[tuple[QuoteForm, ...]] = ("sentences", "copied")

#: What BriefContext asks of each partition: findings, or an answer with its explanation. Answers that differ are resolved by
#: the reduce call, as published, or by the rule on evidence as far as it decides
PartitionMode = Literal["extract", "answer", "answer-by-rule"]

#: What follows if quotes do not support a sentence of an answer: it is marked, it is sent back to the model once and marked
#: if that does not help, or it is removed. ``model``: a language model judges, and it is marked. ``off``: no check
SupportMode = Literal["mark", "repair", "drop", "model", "off"]
#: the modes, the default first
SUPPORT_MODES: Final[tuple[SupportMode, ...]] = ("mark", "repair", "drop", "model", "off")


#: how a provider is asked to serve a call. ``flex`` and ``batch`` cost less and take longer
Tier = Literal["standard", "flex", "batch"]
#: How a provider served a call. ``priority`` costs more, and is never asked for; ``unknown``: a tier of another name,
#: whose price is unknown
Served = Literal["standard", "flex", "batch", "priority", "unknown"]


#: The service tier that a question's calls are sent in. ``flex-then-standard``: flex while there is capacity;
#: ``batch-then-standard``: calls that failed in a batch, and repairs, are sent in the standard tier
Lane = Literal["standard", "flex-then-standard", "flex", "batch-then-standard", "batch"]


class Role(StrEnum):
    """The author of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One rendered message."""

    role: Role
    content: str


@published("PromptOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class PromptId:
    """The template of a call's messages."""

    name: str
    """File name of the template, without suffix."""
    digest: str
    """First 16 hex digits of the SHA-256 of the template."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One request to a model: the work as data, and the same work as rendered messages.

    An offline reader works from ``query`` and ``excerpts``; providers get ``messages``.
    """

    stage: Stage
    #: ``provider:name``, e.g. ``openai:gpt-6-luna``
    model: str
    query: Query
    #: excerpts in the messages, in order, labelled ``1``, ``2``, … where sentences have numbers, else ``P1``, ``P2``, ….
    #: A ``REDUCE`` call has one for each finding (``F1``, ``F2``, …): its sentences are the finding's quotes
    excerpts: tuple[Excerpt, ...]
    messages: tuple[Message, ...]
    prompt: PromptId
    #: schema of the reply; a reply that does not validate is repaired once
    schema: type[BaseModel] | None = None
    #: bound on output tokens, reasoning included
    max_tokens: int
    #: ``None``: 0 where the model takes the parameter, else not sent
    temperature: float | None = None
    #: level of reasoning to ask for; ``None``: none is sent, and the model's own default holds
    effort: Effort | None = None
    #: Where prefixes of the first user message end that the provider is to cache, in characters, ascending. A later call
    #: of the same messages up to there reads them at the price of a cache. It is no part of the call's content
    cached: tuple[int, ...] = ()
    #: name of the strategy that makes the call; empty: none
    strategy: str = ""
    #: how the reply names its evidence
    quotes: QuoteForm = "copied"
    #: length of the vectors that an ``EMBED`` call asks for; ``None``: the model's own
    dimensions: int | None = None
    #: fields of an evidence table that the reply fills in; empty: it answers ``query``
    fields: tuple[Field, ...] = ()
    #: service tier to send it in. It is no part of the call's content: a reply of one tier is replayed in another
    tier: Tier = "standard"


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedCall:
    """A call that a strategy expects to make, with its expected size and its worst case."""

    call: Call
    #: expected input tokens
    input: float
    #: expected output tokens
    output: float
    #: probability that the call is made, 0 to 1
    share: float = 1.0
    #: step of a ladder that makes it, from 0; a later step is taken only after a refusal
    step: int = 0
    #: expected input tokens that an earlier call of the ladder sent, too: what a provider's cache can hold of them
    repeated: float = 0.0
    #: what the call may turn out to be, the most expensive of which bounds it; empty: exactly ``call``
    worst_cases: tuple[Call, ...] = ()


# Adapters translate: OpenAI's cached and reasoning tokens are subsets of its totals, Anthropic's cache tokens come on top of
# its input.
@published("UsageOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one or more calls, in disjoint buckets."""

    input: int = 0
    """Input tokens neither read from nor written to a prompt cache."""
    cache_read: int = 0
    """Input tokens read from a prompt cache."""
    cache_write_5m: int = 0
    """Input tokens written to a cache that lives five minutes."""
    cache_write_1h: int = 0
    """Input tokens written to a cache that lives an hour."""
    output: int = 0
    """Visible output tokens."""
    reasoning: int = 0
    """Hidden output tokens, billed like output."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    @property
    def total_input(self) -> int:
        """All input tokens, cached or not."""
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h

    @property
    def total_output(self) -> int:
        """All output tokens, visible or not."""
        return self.output + self.reasoning


class Finish(StrEnum):
    """The reason why a model stopped."""

    STOP = "stop"
    #: ``max_tokens`` was reached: the text is truncated
    LENGTH = "length"
    #: the provider's safety system replied instead of the model
    FILTERED = "filtered"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """A model's reply."""

    text: str
    #: ``None``: the provider sent none
    usage: Usage | None
    finish: Finish
    #: the model's name as the provider reports it
    served_model: str
    #: the provider's id of the request, for its support
    request_id: str | None = None
    #: the reply as an instance of ``Call.schema``; ``None`` where the call had none
    parsed: BaseModel | None = None
    #: seconds from sending to the last byte, of the attempt that succeeded
    latency: float | None = None
    #: service tier that it is billed at
    served: Served = "standard"


class Outcome(StrEnum):
    """How one attempt ended."""

    OK = "ok"
    FAILED = "failed"
    #: a reply came and was (or may have been) billed, but could not be used
    UNUSABLE = "unusable"
    CANCELLED = "cancelled"
    #: the process ended before the attempt was settled: billing status unknown
    LOST = "lost"


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptPlan:
    """The part of an attempt that is known before it is sent."""

    #: chosen before sending; sent to the provider as well
    id: str
    #: 1 for a call's first attempt
    attempt: int
    stage: Stage
    model: str
    prompt: PromptId
    #: POSIX seconds
    started: float
    strategy: str = ""
    #: maximum input tokens
    input_bound: int = 0
    #: maximum output tokens
    max_tokens: int = 0
    #: dollars set aside: the maximum cost
    reserved: Decimal = Decimal(0)
    #: version of the prices
    prices: str = ""
    #: service tier that it is sent in
    tier: Tier = "standard"
    #: level of effort that it asks for; ``None``: none
    effort: Effort | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening(AttemptPlan):
    """An attempt that is about to be sent."""

    #: the call's number; ``None`` at a call's first attempt, which gets the next one
    call: int | None
    #: the call's content: equal calls have equal keys
    key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt(AttemptPlan):
    """The account of one attempt at one call, successful or not."""

    #: groups the attempts at one call: 1 for a run's first call, and so on
    call: int
    outcome: Outcome
    #: the error's class name, ``None`` when the attempt succeeded
    error: str | None
    #: ``None``: unknown, so possibly billed
    usage: Usage | None
    #: dollars; ``None``: unknown, because usage or price is
    cost: Decimal | None
    #: seconds
    latency: float
    request_id: str | None
    #: service tier whose price it was settled at, as the reply names it; ``None``: no reply named one
    served: Served | None = None

    @classmethod
    def of(
        cls,
        opening: Opening,
        *,
        call: int,
        outcome: Outcome,
        error: str | None,
        usage: Usage | None,
        cost: Decimal | None,
        latency: float,
        request_id: str | None,
        served: Served | None = None,
    ) -> Attempt:
        """Return the account of an opened attempt that has ended."""
        return cls(
            **{name: getattr(opening, name) for name in _PLAN},
            call=call,
            outcome=outcome,
            error=error,
            usage=usage,
            cost=cost,
            latency=latency,
            request_id=request_id,
            served=served,
        )

    @property
    def charged(self) -> Decimal:
        """Dollars that count against limits: the cost, or the bound if the cost is unknown."""
        return self.reserved if self.cost is None else self.cost

    @property
    def over_bound(self) -> bool:
        """Whether the cost exceeds the bound, which was then wrong."""
        return self.cost is not None and self.cost > self.reserved


_PLAN = tuple(field.name for field in fields(AttemptPlan))
