"""What is answered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from posology.types.calls import Usage
from posology.types.compression import Compression
from posology.types.literature import Query, Retrieval


@dataclass(frozen=True, kw_only=True, slots=True)
class Citation:
    """A verified quote: ``passage.text[start:end] == quote``, always."""

    passage_id: str
    start: int
    end: int
    quote: str


class Level(StrEnum):
    """How far a kind of publication carries, strongest first."""

    SYSTEMATIC_REVIEW = "systematic review"
    TRIAL = "trial"
    COHORT = "cohort"
    CASE_REPORT = "case report"
    #: narrative reviews, editorials, animal work, or nothing known of the kind
    OTHER = "other"

    @property
    def rank(self) -> int:
        """0 for the strongest."""
        return list(Level).index(self)


class Resolution(StrEnum):
    """How a conflict between sources was settled."""

    SUPPORTING = "supporting"
    OPPOSING = "opposing"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One source on one side of a conflict."""

    passage_id: str
    level: Level
    #: year of publication
    year: int | None
    retracted: bool
    #: the verified quotes of the findings that put it there
    citations: tuple[Citation, ...]
    #: an expression of concern was published about it
    concern: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Conflict:
    """Sources that contradict each other on one claim, and what became of that."""

    claim: str
    supporting: tuple[Side, ...]
    opposing: tuple[Side, ...]
    resolution: Resolution
    #: a sentence that says how it was resolved, or why it could not be
    how: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """What BriefContext read: how many partitions, and what became of them."""

    partitions: int
    #: partitions with findings
    found: int
    #: partitions that were read and hold nothing relevant
    empty: int
    #: partitions that could not be read
    failed: int
    #: model calls that answering took when nothing is repeated: one a partition, and the reduce
    calls: int

    @property
    def partial(self) -> bool:
        """Whether the answer rests on less than was retrieved."""
        return self.failed > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Rung:
    """One call of a ladder, which shows more passages than the call before."""

    #: passages shown
    passages: int
    #: place of the first of them among the retrieved, from 0
    first: int
    #: of its calls; ``None``: the provider did not tell
    usage: Usage | None
    #: whether the reply was that the passages do not answer the question
    refused: bool


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
    #: contradictions among the sources, resolved or not
    conflicts: tuple[Conflict, ...] = ()
    #: ``None`` for strategies that read all passages in one call
    coverage: Coverage | None = None
    #: the calls of the ladder that led here; empty where there was none
    rungs: tuple[Rung, ...] = ()
    #: how much of all retrieved text the calls showed, as a share of its words; more than 1 where the calls of a
    #: ladder repeat what was shown; ``None``: not counted
    shown: float | None = None
    #: what compressing took and left, in all calls of a ladder together; ``None``: nothing was compressed
    compression: Compression | None = None

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
    #: whether the provider's safety system declined: that says nothing of the passages
    filtered: bool = False
    notes: tuple[str, ...] = ()
    #: ``None`` for strategies that read all passages in one call
    coverage: Coverage | None = None
    #: the calls of the ladder that led here; empty where there was none
    rungs: tuple[Rung, ...] = ()
    #: how much of all retrieved text the calls showed, as a share of its words; more than 1 where the calls of a
    #: ladder repeat what was shown; ``None``: not counted
    shown: float | None = None
    #: what compressing took and left, in all calls of a ladder together; ``None``: nothing was compressed
    compression: Compression | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Task:
    """What a strategy is asked to do."""

    query: Query
    retrieval: Retrieval
    #: ``provider:name``
    model: str
    #: bound on output tokens of one call; ``None``: each stage's own
    max_tokens: int | None
