"""Jobs as a person reads them in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli.output.tables import print_facts, print_table
from orchestrator.rendering.words import calls, money, safe, tokens
from posology.published.jobs import (
    BatchOutput,
    Cancellation,
    JobEvent,
    JobOutput,
    JobSummary,
    Progress,
    Waiting,
)
from posology.types import JobState

_STYLES = {
    JobState.QUEUED: "dim",
    JobState.RUNNING: "blue",
    JobState.EXTRACTING: "blue",
    JobState.REDUCING: "blue",
    JobState.CANCELLING: "yellow",
    JobState.SUCCEEDED: "green",
    JobState.FAILED: "red",
    JobState.CANCELLED: "yellow",
    JobState.EXPIRED: "red",
}
#: columns of a question in a table, however narrow the terminal
_QUESTION = 20
#: columns of a terminal from which on a table has room for everything
_WIDE = 110


def spent(batch: BatchOutput) -> str:
    """Format the cost of a batch so far, without attempts of unknown cost."""
    known = money(batch.known_cost_usd)
    return f"{known} + {batch.unknown_costs} unknown" if batch.unknown_costs else known


def show_jobs(console: Console, jobs: Sequence[JobSummary]) -> None:
    """A table, a job a line."""
    wide = console.width >= _WIDE
    names = ("job", "state", "created", *(("strategy", "cost") if wide else ()))
    rows = [_cells(job, wide=wide) for job in jobs]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in (*names, "question"):
        table.add_column(name, no_wrap=True)
    # the question gets what is left: an id that is cut cannot be given to the next command
    taken = [max([len(name), *(len(row[i]) for row in rows)]) + 2 for i, name in enumerate(names)]
    left = max(console.width - sum(taken), _QUESTION)
    for job, row in zip(jobs, rows, strict=True):
        question = Text(" ".join(safe(job.question).split()))
        if console.is_terminal:
            question.truncate(left, overflow="ellipsis")
        table.add_row(*row, question)
    print_table(console, table)


def show_batches(console: Console, batches: Sequence[BatchOutput]) -> None:
    """A table, a batch a line."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("batch", "state", "created", "rows", "jobs", "cost"):
        table.add_column(name, no_wrap=True)
    for batch in batches:
        counts = [f"{n:,} {state}" for state, n in sorted(batch.states.items())]
        if batch.rejected:
            counts.append(f"{batch.rejected:,} rejected")
        if batch.calls_wanted:
            counts.append(f"{batch.calls_wanted:,} calls to be sent")
        if batch.calls_sent:
            counts.append(f"{batch.calls_sent:,} calls in batches, due by {_time(batch.due)}")
        created = batch.created.astimezone().strftime("%m-%d %H:%M")
        jobs = ", ".join(counts)
        table.add_row(batch.id, batch.state, created, f"{batch.total:,}", jobs, spent(batch))
    print_table(console, table)


def _cells(job: JobSummary, *, wide: bool) -> list[Text]:
    state = _state(job.state)
    if job.progress is not None and not job.state.over:
        state.append(f" {_read(job.progress)}", style="dim")
    cells = [Text(job.id), state, Text(job.created.astimezone().strftime("%m-%d %H:%M"))]
    if wide:
        cost = _cost(job)
        cells += [Text(safe(job.strategy or "–")), Text(cost)]
    return cells


def show_job(console: Console, job: JobOutput) -> None:
    """Everything: its way, its decision, its partitions, what it spent, and its answer or error."""
    from orchestrator.cli.terminal import show_answer, show_attempts

    rows: list[tuple[str, str | Text]] = [
        ("job", job.id),
        ("tenant", job.tenant),
        ("state", _state(job.state)),
        ("model", job.model),
        ("created", _time(job.created)),
        ("started", _time(job.started)),
        ("ended", _time(job.ended)),
        ("deadline", _time(job.deadline)),
        ("taken up", f"{job.runs} times, {job.losses} workers lost"),
    ]
    if job.batch is not None:
        rows.append(("batch", f"{job.batch} row {job.row}"))
    if job.decision is not None:
        decision = job.decision
        rows.append(("strategy", f"{decision.strategy}, by {decision.policy}"))
        rows.append(("because", decision.reason))
        rows.append(("in full", f"posology jobs show {job.id} --why"))
    if job.progress is not None:
        rows.append(("partitions", _read(job.progress)))
    if job.waiting is not None:
        rows.append(("waits for", _waits(job.waiting)))
    spent = job.spending
    rows.append(("calls", f"{calls(spent)}, {tokens(spent)} tokens"))
    rows.append(("cost", _cost(job)))
    if job.cap_usd is not None:
        rows.append(("may cost", money(job.cap_usd)))
    if job.reserved_usd:
        rows.append(("reserved", f"{money(job.reserved_usd)} for calls under way"))
    if job.cancellation is not None:
        rows.append(("cancelled", cancellation(job.cancellation)))
    if job.error is not None:
        rows.append(("error", Text(safe(f"{job.error.type}: {job.error.message}"), style="red")))
        rows += [(f"  {safe(name)}", str(value)) for name, value in job.error.details.items()]
    print_facts(console, rows, title=job.question)
    show_attempts(console, spent)
    if job.result is not None:
        show_answer(console, job.result)


def show_event(console: Console, event: JobEvent) -> None:
    """One line."""
    facts = ", ".join(f"{name} {value}" for name, value in event.data.items())
    at = event.at.astimezone().strftime("%H:%M:%S")
    console.print(
        Text.assemble((at, "dim"), f"  {safe(event.type)}  ", safe(facts)), soft_wrap=True
    )


def show_cancelled(console: Console, job: JobOutput) -> None:
    """Describe what a cancelled job spent and saved."""
    saved = f"; {cancellation(job.cancellation)}" if job.cancellation else ""
    cost = _cost(job)
    console.print(Text(f"{job.id} is {job.state}: spent {cost}{saved}"), soft_wrap=True)


def cancellation(told: Cancellation) -> str:
    """Calls made and saved."""
    if told.calls_saved is None:
        return f"{told.calls_made} calls made; the number of further calls was not decided yet"
    worth = "" if told.cost_saved_usd is None else f" (about {money(told.cost_saved_usd)})"
    return f"{told.calls_made} calls made, {told.calls_saved} saved{worth}"


def _state(state: JobState) -> Text:
    return Text(state, style=_STYLES[state])


def _waits(waiting: Waiting) -> str:
    told = []
    if waiting.wanted:
        told.append(f"{waiting.wanted} calls to be sent in a provider's batch")
    if waiting.sent:
        told.append(
            f"{waiting.sent} calls in a provider's batch, sent {_time(waiting.since)}, due by {_time(waiting.due)}"
        )
    return "; ".join(told)


def _read(progress: Progress) -> str:
    failed = f", {progress.failed} failed" if progress.failed else ""
    return f"{progress.read}/{progress.partitions} read{failed}"


def _time(at: datetime | None) -> str:
    return "–" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _cost(job: JobSummary) -> str:
    """Format the known cost, with the upper bound if some of it is unknown."""
    known = money(job.known_cost_usd)
    if not job.unknown_costs:
        return known
    return f"{known} + {job.unknown_costs} unknown, at most {money(job.charged_usd)}"
