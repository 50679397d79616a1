"""The job records in Redis: the one of an idempotency key, and their published forms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from redis.asyncio import Redis

from orchestrator.question.report import spending
from orchestrator.question.request import JobRequest
from posology import errors
from posology.budget.ledger import entries
from posology.budget.ledger.base import dollars
from posology.llm.accounting import Account
from posology.published.answers import AskOutput
from posology.published.calls import ErrorBody
from posology.published.decisions import DecisionOutput
from posology.published.jobs import (
    Cancellation,
    Feedback,
    JobEvent,
    JobOutput,
    JobSummary,
    Progress,
    Waiting,
)
from posology.store.connection import translated
from posology.store.keys import at, prefix
from posology.types import Attempt, JobState, Outcome, Stage

#: errors of the service's set-up that are the caller's
_CALLERS = (errors.UnknownModel, errors.UnpricedModel, errors.VersionGone)
#: replaces the message of the others
WITHHELD = "the service is not set up for this question: ask its operator"
#: time within which providers answer a batch or give it up
WINDOW = timedelta(hours=24)
#: shares and scores are stored as millionths: integers add up exactly, and can be subtracted again
WHOLE = 1_000_000


async def job_of(redis: Redis, url: str, *, key: str, tenant: str) -> str | None:
    """Return the id of the job that an idempotency key stands for; ``None``: there is none.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    with translated(url):
        found = await redis.hget(f"{prefix(tenant)}idem:{key}", "job")
    return None if found is None else str(found)


def attempts(calls: Mapping[str, str]) -> tuple[Attempt, ...]:
    """Return the finished attempts, in the order of their start."""
    ended = [entry for raw in calls.values() if (entry := json.loads(raw)).get("outcome")]
    found = [entries.attempt(entry) for entry in ended]
    return tuple(
        sorted(found, key=lambda attempt: (attempt.started, attempt.call, attempt.attempt))
    )


def summary(record: Mapping[str, str]) -> JobSummary:
    """Return a job without its result.

    Args:
        record: hash of the job.
    """
    return JobSummary(**_shared(record, JobRequest.model_validate_json(record["request"])))


def output(
    record: Mapping[str, str],
    calls: Mapping[str, str],
    lane: Sequence[str] = (),
    *,
    advice: bool = True,
) -> JobOutput:
    """Return a job with everything.

    Args:
        record: hash of the job.
        calls: hash of its attempts.
        lane: its calls in the tier batch.
        advice: whether an error says what an operator would have to do.
    """
    request = JobRequest.model_validate_json(record["request"])
    made = attempts(calls)
    spent = spending(Account(made))
    result = AskOutput.model_validate_json(record["result"]) if "result" in record else None
    error = ErrorBody.model_validate_json(record["error"]) if "error" in record else None
    return JobOutput(
        **_shared(record, request),
        request=request.model_dump(mode="json"),
        decision=DecisionOutput.model_validate_json(record["decision"])
        if "decision" in record
        else None,
        # a late reply may still report its cost after the result was written
        result=result.model_copy(update={"spending": spent}) if result else None,
        error=public(error, advice=advice).model_copy(update={"spending": spent})
        if error
        else None,
        cancellation=_cancellation(record, made)
        if record["state"] in (JobState.CANCELLING, JobState.CANCELLED)
        else None,
        spending=spent,
        waiting=_waiting(lane),
        feedback=_feedback(record) if "feedback" in record else None,
    )


def event(stream_id: str, entry: Mapping[str, str]) -> JobEvent:
    """Return an entry of a job's event stream."""
    data = json.loads(entry["data"])
    return JobEvent(
        id=stream_id,
        type=entry["type"],
        at=at(entry["at"]),
        # Lua has one kind of table and writes an empty one as a list or an object
        data=data if isinstance(data, dict) else {},
    )


