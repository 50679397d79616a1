"""Decisions that were made again, and decisions of two policies beside each other, as JSON."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from posology.published.base import Dollars, Published
from posology.published.calls import ErrorBody
from posology.published.decisions import DoseOutput


class Replay(StrEnum):
    """What became of deciding again from a record."""

    #: the same decision, to the last word
    SAME = "same"
    #: something else was decided, or something else is found now
    CHANGED = "changed"
    #: the record does not do for the policy as it is now
    FAILED = "failed"
    #: nothing was decided for the job
    UNDECIDED = "undecided"
    #: there is no such job (any more)
    MISSING = "missing"


class ChangeOutput(Published):
    """Something that was one thing when it was decided, and is another now."""

    name: str
    recorded: Any
    """null: the record does not say"""
    now: Any
    """null: there is none"""


class ReplayedDecision(Published):
    """One decision of a job, made again from its record."""

    dose: DoseOutput
    """that was given"""
    now: DoseOutput | None
    """that is given from the same record now; null: it cannot be decided"""
    differing: tuple[str, ...]
    """what of the decision is another now: dose, reason, steps, …"""
    versions: tuple[ChangeOutput, ...]
    """what decides or is decided on, and has another version now"""
    features: tuple[ChangeOutput, ...]
    """what retrieving again finds otherwise; empty where it was not asked for"""
    error: ErrorBody | None
    """why it cannot be decided; null: it can"""


class ReplayedJob(Published):
    """What became of deciding again for a job."""

    job: str
    status: Replay
    policy: str | None
    """the policy that decided; null where none did"""
    decisions: tuple[ReplayedDecision, ...]
    """the first, and the one after a ladder that was refused to the last"""


class ReplayOutput(Published):
    """What ``posology policy replay --json`` prints."""

    jobs: int
    """that were looked at"""
    decisions: int
    """of these jobs"""
    counts: dict[Replay, int]
    """jobs by what became of them"""
    versions: dict[str, int]
    """what has another version now, and in how many decisions"""
    found: tuple[ReplayedJob, ...]
    """the first jobs that are not the same; of a single job, whatever became of it"""
    seconds: float


class SideOutput(Published):
    """One of two policies, over all questions that were compared."""

    policy: str
    """as it was asked for"""
    version: str
    """equal versions decide alike"""
    declined: int
    """questions for which it found nothing affordable"""
    calls: int
    """at most, without repairs"""
    input_tokens: int
    output_tokens: int
    low_usd: Dollars
    expected_usd: Dollars
    worst_usd: Dollars
    differing_expected_usd: Dollars
    """of the questions for which the two give different doses"""
    differing_worst_usd: Dollars


class DosePair(Published):
    """How many questions get which dose from each of two policies."""

    first: str
    second: str
    questions: int


class DifferenceOutput(Published):
    """A question that gets different doses."""

    row: int
    """from 0"""
    question: str
    first: DoseOutput
    second: DoseOutput
    first_reason: str
    second_reason: str
    first_expected_usd: Dollars
    second_expected_usd: Dollars


class BadRow(Published):
    """A row that could not be compared."""

    row: int
    error: ErrorBody


class CompareOutput(Published):
    """What ``posology policy compare --json`` prints."""

    first: SideOutput
    second: SideOutput
    questions: int
    """that were compared"""
    differing: int
    """of these, those that get different doses"""
    doses: tuple[DosePair, ...]
    """most questions first"""
    differences: tuple[DifferenceOutput, ...]
    """the first of them"""
    bad: tuple[BadRow, ...]
    left_usd: Dollars | None
    """what each question was given; null: no limit"""
    prices: str
    """version of the prices"""
    index: str | None
    """null where no question was compared"""
    seconds: float
