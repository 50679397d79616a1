"""Jobs as a person reads them in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from orchestrator.cli.output.tables import headings, print_facts, print_form, print_line, styled
from orchestrator.rendering.forms.columns import Cell, Line, Table, Tone, facts, table
from orchestrator.rendering.forms.jobs import BATCHES, JOBS, cancellation, cost
from orchestrator.rendering.words import calls, moment, safe, tokens
from posology.published.jobs import BatchOutput, JobEvent, JobOutput, JobSummary, Waiting

#: columns of a question in a table, however narrow the terminal
_QUESTION = 20
#: columns of a terminal from which on a table has room for everything
_WIDE = 110
#: facts of a job that come first
_BEGIN = "job, tenant, state, model, created, started, ended, expires, runs, batch"
#: characters of a year in a time
_YEAR = len("2026-")


def show_jobs(console: Console, jobs: Sequence[JobSummary]) -> None:
    """A table, a job a line."""
    wide = "strategy, cost, " if console.width >= _WIDE else ""
    print_form(console, _fitted(table(JOBS, jobs, f"job, state, created, {wide}question"), console))


def show_batches(console: Console, batches: Sequence[BatchOutput]) -> None:
    """A table, a batch a line."""
    print_form(console, table(BATCHES, batches, "batch, state, created, rows, jobs, cost so far"))


def show_job(console: Console, job: JobOutput) -> None:
    """Everything: its way, its decision, its partitions, what it spent, and its answer or error."""
    from orchestrator.cli.terminal import show_answer, show_attempts

    rows = facts(JOBS, job, _BEGIN)
    if job.decision is not None:
        decision = job.decision
        rows.append(("strategy", f"{decision.strategy}, by {decision.policy}"))
        rows.append(("because", decision.reason))
        rows.append(("in full", f"posology jobs show {job.id} --why"))
    rows += facts(JOBS, job, "partitions")
    if job.waiting is not None:
        rows.append(("waits for", _waits(job.waiting)))
    spent = job.spending
    rows.append(("calls", f"{calls(spent)}, {tokens(spent)} tokens"))
    rows += facts(JOBS, job, "cost, cap, reserved")
    if job.cancellation is not None:
        rows.append(("cancelled", cancellation(job.cancellation)))
    if job.error is not None:
        rows.append(("error", Cell(text=f"{job.error.type}: {job.error.message}", tone=Tone.BAD)))
        rows += [(f"  {name}", str(value)) for name, value in job.error.details.items()]
    print_facts(console, rows, title=job.question)
    show_attempts(console, spent)
    if job.result is not None:
        show_answer(console, job.result)


def show_event(console: Console, event: JobEvent) -> None:
    """One line."""
    facts = ", ".join(f"{name} {value}" for name, value in event.data.items())
    at = moment(event.at, form="%H:%M:%S")
    print_line(console, Text.assemble((at, "dim"), f"  {safe(event.type)}  ", safe(facts)))


def show_cancelled(console: Console, job: JobOutput) -> None:
    """Describe what a cancelled job spent and saved."""
    saved = f"; {cancellation(job.cancellation)}" if job.cancellation else ""
    print_line(console, f"{job.id} is {job.state}: spent {cost(job)}{saved}")


def _fitted(shown: Table, console: Console) -> Table:
    """Return a table whose last column has the rest of a terminal's width, and whose times have no year."""
    lines = [
        [replace(one, text=one.text[_YEAR:] if one.at else one.text) for one in line.cells]
        for line in shown.lines
    ]
    sizes = [
        2 + max([len(name), *(len(styled(line[at]).plain) for line in lines)])
        for at, name in enumerate(headings(shown)[:-1])
    ]
    # an id that is cut cannot be given to the next command
    left = max(console.width - sum(sizes), _QUESTION)
    for line in lines:
        words = Text(" ".join(safe(line[-1].text).split()))
        if console.is_terminal:
            words.truncate(left, overflow="ellipsis")
        line[-1] = replace(line[-1], text=words.plain)
    return replace(shown, lines=tuple(Line(cells=tuple(line)) for line in lines))


def _waits(waiting: Waiting) -> str:
    found = []
    if waiting.wanted:
        found.append(f"{waiting.wanted} calls to be sent in a provider's batch")
    if waiting.sent:
        found.append(
            f"{waiting.sent} calls in a provider's batch, sent {moment(waiting.since)}, due by {moment(waiting.due)} UTC"
        )
    return "; ".join(found)
