"""Jobs, batches, and endpoints of webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from urllib.parse import quote

from orchestrator.rendering.forms.columns import Cell, Column, Kind, Tone, enabled
from orchestrator.rendering.words import lasted, moment, money, plural
from posology.published.jobs import BatchOutput, BatchRow, Cancellation, JobSummary, Progress
from posology.published.webhooks.endpoints import WebhookFailure, WebhookOutput
from posology.types.jobs import JobState

_TONES: dict[str, Tone] = {
    JobState.QUEUED: Tone.SOFT,
    **dict.fromkeys((JobState.RUNNING, JobState.EXTRACTING, JobState.REDUCING), Tone.LIVE),
    **dict.fromkeys((JobState.CANCELLING, JobState.CANCELLED), Tone.OFF),
    **dict.fromkeys((JobState.FAILED, JobState.EXPIRED), Tone.BAD),
    JobState.SUCCEEDED: Tone.GOOD,
}


def state(of: StrEnum, note: str = "") -> Cell:
    """Return the state of a job or of a batch."""
    return Cell(text=of.value, tone=_TONES.get(of.value), note=note, state=True)


def job_cell(name: str) -> Cell:
    """Return a name that is the id of a job, or of something else."""
    return Cell(text=name, page=f"/jobs/{quote(name, safe='')}" if name.startswith("job_") else "")


def read(progress: Progress) -> str:
    """Return how many partitions were read."""
    failed = f", {progress.failed} failed" if progress.failed else ""
    return f"{progress.read}/{progress.partitions} read{failed}"


def cost(job: JobSummary) -> str:
    """Return the known cost, with the upper bound if some of it is unknown."""
    known = money(job.known_cost_usd)
    if not job.unknown_costs:
        return known
    return f"{known} + {job.unknown_costs} unknown, at most {money(job.charged_usd)}"


def spent(batch: BatchOutput) -> str:
    """Return the cost of a batch so far, without attempts of unknown cost."""
    known = money(batch.known_cost_usd)
    return f"{known} + {batch.unknown_costs} unknown" if batch.unknown_costs else known


def cancellation(found: Cancellation) -> str:
    """Return the calls that a cancelled job made and saved."""
    made = f"{plural(found.calls_made, 'call')} made"
    if found.calls_saved is None:
        return f"{made}; the number of further calls was not decided yet"
    worth = "" if found.cost_saved_usd is None else f" (about {money(found.cost_saved_usd)})"
    return f"{made}, {found.calls_saved} saved{worth}"


def _reading(job: JobSummary) -> str:
    return "" if job.progress is None or job.state.over else read(job.progress)


def _reserved(job: JobSummary) -> str | None:
    return f"{money(job.reserved_usd)} for calls in flight" if job.reserved_usd else None


def _runs(job: JobSummary) -> Cell | None:
    """Return how often a job was begun; ``None``: once, and no worker was lost."""
    if job.runs <= 1 and not job.losses:
        return None
    lost = f"{job.losses} lost with their worker" if job.losses else ""
    return Cell(text=f"{job.runs}", note=lost)


JOBS: tuple[Column[JobSummary], ...] = (
    Column("job", lambda job: job_cell(job.id)),
    Column("question", lambda job: Cell(text=job.question, page=job_cell(job.id).page), Kind.WIDE),
    Column("tenant", lambda job: job.tenant),
    Column("state", lambda job: state(job.state, _reading(job))),
    Column("strategy", lambda job: job.strategy),
    Column("model", lambda job: job.model),
    Column("created", lambda job: job.created, Kind.TIME),
    Column("started", lambda job: job.started, Kind.TIME),
    Column("ended", lambda job: job.ended, Kind.TIME),
    Column("took", lambda job: job.ended and lasted((job.ended - job.created).total_seconds())),
    Column("expires", lambda job: None if job.ended else job.deadline, Kind.TIME),
    Column("runs", _runs),
    Column("batch", lambda job: job.batch and f"{job.batch} row {job.row}"),
    Column("partitions", lambda job: None if job.progress is None else read(job.progress)),
    Column("cost", cost, Kind.NUMBER),
    Column("cap", lambda job: job.cap_usd, Kind.NUMBER, "the limits of the tenant"),
    Column("reserved", _reserved),
)


def _counts(batch: BatchOutput) -> Iterator[str]:
    yield from (f"{n:,} {one}" for one, n in sorted(batch.states.items()))
    if batch.rejected:
        yield f"{batch.rejected:,} rejected"
    if batch.calls_wanted:
        yield f"{batch.calls_wanted:,} calls to be sent"
    if batch.calls_sent:
        yield f"{batch.calls_sent:,} calls in batches, due by {moment(batch.due)} UTC"


def _outcome(row: BatchRow) -> Cell:
    """Return the question of an answer, an error, or the job."""
    page = job_cell(row.job).page if row.job else ""
    if row.result is not None:
        return Cell(text=row.result.question, page=page, note=row.result.status.value)
    if row.error is not None:
        return Cell(text=f"{row.error.type}: {row.error.message}", page=page, tone=Tone.BAD)
    return Cell(text=row.job or "", page=page)


BATCHES: tuple[Column[BatchOutput], ...] = (
    Column("batch", lambda batch: Cell(text=batch.id, page=f"/batches/{batch.id}")),
    Column("state", lambda batch: state(batch.state)),
    Column("created", lambda batch: batch.created, Kind.TIME),
    Column("rows", lambda batch: batch.total, Kind.NUMBER),
    Column("rejected", lambda batch: batch.rejected, Kind.NUMBER),
    Column("jobs", lambda batch: ", ".join(_counts(batch)), Kind.WIDE),
    Column("cost so far", spent, Kind.NUMBER),
)


def endpoint_state(one: WebhookOutput) -> Cell:
    """Return whether an endpoint receives messages."""
    if one.paused and not one.disabled:
        return Cell(text="paused", tone=Tone.OFF, state=True)
    return enabled(disabled=one.disabled is not None)


def _tried(one: WebhookOutput) -> Cell | None:
    if one.tried is None:
        return None
    return Cell(text=moment(one.tried), at=one.tried, note=one.error or f"status {one.status}")


ROWS: tuple[Column[BatchRow], ...] = (
    Column("row", lambda row: str(row.row), Kind.NUMBER),
    Column("id", lambda row: None if row.id is None else str(row.id)),
    Column("state", lambda row: row.state and state(row.state), Kind.TEXT, "rejected or waiting"),
    Column("question or error", _outcome, Kind.WIDE),
)


ENDPOINTS: tuple[Column[WebhookOutput], ...] = (
    Column("endpoint", lambda hook: Cell(text=hook.id, page=f"/webhooks/{hook.id}")),
    Column("state", endpoint_state),
    Column("address", lambda hook: hook.url, Kind.WIDE),
    Column("messages", lambda hook: ", ".join(hook.events), Kind.WIDE),
    Column("created", lambda hook: hook.created, Kind.TIME),
    Column("queued", lambda hook: hook.queued, Kind.NUMBER),
    Column("delivered", lambda hook: hook.delivered, Kind.NUMBER),
    Column("given up", lambda hook: hook.failed, Kind.NUMBER),
    Column("last attempt", _tried, Kind.TIME),
    Column("paused", lambda hook: hook.paused, Kind.TIME),
)


FAILURES: tuple[Column[WebhookFailure], ...] = (
    Column("message", lambda message: message.message),
    Column("given up", lambda message: message.failed, Kind.TIME),
    Column("type", lambda message: message.type),
    Column("about", lambda message: job_cell(message.subject)),
    Column("attempts", lambda message: message.tries, Kind.NUMBER),
    Column("reason", lambda message: message.error, Kind.WIDE),
)
