"""Jobs, batches, and endpoints of webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from urllib.parse import quote

from orchestrator.rendering.forms.columns import Cell, Column, Kind, Tone
from orchestrator.rendering.forms.money import enabled
from orchestrator.rendering.words import lasted, moment, money, plural
from posology.published.jobs import BatchOutput, BatchRow, Cancellation, JobSummary, Progress
from posology.published.webhooks.endpoints import WebhookFailure, WebhookOutput
from posology.types.jobs import JobState

_TONES = {
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
    Column("job", lambda one: job_cell(one.id)),
    Column("question", lambda one: Cell(text=one.question, page=job_cell(one.id).page), Kind.WIDE),
    Column("tenant", lambda one: one.tenant),
    Column("state", lambda one: state(one.state, _reading(one))),
    Column("strategy", lambda one: one.strategy),
    Column("model", lambda one: one.model),
    Column("created", lambda one: one.created, Kind.TIME),
    Column("started", lambda one: one.started, Kind.TIME),
    Column("ended", lambda one: one.ended, Kind.TIME),
    Column("took", lambda one: one.ended and lasted((one.ended - one.created).total_seconds())),
    Column("expires", lambda one: None if one.ended else one.deadline, Kind.TIME),
    Column("runs", _runs),
    Column("batch", lambda one: one.batch and f"{one.batch} row {one.row}"),
    Column("partitions", lambda one: one.progress and read(one.progress)),
    Column("cost", cost, Kind.NUMBER),
    Column("cap", lambda one: one.cap_usd, Kind.NUMBER, "the limits of the tenant"),
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
    Column("batch", lambda one: Cell(text=one.id, page=f"/batches/{one.id}")),
    Column("state", lambda one: state(one.state)),
    Column("created", lambda one: one.created, Kind.TIME),
    Column("rows", lambda one: one.total, Kind.NUMBER),
    Column("rejected", lambda one: one.rejected, Kind.NUMBER),
    Column("jobs", lambda one: ", ".join(_counts(one)), Kind.WIDE),
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
    Column("row", lambda one: str(one.row), Kind.NUMBER),
    Column("id", lambda one: None if one.id is None else str(one.id)),
    Column("state", lambda one: one.state and state(one.state), Kind.TEXT, "rejected or waiting"),
    Column("question or error", _outcome, Kind.WIDE),
)


ENDPOINTS: tuple[Column[WebhookOutput], ...] = (
    Column("endpoint", lambda one: Cell(text=one.id, page=f"/webhooks/{one.id}")),
    Column("state", endpoint_state),
    Column("address", lambda one: one.url, Kind.WIDE),
    Column("messages", lambda one: ", ".join(one.events), Kind.WIDE),
    Column("created", lambda one: one.created, Kind.TIME),
    Column("queued", lambda one: one.queued, Kind.NUMBER),
    Column("delivered", lambda one: one.delivered, Kind.NUMBER),
    Column("given up", lambda one: one.failed, Kind.NUMBER),
    Column("last attempt", _tried, Kind.TIME),
    Column("paused", lambda one: one.paused, Kind.TIME),
)


FAILURES: tuple[Column[WebhookFailure], ...] = (
    Column("message", lambda one: one.message),
    Column("given up", lambda one: one.failed, Kind.TIME),
    Column("type", lambda one: one.type),
    Column("about", lambda one: job_cell(one.subject)),
    Column("attempts", lambda one: one.tries, Kind.NUMBER),
    Column("reason", lambda one: one.error, Kind.WIDE),
)
