"""Answers, evidence, spending and errors as JSON."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainSerializer

from posology.types import (
    Attempt,
    Coverage,
    Decision,
    Filters,
    Form,
    Level,
    Resolution,
    Rung,
    SameAs,
    Usage,
)


class Published(BaseModel):
    """Base of everything that leaves the system as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


#: dollars as a string of digits, never as a power of ten
Dollars = Annotated[
    Decimal, PlainSerializer(lambda amount: f"{amount:f}", return_type=str, when_used="json")
]


class Status(StrEnum):
    """What became of a question."""

    ANSWERED = "answered"
    #: answered, but no quote of it stands
    UNSUPPORTED = "unsupported"
    REFUSED = "refused"


class Source(Published):
    """A passage, without its text."""

    id: str
    pmid: str | None
    title: str
    journal: str | None
    year: int | None
    publication_types: tuple[str, ...]
    retracted: bool
    source: str | None
    concern: bool = False
    """an expression of concern was published about it"""
    doi: str | None = None
    pmcid: str | None = None
    published: str | None = None
    """date of publication as far as it is known, ISO 8601"""
    trials: tuple[str, ...] = ()
    """registration numbers of the trials that it reports"""
    parent: str | None = None
    """id of the article that it is a part of"""
    section: str | None = None
    """heading of that part"""


class Evidence(Published):
    """A verified quote."""

    passage: Source
    start: int
    """first code point of the quote in the passage's text"""
    end: int
    """one past the last code point"""
    quote: str
    context_start: int
    """first code point of the sentences that the quote stands in"""
    context: str
    """those sentences, whole, so that nothing around the quote is hidden"""


class Position(Published):
    """One source on one side of a contradiction."""

    passage: Source
    level: Level
    """how far its kind of publication carries"""
    quotes: tuple[str, ...]
    """verified quotes that put it there"""


class Disagreement(Published):
    """Sources that contradict each other on one claim, and what became of that."""

    claim: str
    supporting: tuple[Position, ...]
    opposing: tuple[Position, ...]
    resolution: Resolution
    how: str
    """how it was resolved, or why it could not be"""


class Also(Published):
    """A record that was found and left out, because one that is shown is of the same work."""

    id: str
    why: SameAs
    """copy: the same text; version: as of a preprint and its article; trial: the same registered trial"""


class Ranked(Published):
    """A retrieved passage and its places in the rankings, counted from 1."""

    passage: Source
    dense: int | None
    bm25: int | None
    fused: int | None
    dense_score: float | None
    bm25_score: float | None
    fused_score: float | None
    also: tuple[Also, ...] = ()
    """other records of its work, which it stands for"""


class Spending(Published):
    """What the model calls of a question took."""

    attempts: tuple[Attempt, ...]
    usage: Usage
    """of all attempts whose usage is known"""
    usage_complete: bool
    """false when an attempt's usage is unknown: it may have been billed"""
    cost_usd: Dollars | None
    """null when usage or price of an attempt is unknown"""
    charged_usd: Dollars
    """what counts against limits: unknown costs at their bounds"""


class CompressionOutput(Published):
    """What compressing the passages took, what it left, and what that saved; of all calls of a ladder together."""

    compressor: str
    extractive: bool
    """whether all that was shown are the sources' own words; else models' summaries were, which cannot be quoted"""
    kept: int
    """sentences that were shown whole"""
    sentences: int
    """that there were"""
    seconds: float
    """that it took, its own calls included"""
    usage: Usage | None
    """of its own calls; null: a provider did not tell"""
    tokens: int | None
    """of the passages' texts, as the model counts them, about; null: not counted, here and below"""
    shown_tokens: int | None
    """of what was shown of them, about"""
    saved_usd: Dollars | None
    """input that was not paid for, since it was not shown; its own cost is not taken off"""
    calls_usd: Dollars | None
    """of its own calls, which are among the question's attempts"""
    machine_usd: Dollars | None
    """of the machine while it compressed, at the configured price; null: not counted"""
    cost_usd: Dollars | None
    """of both, as far as they are counted; null: that of its calls is not known"""


class AskOutput(Published):
    """An answer or a refusal, with its evidence: what ``posology ask --json`` prints."""

    status: Status
    question: str
    form: Form
    model: str
    answer: str | None
    """null when refused"""
    choice: str | None
    """the verdict, where the question asked for one and the model gave one"""
    refusal: str | None
    """why not, null when answered"""
    evidence: tuple[Evidence, ...]
    dropped_quotes: int
    """quotes that the model gave and that did not pass the check"""
    notes: tuple[str, ...]
    conflicts: tuple[Disagreement, ...]
    """contradictions among the sources, resolved or not"""
    coverage: Coverage | None
    """how many partitions were read; null for strategies that read all passages in one call"""
    shown: float | None = None
    """share of the words of all retrieved text that the calls showed, repetitions included; null: not counted"""
    compression: CompressionOutput | None = None
    """null where nothing was compressed"""
    strategy: str
    rungs: tuple[Rung, ...] = ()
    """the calls of the ladder that led here, also where it ended in a refusal and the decision was taken anew"""
    decision: Decision
    spending: Spending
    retrieved: tuple[Ranked, ...]
    index: str
    filters: Filters | None = None
    """which passages could be found; null: all"""
    retrieval_seconds: float
    seconds: float


class ErrorBody(Published):
    """An error as data."""

    type: str
    message: str
    exit_code: int
    details: dict[str, object]
    spending: Spending | None
    """what the failed work had spent, where it had begun to spend"""


class ErrorOutput(Published):
    """What any command prints with ``--json`` when it fails."""

    error: ErrorBody
