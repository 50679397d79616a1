"""Jobs, their events and batches as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from posology.published.answers import AskOutput
from posology.published.base import Dollars, Published
from posology.published.calls import ErrorBody, Spending
from posology.published.decisions import DecisionOutput
from posology.types import Form
from posology.types.jobs import OPEN, BatchState, JobState


class Progress(Published):
    """Progress of a job that is read in partitions."""

    partitions: int
    """Number of partitions."""
    read: int
    """Partitions that were read, with or without relevant findings."""
    failed: int
    """Partitions that could not be read."""


class Cancellation(Published):
    """Savings of a cancelled job; its spending is in `spending`."""

    calls_planned: int | None
    """Number of planned model calls; null: it was cancelled before the policy decided."""
    calls_made: int
    """Number of model calls that were made."""
    calls_saved: int | None
    """Number of model calls that were not made; null: unknown."""
    cost_saved_usd: Dollars | None
    """Estimated dollars saved, from the calls that were made; null: none was made, or their cost is unknown."""


class Feedback(Published):
    """A user's judgement of an answer, and what a Q-table learned from it."""

    score: float
    """Quality of the answer, 0 (worst) to 1 (best)."""
    comment: str | None
    """Comment on the answer; null: none."""
    at: datetime
    """Time of the judgement."""
    table: str | None
    """Digest of the Q-table whose copy learned from it; null: none learned."""
    state: int | None
    """State of the table; null: none learned."""
    keep: float | None
    """Action: share of sentences kept whole; null: none learned."""
    shown: float | None
    """Share of the words of all retrieved text that was shown, which its reward counts; null: none learned."""


class Waiting(Published):
    """Model calls of a job in the tier batch that have no reply yet."""

    wanted: int
    """Number of calls that are not sent yet: they wait for others to share a batch, or for budget."""
    sent: int
    """Number of calls in a provider's batch."""
    since: datetime | None
    """Time when the first of these was sent; null: none is."""
    due: datetime | None
    """Time by which the provider answers the last of these or gives it up; null: none is sent."""


class JobSummary(Published):
    """A job without its result."""

    id: str
    """Id of the job."""
    tenant: str
    """Tenant that pays for the job."""
    state: JobState
    """State of the job."""
    question: str
    """The question."""
    form: Form
    """Form of the answer that was asked for."""
    model: str
    """Model, as `provider:name`."""
    strategy: str | None
    """Strategy that was requested or chosen; null: not decided yet."""
    created: datetime
    """Time of submission."""
    started: datetime | None
    """Time when a worker first claimed it; null: not yet."""
    ended: datetime | None
    """Time when it ended; null: not yet."""
    deadline: datetime
    """Time when it expires if it has not ended."""
    runs: int
    """Number of times a worker started it from the beginning."""
    losses: int
    """Number of times its worker died."""
    progress: Progress | None
    """Progress of its partitions; null: it is not read in partitions."""
    batch: str | None
    """Id of its batch; null: none."""
    row: int | None
    """Row of its batch, from 0; null: none."""
    known_cost_usd: Dollars
    """Known cost so far, in dollars."""
    unknown_costs: int
    """Number of attempts with unknown cost, which come on top."""
    charged_usd: Dollars
    """Dollars that count against limits: known costs, and unknown ones at their bounds."""
    reserved_usd: Dollars
    """Dollars reserved for calls in flight."""
    cap_usd: Dollars | None
    """Maximum cost in dollars; null: the tenant's limits only."""


class JobOutput(JobSummary):
    """A job."""

    request: dict[str, Any]
    """The request, with every default filled in."""
    decision: DecisionOutput | None
    """Decision of the policy; null: not decided yet."""
    result: AskOutput | None
    """Answer or refusal; null: it has not succeeded."""
    error: ErrorBody | None
    """The error; null: it has not failed or expired."""
    cancellation: Cancellation | None
    """Savings of the cancellation; null: it was not cancelled."""
    spending: Spending
    """Spending of all runs, including those of workers that died."""
    waiting: Waiting | None = None
    """Calls that wait for a provider's batch; null: none does."""
    feedback: Feedback | None = None
    """Last judgement of its answer; null: none."""


class AskPending(Published):
    """A question that is not answered yet: what a tool for assistants returns before a client gives up."""

    status: Literal["pending"] = "pending"
    """Always `pending`."""
    job: str | None
    """Id of its job; null: it is answered in this process, without a queue."""
    stage: str | None
    """The last that is known of it, in words; null: nothing."""
    advice: str
    """How to get the answer."""


class JobPage(Published):
    """A page of jobs, newest first."""

    jobs: tuple[JobSummary, ...]
    """The jobs."""
    next: str | None
    """Cursor of the next page; null: this is the last one."""


class JobEvent(Published):
    """An event of a job."""

    id: str = Field(examples=["1760000000000-0"])
    """Place in the job's stream; send it as `Last-Event-ID` to continue after it."""
    type: str = Field(examples=["state"])
    """Type: state, decided, partition, sent (in a provider's batch), call or evidence_changed (after the job's end: a
    passage that its answer cites has changed)."""
    at: datetime
    """Time of the event."""
    data: dict[str, Any]
    """Details of the event."""


class BatchOutput(Published):
    """A batch of jobs."""

    id: str
    """Id of the batch."""
    tenant: str
    """Tenant that pays for the batch."""
    created: datetime
    """Time of submission."""
    state: BatchState
    """State: running, ended (every row has), or cancelled (its jobs in flight may still settle, see `over`)."""
    cancelled: datetime | None
    """Time when its cancellation was requested; null: it was not cancelled."""
    total: int
    """Number of rows, rejected ones included."""
    rejected: int
    """Number of rows that are not valid requests and so not jobs."""
    states: dict[JobState, int]
    """Number of jobs in each state."""
    known_cost_usd: Dollars
    """Known cost so far, in dollars."""
    unknown_costs: int
    """Number of attempts with unknown cost, which come on top."""
    calls_wanted: int = 0
    """Number of model calls that are to go into a provider's batch."""
    calls_sent: int = 0
    """Number of model calls in providers' batches."""
    due: datetime | None = None
    """Time by which the provider answers the last of these or gives it up; null: none is sent."""
    over: bool
    """Whether every row has ended; no more rows of a cancelled batch are submitted."""

    @property
    def open(self) -> int:
        """Number of jobs that a cancellation has not reached yet."""
        return sum(count for state, count in self.states.items() if state in OPEN)


class BatchPage(Published):
    """A page of batches, newest first."""

    batches: tuple[BatchOutput, ...]
    """The batches."""
    next: str | None
    """Cursor of the next page; null: this is the last one."""


class BatchRow(Published):
    """One row of a batch."""

    row: int
    """Number of the row, from 0."""
    id: Any
    """The row's own `id`; null: it has none."""
    job: str | None
    """Id of its job; null: the row was rejected, or is not submitted yet."""
    state: JobState | None
    """State of its job; null: it has none."""
    result: AskOutput | None
    """Answer or refusal; null: it has not succeeded."""
    error: ErrorBody | None
    """The error; null: it has not failed."""


class BatchRowPage(Published):
    """A page of rows, in the order of the input."""

    rows: tuple[BatchRow, ...]
    """The rows."""
    next: int | None
    """Value of `after` for the next page; null: this is the last one."""
