"""Replays and comparisons of policies as a person reads them in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli.terminal import money, safe
from orchestrator.question.policy_forms import (
    ChangeOutput,
    CompareOutput,
    Replay,
    ReplayedDecision,
    ReplayedJob,
    ReplayOutput,
    SideOutput,
)
from policies.affordable import describe
from posology.types import Dose

_STYLES = {
    Replay.SAME: "green",
    Replay.CHANGED: "red",
    Replay.FAILED: "red",
    Replay.UNDECIDED: "yellow",
    Replay.MISSING: "yellow",
}
_SAID = {
    Replay.SAME: "the same",
    Replay.CHANGED: "decided otherwise",
    Replay.FAILED: "cannot be decided from the record",
    Replay.UNDECIDED: "nothing was decided for it",
    Replay.MISSING: "no such job (any more)",
}


def show_replayed(console: Console, job: ReplayedJob) -> None:
    """One job: a line where it is the same, else what changed."""
    head = Text.assemble(safe(job.job), "  ", (_SAID[job.status], _STYLES[job.status]))
    if job.status is Replay.SAME:
        doses = ", then ".join(describe(one.dose.to(Dose)) for one in job.decisions)
        head.append(f": {safe(doses)}")
    console.print(head, soft_wrap=True)
    for number, one in enumerate(job.decisions):
        for line in _told(one, second=number > 0):
            console.print(Text(f"  {safe(line)}"), soft_wrap=True)


def show_replay(console: Console, out: ReplayOutput) -> None:
    """All jobs together."""
    facts = ", ".join(f"{_SAID[kind]} {count}" for kind, count in out.counts.items())
    console.print(
        Text(f"{out.jobs} jobs, {out.decisions} decisions: {facts or 'none'}; {out.seconds:.1f} s"),
        soft_wrap=True,
    )
    if out.versions:
        said = ", ".join(f"{name} (of {count})" for name, count in out.versions.items())
        console.print(Text(safe(f"another version now: {said} decisions")), soft_wrap=True)


def show_compare(console: Console, out: CompareOutput) -> None:
    """Costs of both, how many questions get which doses, and the questions that differ."""
    limit = "" if out.left_usd is None else f", with {money(out.left_usd)} left for each"
    console.print(
        Text(f"{out.questions} questions, of which {out.differing} get different doses{limit}"),
        soft_wrap=True,
    )
    for bad in out.bad:
        console.print(Text(safe(f"row {bad.row}: {bad.error.message}"), style="yellow"))
    console.print(_sides(out.first, out.second))
    pairs = Table(box=None, pad_edge=False, header_style="bold")
    pairs.add_column("questions", justify="right")
    for side in (out.first, out.second):
        pairs.add_column(safe(side.policy))
    for pair in out.doses:
        style = "" if pair.first != pair.second else "dim"
        pairs.add_row(f"{pair.questions}", safe(pair.first), safe(pair.second), style=style)
    console.print(pairs)
    for one in out.differences:
        console.print(Text(f"{one.row}  {safe(' '.join(one.question.split()))}"), soft_wrap=True)
        for dose, reason, dollars in (
            (one.first, one.first_reason, one.first_expected_usd),
            (one.second, one.second_reason, one.second_expected_usd),
        ):
            line = f"    {describe(dose.to(Dose))}, about {money(dollars)}: {reason}"
            console.print(Text(safe(line), style="dim"), soft_wrap=True)
    left = out.differing - len(out.differences)
    if left:
        console.print(Text(f"… and {left} more: --show {out.differing}", style="dim"))


def _sides(*sides: SideOutput) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("policy", "declined", "calls", "tokens in", "low", "expected", "worst",
                 "expected, differing"):  # fmt: skip
        table.add_column(name, justify="left" if name == "policy" else "right")
    for side in sides:
        table.add_row(
            safe(side.policy),
            f"{side.declined}",
            f"{side.calls:,}",
            f"{side.input_tokens:,}",
            money(side.low_usd),
            money(side.expected_usd),
            money(side.worst_usd),
            money(side.differing_expected_usd),
        )
    return table


def _told(one: ReplayedDecision, *, second: bool) -> list[str]:
    lines = []
    if one.error is not None:
        lines.append(f"{one.error.type}: {one.error.message}")
    elif one.now is not None and one.now != one.dose:
        lines.append(
            f"it was {describe(one.dose.to(Dose))}, and is {describe(one.now.to(Dose))} now"
        )
    if one.differing:
        lines.append(f"differs in {', '.join(one.differing)}")
    lines += [f"version of {_change(change)}" for change in one.versions]
    lines += [f"feature {_change(change)}" for change in one.features]
    return [f"after the ladder: {line}" for line in lines] if second else lines


def _change(change: ChangeOutput) -> str:
    return f"{change.name}: {_value(change.recorded)} when it was decided, {_value(change.now)} now"


def _value(value: object) -> str:
    return "none" if value is None else str(value)
