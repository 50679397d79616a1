"""JSON output of ``posology policy replay`` and ``posology policy compare``."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from posology.published.base import Dollars, Published
from posology.published.calls import ErrorBody
from posology.types import Dose


class Replay(StrEnum):
    """Result of replaying a decision."""

    #: the same decision
    SAME = "same"
    #: another decision, or another retrieval
    CHANGED = "changed"
    #: the record is not sufficient for the current policy
    FAILED = "failed"
    #: the job has no decision
    UNDECIDED = "undecided"
    #: the job does not exist any more
    MISSING = "missing"


class ChangeOutput(Published):
    """A recorded value that differs now."""

    name: str
    recorded: Any
    """Recorded value; null: not recorded."""
    now: Any
    """Current value; null: there is none."""


class ReplayedDecision(Published):
    """A replayed decision of a job."""

    dose: Dose
    """Recorded dose."""
    now: Dose | None
    """Dose by the current policy; null: it cannot be decided."""
    differing: tuple[str, ...]
    """Parts of the decision that differ: dose, reason, steps, …"""
    versions: tuple[ChangeOutput, ...]
    """Inputs with another version now."""
    features: tuple[ChangeOutput, ...]
    """Features that differ after repeating the retrieval; empty without --retrieve."""
    error: ErrorBody | None
    """Reason why it cannot be decided; null: it can."""


class ReplayedJob(Published):
    """A replayed job."""

    job: str
    status: Replay
    policy: str | None
    """Policy that decided; null: there was no decision."""
    decisions: tuple[ReplayedDecision, ...]
    """The first decision, and the one after a ladder whose steps were all refused."""


class ReplayOutput(Published):
    """Output of ``posology policy replay --json``."""

    jobs: int
    """Number of replayed jobs."""
    decisions: int
    """Number of decisions of these jobs."""
    counts: dict[Replay, int]
    """Jobs by result."""
    versions: dict[str, int]
    """Inputs with another version now, and the number of their decisions."""
    found: tuple[ReplayedJob, ...]
    """First jobs that differ; a single job is always included."""
    seconds: float


class SideOutput(Published):
    """Totals of one policy over all compared questions."""

    policy: str
    """Policy as given."""
    version: str
    """Version: equal versions make equal decisions."""
    declined: int
    """Questions without an affordable dose."""
    calls: int
    """Maximum calls, without repairs."""
    input_tokens: int
    output_tokens: int
    low_usd: Dollars
    expected_usd: Dollars
    worst_usd: Dollars
    differing_expected_usd: Dollars
    """Expected cost of the questions with different doses."""
    differing_worst_usd: Dollars
    """Maximum cost of the questions with different doses."""


class DosePair(Published):
    """Number of questions with a pair of doses."""

    first: str
    second: str
    questions: int


class DifferenceOutput(Published):
    """A question with different doses."""

    row: int
    """Row of the question, from 0."""
    question: str
    first: Dose
    second: Dose
    first_reason: str
    second_reason: str
    first_expected_usd: Dollars
    second_expected_usd: Dollars


class BadRow(Published):
    """A row that could not be compared."""

    row: int
    error: ErrorBody


class CompareOutput(Published):
    """Output of ``posology policy compare --json``."""

    first: SideOutput
    second: SideOutput
    questions: int
    """Number of compared questions."""
    differing: int
    """Questions with different doses."""
    doses: tuple[DosePair, ...]
    """Pairs of doses, most questions first."""
    differences: tuple[DifferenceOutput, ...]
    """First questions with different doses."""
    bad: tuple[BadRow, ...]
    left_usd: Dollars | None
    """Budget for each question in dollars; null: no limit."""
    prices: str
    """Version of the prices."""
    index: str | None
    """Version of the index; null: no question was compared."""
    seconds: float
