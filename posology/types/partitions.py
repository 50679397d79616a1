"""Partitions of BriefContext, their findings, and the reduction."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from posology.types.answers import Citation, FaultyQuote
from posology.types.calls import PartitionMode, QuoteForm
from posology.types.literature import Excerpt, Query


class Failure(StrEnum):
    """The reason why a partition could not be read."""

    #: the model call failed, retries included
    PROVIDER = "provider"
    #: the deadline passed
    DEADLINE = "deadline"
    #: the job was cancelled
    CANCELLED = "cancelled"
    #: the remaining budget does not cover it
    UNAFFORDABLE = "unaffordable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """Some of the retrieved passages, next to each other in rank order."""

    #: from 0
    index: int
    #: rank of the first passage among all that were retrieved, from 0
    first_rank: int
    excerpts: tuple[Excerpt, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Extract:
    """The task of one extraction."""

    query: Query
    partition: Partition
    #: ``provider:name``
    model: str
    #: maximum output tokens of the call; ``None``: the stage's default
    max_tokens: int | None
    #: effort that the question asks for, as :func:`~posology.llm.models.effort.parse_effort` takes it; ``None``: defaults
    effort: str | None = None
    #: how replies name their evidence
    quotes: QuoteForm = "sentences"
    #: what is asked of the partition
    mode: PartitionMode = "extract"
    #: digest of the user's own templates that replace packaged ones; ``None``: none
    prompts: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A statement that a partition makes on the question, with its verified quotes."""

    #: one sentence, in the model's words
    statement: str
    #: never empty: a finding needs a verified quote
    citations: tuple[Citation, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Extraction:
    """The result for one partition: findings, none, or a failure."""

    #: the partition's index
    partition: int
    findings: tuple[Finding, ...] = ()
    #: set if the partition could not be read; ``findings`` is then empty
    failure: Failure | None = None
    #: class name of the error behind ``failure``; never sent to a model
    error: str | None = None
    #: number of quotes that could not be verified
    dropped_quotes: int = 0
    #: number of statements dropped for lack of a verified quote
    dropped_findings: int = 0
    #: remarks that a reader must see
    notes: tuple[str, ...] = ()
    #: quotes that are not in the passage that the model named
    faulty_quotes: tuple[FaultyQuote, ...] = ()
    #: answer of the partition by itself: a verdict, or a few words; ``None``: it was asked for findings, or has none
    answer: str | None = None

    @property
    def empty(self) -> bool:
        """Whether the partition was read and contains nothing relevant."""
        return self.failure is None and not self.findings


@dataclass(frozen=True, kw_only=True, slots=True)
class Reduction:
    """The task of the reduce call."""

    query: Query
    partitions: tuple[Partition, ...]
    #: one a partition, in the order of the partitions
    extractions: tuple[Extraction, ...]
    #: ``provider:name``
    model: str
    #: maximum output tokens of the call; ``None``: the stage's default
    max_tokens: int | None
    #: effort that the question asks for, as :func:`~posology.llm.models.effort.parse_effort` takes it; ``None``: defaults
    effort: str | None = None
    #: how replies name their evidence
    quotes: QuoteForm = "sentences"
    #: what was asked of the partitions
    mode: PartitionMode = "extract"
    #: digest of the user's own templates that replace packaged ones; ``None``: none
    prompts: str | None = None
