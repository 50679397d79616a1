"""Terminal view of replays and comparisons of policies."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from orchestrator.cli.output.tables import print_form, print_line
from orchestrator.question.decisions.forms import (
    CompareOutput,
    Replay,
    ReplayedJob,
    ReplayOutput,
)
from orchestrator.rendering.forms.columns import table
from orchestrator.rendering.forms.decisions import SIDES, pairs
from orchestrator.rendering.replays import NAMES, differences
from orchestrator.rendering.words import money, safe
from policies.affordable import describe

_STYLES = {
    Replay.SAME: "green",
    Replay.CHANGED: "red",
    Replay.FAILED: "red",
    Replay.UNDECIDED: "yellow",
    Replay.MISSING: "yellow",
}


def show_replayed(console: Console, job: ReplayedJob) -> None:
    """Print one job: a line, and its differences."""
    head = Text.assemble(safe(job.job), "  ", (NAMES[job.status], _STYLES[job.status]))
    if job.status is Replay.SAME:
        doses = ", then ".join(describe(one.dose) for one in job.decisions)
        head.append(f": {safe(doses)}")
    console.print(head, soft_wrap=True)
    for line in differences(job):
        print_line(console, f"  {safe(line)}")


def show_replay(console: Console, out: ReplayOutput) -> None:
    """Print the totals of all jobs."""
    facts = ", ".join(f"{count} {NAMES[kind]}" for kind, count in out.counts.items())
    print_line(
        console,
        f"{out.jobs} jobs, {out.decisions} decisions: {facts or 'none'}; {out.seconds:.1f} s",
    )
    if out.versions:
        changed = ", ".join(f"{name} ({count} decisions)" for name, count in out.versions.items())
        print_line(console, f"versions changed: {changed}")


def show_compare(console: Console, out: CompareOutput) -> None:
    """Print the costs and doses of both policies, and the questions that differ."""
    limit = "" if out.left_usd is None else f", with {money(out.left_usd)} for each"
    print_line(console, f"{out.questions} questions, {out.differing} with different doses{limit}")
    for bad in out.bad:
        print_line(console, f"row {bad.row}: {bad.error.message}", "yellow")
    print_form(console, table(SIDES, (out.first, out.second)))
    print_form(console, pairs(out))
    for one in out.differences:
        print_line(console, f"{one.row}  {safe(' '.join(one.question.split()))}")
        for dose, reason, dollars in (
            (one.first, one.first_reason, one.first_expected_usd),
            (one.second, one.second_reason, one.second_expected_usd),
        ):
            line = f"    {describe(dose)}, about {money(dollars)}: {reason}"
            print_line(console, line, "dim")
    left = out.differing - len(out.differences)
    if left:
        print_line(console, f"… and {left} more (--show {out.differing})", "dim")
