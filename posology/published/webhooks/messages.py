"""Messages of webhooks as JSON."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from pydantic import Field

from posology.published.affected import ChangeKind
from posology.published.answers import Status
from posology.published.base import Dollars, Published
from posology.types import Scope
from posology.types.jobs import JobState


class WebhookEvent(StrEnum):
    """Type of a message."""

    #: a job that is no row of a batch has ended
    JOB_ENDED = "job.ended"
    #: a row of a batch has ended
    ROW_ENDED = "row.ended"
    #: every row of a batch has ended
    BATCH_ENDED = "batch.ended"
    #: 80 % of a budget is spent
    BUDGET_NEARLY_SPENT = "budget.nearly_spent"
    #: evidence of a stored answer was retracted or has changed
    ANSWER_AFFECTED = "answer.affected"
    #: the answer of a watch has changed
    WATCH_CHANGED = "watch.changed"
    #: a test was asked for
    TEST = "webhook.test"


#: events that an endpoint receives unless it names others: a row of a batch each would be many
DEFAULT_EVENTS = (
    WebhookEvent.JOB_ENDED,
    WebhookEvent.BATCH_ENDED,
    WebhookEvent.BUDGET_NEARLY_SPENT,
    WebhookEvent.ANSWER_AFFECTED,
    WebhookEvent.WATCH_CHANGED,
)


class JobEnded(Published):
    """Data of `job.ended` and `row.ended`."""

    tenant: str
    """Tenant that paid for the job."""
    job: str
    """Id of the job."""
    batch: str | None = None
    """Id of its batch; null: none."""
    row: int | None = None
    """Row of its batch, from 0; null: none."""
    state: JobState
    """State: succeeded, failed, cancelled or expired."""
    status: Status | None = None
    """Outcome of a succeeded job: answered, unsupported or refused; null: another state."""
    error: str | None = None
    """Name of the error of a failed or expired job; null: another state."""
    known_cost_usd: Dollars
    """Known cost, in dollars."""
    unknown_costs: int
    """Number of attempts with unknown cost, which come on top."""
    charged_usd: Dollars
    """Dollars that count against limits: known costs, and unknown ones at their bounds."""


class BatchEnded(Published):
    """Data of `batch.ended`."""

    tenant: str
    """Tenant that paid for the batch."""
    batch: str
    """Id of the batch."""
    cancelled: bool
    """Whether it was cancelled."""
    total: int
    """Number of rows, rejected ones included."""
    rejected: int
    """Number of rows that are not valid requests and so not jobs."""
    states: dict[JobState, int] = Field(default_factory=dict)
    """Number of jobs in each state."""
    known_cost_usd: Dollars
    """Known cost, in dollars."""
    unknown_costs: int
    """Number of attempts with unknown cost, which come on top."""


class BudgetNearlySpent(Published):
    """Data of `budget.nearly_spent`."""

    tenant: str
    """Name of the tenant."""
    scope: Scope
    """Budget: day, month or total."""
    window: str
    """Day or month of the budget, or `total`."""
    cap_usd: Dollars
    """The limit, in dollars."""
    spent_usd: Dollars
    """Dollars spent, at least 80 % of the limit."""


class AnswerAffected(Published):
    """Data of `answer.affected`: one change of one passage that an answer cites."""

    tenant: str
    """Tenant of the answer."""
    job: str
    """Id of the job that has the answer."""
    batch: str | None = None
    """Id of its batch; null: none."""
    passage: str
    """Id of the cited passage."""
    kind: ChangeKind
    """Kind: retracted, concern, corrected, replaced or removed."""
    source: str | None = None
    """Source of the statement; null: unknown, or replaced or removed."""
    by: str | None = None
    """Id of the record or notice that states it; null: unknown, or replaced or removed."""
    date: str | None = None
    """Date of that statement, ISO 8601; null: unknown, or replaced or removed."""


class WatchChanged(Published):
    """Data of `watch.changed`."""

    tenant: str
    """Tenant of the watch."""
    watch: str
    """Id of the watch, which has the change."""
    job: str
    """Id of the job with the later answer."""
    status: Status
    """Outcome of that job: answered, unsupported or refused."""
    verdict_changed: bool
    """Whether the outcome or the verdict is another one than before."""
    sources_new: int
    """Number of passages that only the later answer cites."""
    sources_gone: int
    """Number of passages that only the earlier answer cites."""
    conflicts_new: int
    """Number of contradictions that only the later answer has, or resolves so."""
    conflicts_gone: int
    """Number of contradictions that only the earlier answer has, or resolves so."""
    evidence: int
    """Number of changes of passages that the earlier answer cites, such as retractions."""


class Tested(Published):
    """Data of `webhook.test`."""

    tenant: str
    """Name of the tenant."""
    webhook: str
    """Id of the endpoint."""


class WebhookMessage(Published):
    """Body of a request to an endpoint."""

    type: WebhookEvent
    """Type of the event."""
    timestamp: datetime
    """Time of the event; that of the attempt is in the header `webhook-timestamp`."""
    data: JobEnded | BatchEnded | BudgetNearlySpent | AnswerAffected | WatchChanged | Tested
    """Ids and numbers of the event; no texts."""


def message_of(tenant: str, kind: WebhookEvent, at: datetime, data: dict[str, Any]) -> bytes:
    """Return the body of a message.

    Args:
        tenant: its tenant.
        kind: type of the event.
        at: time of the event.
        data: as a script told it; fields that end with ``_nano`` are whole nano-dollars.
    """
    form = _FORMS[kind]
    fields: dict[str, Any] = {"tenant": tenant}
    for name, value in data.items():
        stem, nano, _ = name.rpartition("_nano")
        fields[_DOLLARS[stem] if nano else name] = Decimal(value) / 10**9 if nano else value
    made = WebhookMessage(type=kind, timestamp=at, data=form.model_validate(fields))
    return made.model_dump_json().encode()


_DOLLARS = {
    "known": "known_cost_usd",
    "charged": "charged_usd",
    "cap": "cap_usd",
    "spent": "spent_usd",
}
_FORMS: dict[
    WebhookEvent,
    type[JobEnded | BatchEnded | BudgetNearlySpent | AnswerAffected | WatchChanged | Tested],
] = {
    WebhookEvent.JOB_ENDED: JobEnded,
    WebhookEvent.ROW_ENDED: JobEnded,
    WebhookEvent.BATCH_ENDED: BatchEnded,
    WebhookEvent.BUDGET_NEARLY_SPENT: BudgetNearlySpent,
    WebhookEvent.ANSWER_AFFECTED: AnswerAffected,
    WebhookEvent.WATCH_CHANGED: WatchChanged,
    WebhookEvent.TEST: Tested,
}
