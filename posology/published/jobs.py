"""Jobs, their events and batches as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from posology.published.answers import AskOutput
from posology.published.base import Dollars, Published
from posology.published.calls import ErrorBody, Spending
from posology.published.decisions import DecisionOutput
from posology.types import Form
from posology.types.jobs import JobState


class Progress(Published):
    """How far the partitions of a BriefContext job are."""

    partitions: int
    read: int
    """partitions that were read, whether or not they hold anything relevant"""
    failed: int
    """partitions that could not be read"""


class Cancellation(Published):
    """What a cancelled job had spent is in its spending; this is what it did not spend."""

    calls_planned: int | None
    """null when it was cancelled before it was decided how to answer"""
    calls_made: int
    calls_saved: int | None
    cost_saved_usd: Dollars | None
    """an estimate from the calls that were made; null when none was, or their cost is unknown"""


class Feedback(Published):
    """What a user said of an answer."""

    score: float
    """how good it is, 0 to 1"""
    comment: str | None
    at: datetime
    table: str | None
    """digest of the Q-table whose copy learned from it; null: none did"""
    state: int | None
    """the table's state; null: none learned"""
    keep: float | None
    """the action: share of the sentences that was kept whole; null: none learned"""
    shown: float | None
    """share of the words of all retrieved text that was shown, with which its price is counted; null: none learned"""


class JobSummary(Published):
    """A job without its result."""

    id: str
    tenant: str
    state: JobState
    question: str
    form: Form
    model: str
    strategy: str | None
    """the strategy that was asked for or decided for; null while it is not decided"""
    created: datetime
    started: datetime | None
    """when a worker first took it up"""
    ended: datetime | None
    deadline: datetime
    runs: int
    """how often a worker took the job up from its beginning"""
    losses: int
    """how often a worker was lost that worked on it"""
    progress: Progress | None
    """null unless it is read in partitions"""
    batch: str | None
    row: int | None
    """place in its batch, from 0"""
    known_cost_usd: Dollars
    """what it is known to have cost so far"""
    unknown_costs: int
    """attempts whose cost is unknown: they come on top"""
    charged_usd: Dollars
    """what counts against limits: the known cost, and unknown ones at their bounds"""
    reserved_usd: Dollars
    """set aside for calls under way"""
    cap_usd: Dollars | None
    """what it may cost at most; null: the tenant's limits alone"""


class JobOutput(JobSummary):
    """A job."""

    request: dict[str, Any]
    """as it was submitted"""
    decision: DecisionOutput | None
    result: AskOutput | None
    """null until it has succeeded"""
    error: ErrorBody | None
    """null unless it has failed or expired"""
    cancellation: Cancellation | None
    """null unless it was cancelled"""
    spending: Spending
    """of all runs of the job, also those whose worker was lost"""
    feedback: Feedback | None = None
    """what was said of its answer last; null: nothing"""


class JobPage(Published):
    """Some jobs, newest first."""

    jobs: tuple[JobSummary, ...]
    next: str | None
    """cursor of the next page; null on the last"""


class JobEvent(Published):
    """Something that happened to a job."""

    id: str = Field(examples=["1760000000000-0"])
    """place in the job's stream; give it back to go on after it"""
    type: str = Field(examples=["state"])
    """state, decided, partition or call"""
    at: datetime
    data: dict[str, Any]


class BatchOutput(Published):
    """A batch of jobs."""

    id: str
    tenant: str
    created: datetime
    total: int
    """rows, bad ones included"""
    rejected: int
    """rows that are no valid request, and so no jobs"""
    states: dict[JobState, int]
    """how many of its jobs are in which state"""
    known_cost_usd: Dollars
    unknown_costs: int
    """attempts whose cost is unknown: they come on top"""
    over: bool
    """whether nothing more happens to any row"""


class BatchRow(Published):
    """One row of a batch's output."""

    row: int
    """from 0"""
    id: Any
    """the row's own ``id``, where it has one"""
    job: str | None
    """null for a row that is no valid request"""
    state: JobState | None
    result: AskOutput | None
    error: ErrorBody | None


class BatchRowPage(Published):
    """Some rows of a batch, in the order of the input."""

    rows: tuple[BatchRow, ...]
    next: int | None
    """what to give as ``after`` for the next page; null on the last"""