def _shared(record: Mapping[str, str], request: JobRequest) -> dict[str, Any]:
    decided = json.loads(record["decision"])["dose"]["strategy"] if "decision" in record else None
    return {
        "id": record["id"],
        "tenant": record["tenant"],
        "state": JobState(record["state"]),
        "question": request.question,
        "form": request.form,
        "model": request.model,
        "strategy": decided or request.strategy,
        "created": at(record["created"]),
        "started": at(record["started"]) if "started" in record else None,
        "ended": at(record["ended"]) if "ended" in record else None,
        "deadline": at(record["deadline"]),
        "runs": int(record["runs"]),
        "losses": int(record["losses"]),
        "progress": Progress(
            partitions=int(record["partitions"]),
            read=int(record["read"]),
            failed=int(record["unread"]),
        )
        if "partitions" in record
        else None,
        "batch": record.get("batch"),
        "row": int(record["row"]) if "row" in record else None,
        "known_cost_usd": dollars(record["known_nano"]),
        "unknown_costs": int(record["unknown_costs"]),
        "charged_usd": dollars(record.get("spent_nano", 0)),
        "reserved_usd": dollars(record.get("reserved_nano", 0)),
        "cap_usd": dollars(record["cap_nano"]) if "cap_nano" in record else None,
    }


def public(error: ErrorBody, *, advice: bool) -> ErrorBody:
    """Return an error; without advice, one of the service's set-up names no variable, file or host."""
    kind = getattr(errors, error.type, None)
    if advice or kind is None:
        return error
    if not issubclass(kind, errors.ConfigurationError | errors.IndexFault):
        # of the store's commands, few meet an error
        from posology.network import failures

        return error.model_copy(update={"message": failures.public(error.message)})
    if issubclass(kind, _CALLERS):
        return error
    return error.model_copy(update={"message": WITHHELD, "details": {}})


def _cancellation(record: Mapping[str, str], made: Sequence[Attempt]) -> Cancellation:
    # only calls of strategies are planned
    calls = {attempt.call for attempt in made if attempt.stage is not Stage.EMBED}
    planned = int(record["calls_planned"]) if "calls_planned" in record else None
    saved = None if planned is None else max(0, planned - len(calls))
    return Cancellation(
        calls_planned=planned,
        calls_made=len(calls),
        calls_saved=saved,
        cost_saved_usd=None if saved is None else _estimate(saved, made),
    )


def _feedback(record: Mapping[str, str]) -> Feedback:
    said = json.loads(record["feedback"])
    cell = json.loads(record["learned"] or "{}")
    return Feedback(
        score=said["score"],
        comment=said["comment"],
        at=at(record["judged"]),
        table=cell.get("table"),
        state=cell.get("state"),
        keep=cell["keep"] / WHOLE if cell else None,
        shown=cell["shown"] / WHOLE if cell else None,
    )


def due(sent: str | float) -> datetime:
    """Return when a provider gives up a batch that was sent at a time, in milliseconds."""
    return at(sent) + WINDOW


def _waiting(lane: Sequence[str]) -> Waiting | None:
    calls = [json.loads(raw) for raw in lane]
    sent = [call["t"] for call in calls if call.get("a")]
    wanted = sum(not call.get("a") and not call.get("e") for call in calls)
    if not sent and not wanted:
        return None
    return Waiting(
        wanted=wanted,
        sent=len(sent),
        since=at(min(sent)) if sent else None,
        due=due(max(sent)) if sent else None,
    )


def _estimate(saved: int, made: Sequence[Attempt]) -> Decimal | None:
    """Return the savings at the mean cost of the calls that were made; the reduce counts as one of them."""
    if not saved:
        return Decimal(0)
    unlike = (Stage.REDUCE, Stage.EMBED, Stage.JUDGE)
    alike = [a for a in made if a.outcome is Outcome.OK and a.stage not in unlike]
    known = [a.cost for a in alike if a.cost is not None]
    if not known or len(known) < len(alike):
        return None
    return (sum(known, Decimal(0)) / len(known) * saved).quantize(Decimal("1e-9"))
