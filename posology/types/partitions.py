"""What BriefContext maps over and reduces: partitions, what was found in each, and conflicts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from posology.types.answers import Citation
from posology.types.literature import Excerpt, Query


class Failure(StrEnum):
    """Why a partition could not be read."""

    #: the model call failed, retries included
    PROVIDER = "provider"
    #: the time was over
    DEADLINE = "deadline"
    #: the job was cancelled
    CANCELLED = "cancelled"
    #: what is left of the budget does not pay for it
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
    """What one extraction is asked to do."""

    query: Query
    partition: Partition
    #: ``provider:name``
    model: str
    #: bound on output tokens of the call; ``None``: the stage's own
    max_tokens: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A statement that a partition makes on the question, with its verified quotes."""

    #: one sentence, in the model's words
    statement: str
    #: never empty: a finding without a quote that stands is no finding
    citations: tuple[Citation, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Extraction:
    """What became of one partition: findings, truthfully nothing, or a failure."""

    #: the partition's index
    partition: int
    findings: tuple[Finding, ...] = ()
    #: set when the partition could not be read; ``findings`` is then empty and means nothing
    failure: Failure | None = None
    #: the class name of the error behind ``failure``; never shown to a model
    error: str | None = None
    #: quotes that the model gave and that did not pass the check
    dropped_quotes: int = 0
    #: statements that were left without a quote and so were dropped
    dropped_findings: int = 0
    #: remarks that a reader must see
    notes: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the partition was read and holds nothing relevant."""
        return self.failure is None and not self.findings


@dataclass(frozen=True, kw_only=True, slots=True)
class Reduction:
    """What the reduce step is asked to do."""

    query: Query
    partitions: tuple[Partition, ...]
    #: one a partition, in the order of the partitions
    extractions: tuple[Extraction, ...]
    #: ``provider:name``
    model: str
    #: bound on output tokens of the call; ``None``: the stage's own
    max_tokens: int | None
