"""The values that flow through Posology.

Every value is a frozen, keyword-only dataclass without behaviour beyond its own arithmetic.
Offsets are code points into :attr:`Passage.text`; money is :class:`decimal.Decimal` US dollars;
times are seconds. ``None`` always means *unknown*, never zero.

This module imports nothing heavy: every other module of the system may import it freely.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pydantic import BaseModel


class Form(StrEnum):
    """What kind of answer a question wants."""

    FREE = "free"
    CHOICE = "choice"
    YES_NO = "yes_no"
    YES_NO_MAYBE = "yes_no_maybe"


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One answer option of a multiple-choice question."""

    #: a capital letter, A to E
    label: str
    #: the option's wording
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """A question as it was asked. Build it with :func:`posology.query.make_query`."""

    #: the question, stripped, never empty
    text: str
    #: the form of the answer that is wanted
    form: Form = Form.FREE
    #: the options of a ``CHOICE`` question, in order; else empty
    options: tuple[Option, ...] = ()

    @property
    def choices(self) -> tuple[str, ...]:
        """The verdicts that an answer may carry; empty for a free question."""
        match self.form:
            case Form.FREE:
                return ()
            case Form.CHOICE:
                return tuple(option.label for option in self.options)
            case Form.YES_NO:
                return ("yes", "no")
            case Form.YES_NO_MAYBE:
                return ("yes", "no", "maybe")


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """One retrievable piece of literature, usually an abstract."""

    #: unique in an index, e.g. ``pmid:10051933``
    id: str
    #: the citable text; every offset in the system points into it
    text: str
    #: empty where the source has none
    title: str = ""
    #: PubMed identifier, digits only
    pmid: str | None = None
    journal: str | None = None
    #: year of publication
    year: int | None = None
    #: MEDLINE publication types, e.g. ``Randomized Controlled Trial``
    publication_types: tuple[str, ...] = ()
    #: MeSH headings
    mesh: tuple[str, ...] = ()
    #: a retracted passage is never evidence unless it was asked for
    retracted: bool = False
    #: the collection that it came from
    source: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """A sentence as offsets: ``text[start:end]`` is the sentence, without outer whitespace."""

    #: first code point
    start: int
    #: one past the last code point
    end: int

    def of(self, text: str) -> str:
        """The sentence's words in the text that it was split from."""
        return text[self.start : self.end]


@dataclass(frozen=True, kw_only=True, slots=True)
class Excerpt:
    """What a model is shown of a passage: the passage and those of its sentences that are shown.

    Offsets stay those of the passage, so that a quote from an excerpt verifies against the source.
    """

    passage: Passage
    #: the shown sentences, in order; all of them in direct RAG
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One place in a ranking."""

    passage_id: str
    #: comparable within one ranking only
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """Passages in the order that one method gives them, best first."""

    #: ``dense``, ``bm25``, ``bm25_rerank`` or ``fused``
    method: str
    hits: tuple[Hit, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Passage ids, best first."""
        return tuple(hit.passage_id for hit in self.hits)

    def top(self, n: int) -> Ranking:
        """The same ranking cut after its ``n`` best."""
        return Ranking(method=self.method, hits=self.hits[:n])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Encoded:
    """The vectors of one passage."""

    #: of title and text, shape ``(dim,)``, float32, unit length
    vector: NDArray[np.float32]
    #: one a sentence, shape ``(len(sentences), dim)``, float32, unit length
    sentence_vectors: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TokenVectors:
    """The contextual vectors of a text's n tokens, special tokens left out."""

    #: shape ``(n, dim)``, float32, rows of unit length
    vectors: NDArray[np.float32]
    #: vocabulary ids, shape ``(n,)``
    ids: NDArray[np.int64]
    #: code-point offsets into the text, shape ``(n,)`` each
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Retrieved:
    """A retrieved passage with what was computed of it at ingest."""

    passage: Passage
    sentences: tuple[Sentence, ...]
    #: the passage's vector, shape ``(dim,)``, float32, unit length
    vector: NDArray[np.float32]
    #: one vector a sentence, shape ``(len(sentences), dim)``, int8: cosine times 127
    sentence_vectors: NDArray[np.int8]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Retrieval:
    """What the index gave for one query: k passages, and every ranking that led to them."""

    query: Query
    #: in the order of the ranking that was asked for
    passages: tuple[Retrieved, ...]
    #: the query's vector, shape ``(dim,)``, float32, unit length
    query_vector: NDArray[np.float32]
    #: top k by inner product with the query's vector
    dense: Ranking
    #: the same passages as ``dense``, ordered by BM25 among themselves
    bm25_rerank: Ranking
    #: top k of BM25 over the whole corpus
    bm25: Ranking
    #: reciprocal rank fusion of dense and corpus-wide BM25
    fused: Ranking
    #: name and version of the index, e.g. ``index@17``
    index_version: str


