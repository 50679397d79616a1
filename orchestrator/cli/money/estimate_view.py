"""Terminal view of an estimate."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from orchestrator.cli.output.tables import print_form, print_line
from orchestrator.rendering.forms.money import estimates, remaining
from orchestrator.rendering.words import money
from posology.llm.models.effort import STAGES, effort_of
from posology.llm.models.families import capabilities
from posology.published.estimates import (
    EstimateOutput,
    LaneEstimate,
    StrategyAccuracy,
)

#: invalid rows that are listed one by one
_LISTED = 20


def show_bad(console: Console, out: EstimateOutput) -> None:
    """Print the invalid rows with their lines."""
    for bad in out.bad[:_LISTED]:
        line = bad.error.details.get("line")
        where = f"row {bad.row}" if line is None else f"line {line}"
        print_line(console, f"{where}: {bad.error.message}", "yellow")
    if len(out.bad) > _LISTED:
        print_line(console, f"… and {len(out.bad) - _LISTED} more", "yellow")


def show_estimate(console: Console, out: EstimateOutput) -> None:
    """Print the totals by strategy, the remaining budgets, and the accuracy of the estimate."""
    print_form(console, estimates(out))
    for lane in out.lanes:
        print_line(console, _lane(lane))
    for line in _remarks(out):
        print_line(console, line)
    for scope in out.balances or ():
        print_line(console, remaining(scope))
    if out.accuracy is not None:
        for strategy in out.accuracy.strategies:
            print_line(console, _accuracy(strategy))
        if out.accuracy.unanswered:
            print_line(console, f"rows without an answer: {out.accuracy.unanswered}")
        if out.accuracy.other_index:
            console.print(
                Text(f"rows answered from another index: {out.accuracy.other_index}"),
                style="yellow",
            )


def _lane(lane: LaneEstimate) -> str:
    line = f"tier {lane.tier}: expected {money(lane.expected_usd)}, maximum {money(lane.worst_usd)}"
    if lane.latest_seconds is not None:
        batches = f" ({lane.waves} batches, one after another)" if (lane.waves or 0) > 1 else ""
        return f"{line}, within {lane.latest_seconds / 3600:g} h{batches}"
    return f"{line}, slower" if lane.tier == "flex" else line


def _remarks(out: EstimateOutput) -> list[str]:
    lines = []
    free = sorted({question.model for question in out.questions if question.free})
    if free:
        lines.append(f"{', '.join(free)}: free ($0)")
    if out.decided is not None and out.decided.worst_usd:
        lines.append(
            f"by the policy: --max-cost {money(out.decided.largest_worst_usd)}, which is per question, is enough for every question; "
            f"if every call needs {out.attempts} billed attempts, the maximum is "
            f"{money(out.decided.repeated_usd)}"
        )
    reasoning = sorted({q.model for q in out.questions if reasons(q.model)})
    if reasoning:
        lines.append(
            f"{', '.join(reasoning)}: reasoning is in the maximum, and in the expected cost only as far as own calls "
            "have it"
        )
    own = f"{out.history:,} own calls in 30 days" if out.history else "defaults (no own calls yet)"
    lines.append(f"reply lengths from {own}; prices: {out.prices}; {out.seconds:.1f} s")
    return lines


def reasons(model: str) -> bool:
    """Return whether a model of the table reasons in some stage."""
    return any(
        (family := capabilities(model)).known and family.reasons(effort_of(model, stage))
        for stage in STAGES
    )


def _accuracy(found: StrategyAccuracy) -> str:
    costs = f"expected {money(found.estimated_usd)}, actual {money(found.actual_usd)}"
    facts = [f"{found.strategy}: {found.questions} answers, {costs}{_ratio(found)}"]
    if found.within is not None:
        facts.append(f"{found.within:.1%} between minimum and maximum")
    facts.append(f"{found.over_worst} above the maximum")
    if found.repeated:
        facts.append(f"{found.repeated} with repeated attempts")
    if found.unknown:
        facts.append(f"{found.unknown} of unknown cost ignored")
    return "; ".join(facts)


def _ratio(found: StrategyAccuracy) -> str:
    if found.ratio is None:
        return ""
    each = [f"{value:.2f}" for value in (found.p5, found.p50, found.p95) if value is not None]
    return f" (×{found.ratio:.2f}; each question ×{', ×'.join(each)} at p5, p50, p95)"