class Stage(StrEnum):
    """What a model is asked to do in one call."""

    ANSWER = "answer"
    EXTRACT = "extract"
    REDUCE = "reduce"
    COMPRESS = "compress"
    LABEL = "label"


class Role(StrEnum):
    """Who speaks a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One rendered message."""

    role: Role
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptId:
    """Which template rendered the messages of a call."""

    #: the template's file name without suffix
    name: str
    #: the first 16 hex digits of the SHA-256 of the template's content
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One request to a model: the work as data, and the same work as rendered messages.

    An offline reader works from ``query`` and ``excerpts``; providers get ``messages``.
    """

    stage: Stage
    #: ``provider:name``, e.g. ``openai:gpt-4o-mini``
    model: str
    query: Query
    #: what the messages show, in their order; labelled ``P1``, ``P2``, … in the messages
    excerpts: tuple[Excerpt, ...]
    messages: tuple[Message, ...]
    prompt: PromptId
    #: the reply's form; a reply that does not validate is repaired once
    schema: type[BaseModel] | None = None
    #: bound on output tokens, reasoning included
    max_tokens: int
    #: not sent when ``None``: several current models refuse the parameter
    temperature: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one or more calls, in disjoint buckets: their sum is the whole traffic.

    Adapters translate: OpenAI's cached and reasoning tokens are subsets of its totals, Anthropic's
    cache tokens come on top of its input.
    """

    #: input tokens neither read from nor written to a prompt cache
    input: int = 0
    cache_read: int = 0
    #: written to a cache that lives five minutes
    cache_write_5m: int = 0
    #: written to a cache that lives an hour
    cache_write_1h: int = 0
    #: visible output
    output: int = 0
    #: hidden output, billed like output
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    @property
    def total_input(self) -> int:
        """All tokens that went in, cached or not."""
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h

    @property
    def total_output(self) -> int:
        """All tokens that came out, seen or not."""
        return self.output + self.reasoning


class Finish(StrEnum):
    """Why a model stopped."""

    STOP = "stop"
    #: ``max_tokens`` was reached: the text is truncated
    LENGTH = "length"
    #: the provider's safety system spoke instead of the model
    FILTERED = "filtered"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What a model replied."""

    text: str
    #: ``None`` where the provider sent none
    usage: Usage | None
    finish: Finish
    #: the model's name as the provider reports it
    served_model: str
    #: the provider's id of the request, for their support desk
    request_id: str | None = None
    #: the reply as an instance of ``Call.schema``; ``None`` where the call had none
    parsed: BaseModel | None = None
    #: seconds from sending to the last byte, of the attempt that succeeded
    latency: float | None = None


class Outcome(StrEnum):
    """How one attempt ended."""

    OK = "ok"
    FAILED = "failed"
    #: a reply came and was (or may have been) billed, but could not be used
    UNUSABLE = "unusable"
    CANCELLED = "cancelled"


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """The account of one attempt at one call, whether or not it succeeded."""

    #: groups the attempts at one call: 1 for a run's first call, and so on
    call: int
    #: 1 for a call's first attempt
    attempt: int
    stage: Stage
    model: str
    prompt: PromptId
    outcome: Outcome
    #: the error's class name, ``None`` when the attempt succeeded
    error: str | None
    #: ``None``: not known, so possibly billed
    usage: Usage | None
    #: dollars; ``None``: unknown, because usage or price is
    cost: Decimal | None
    #: seconds
    latency: float
    request_id: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Citation:
    """A verified quote: ``passage.text[start:end] == quote``, always."""

    passage_id: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer with evidence that was checked against the sources."""

    text: str
    #: one of :attr:`Query.choices`; ``None`` for free questions and where the model gave none
    choice: str | None
    citations: tuple[Citation, ...]
    #: quotes that the model gave and that did not pass the check
    dropped_quotes: int
    #: the strategy that answered
    strategy: str
    #: remarks that a reader must see, e.g. that the text is truncated
    notes: tuple[str, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether at least one quote stands."""
        return bool(self.citations)


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A truthful 'the passages do not answer this'."""

    #: in the model's words or ours
    reason: str
    strategy: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Task:
    """What a strategy is asked to do."""

    query: Query
    retrieval: Retrieval
    #: ``provider:name``
    model: str
    #: bound on output tokens of one call
    max_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Situation:
    """All that a policy may look at."""

    query: Query
    retrieval: Retrieval
    #: dollars that may still be spent; ``None``: no limit applies
    remaining: Decimal | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """Which strategy runs, and why: enough to decide the same way again."""

    strategy: str
    #: the policy that decided
    policy: str
    #: a sentence for a reader
    reason: str
    #: what the policy looked at
    features: Mapping[str, Any] = field(default_factory=dict)
