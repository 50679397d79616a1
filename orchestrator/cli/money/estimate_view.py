"""An estimate as a person reads it in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli.terminal import money, safe
from posology.published.estimates import EstimateOutput, ScopeEstimate, StrategyAccuracy

#: bad rows that are told one by one
_TOLD = 20


def show_bad(console: Console, out: EstimateOutput) -> None:
    """The rows that cannot be estimated, with their lines."""
    for bad in out.bad[:_TOLD]:
        line = bad.error.details.get("line")
        where = f"row {bad.row}" if line is None else f"line {line}"
        console.print(Text(safe(f"{where}: {bad.error.message}"), style="yellow"), soft_wrap=True)
    if len(out.bad) > _TOLD:
        console.print(Text(f"… and {len(out.bad) - _TOLD} more", style="yellow"))


def show_estimate(console: Console, out: EstimateOutput) -> None:
    """Totals by strategy, what is left, and how far off earlier estimates were."""
    table = Table(title=f"{len(out.questions):,} questions", title_justify="left")
    table.add_column("strategy", no_wrap=True)
    for name in ("calls", "in", "out", "low", "expected", "worst"):
        table.add_column(name, justify="right", no_wrap=True)
    for total in (*out.totals, *([out.decided] if out.decided else [])):
        table.add_row(
            total.strategy,
            f"{total.calls:,}",
            f"{total.input_tokens:,}",
            f"{total.output_tokens:,}",
            money(total.low_usd),
            money(total.expected_usd),
            money(total.worst_usd),
        )
    console.print(table)
    for line in _remarks(out):
        console.print(Text(safe(line)), soft_wrap=True)
    for scope in out.balances or ():
        console.print(Text(safe(_left(scope))), soft_wrap=True)
    if out.accuracy is not None:
        for strategy in out.accuracy.strategies:
            console.print(Text(_off(strategy)), soft_wrap=True)
        if out.accuracy.unanswered:
            console.print(Text(f"{out.accuracy.unanswered} rows have no answer"))
        if out.accuracy.other_index:
            console.print(
                Text(f"{out.accuracy.other_index} rows were answered from another index"),
                style="yellow",
            )


def _remarks(out: EstimateOutput) -> list[str]:
    lines = []
    free = sorted({question.model for question in out.questions if question.free})
    if free:
        lines.append(f"{', '.join(free)}: free, so it is $0")
    if out.decided is not None and out.decided.worst_usd:
        lines.append(
            f"as decided: with a cap of {money(out.decided.largest_worst_usd)} no question is cut "
            f"short; if all of {out.attempts} attempts at each call fail and are billed, the worst is "
            f"{money(out.decided.repeated_usd)}"
        )
    own = f"{out.history:,} own calls of 30 days" if out.history else "no calls of one's own yet"
    lines.append(f"replies guessed by {own}; prices: {out.prices}; {out.seconds:.1f} s")
    return lines


def _left(scope: ScopeEstimate) -> str:
    if scope.left_usd is None:
        return f"{scope.scope}: no limit, {money(scope.spent_usd)} spent"
    fits = {
        (True, True): "the worst fits",
        (True, False): "the expected fits, the worst does not",
    }.get((scope.expected_fits, scope.worst_fits), "not even the expected fits")
    return f"{scope.scope}: {money(scope.left_usd)} left of {money(scope.cap_usd)}: {fits}"


def _off(found: StrategyAccuracy) -> str:
    costs = f"expected {money(found.estimated_usd)}, actual {money(found.actual_usd)}"
    facts = [f"{found.strategy}: {found.questions} answers, {costs}{_ratio(found)}"]
    if found.within is not None:
        facts.append(f"{found.within:.1%} between low and worst")
    facts.append(f"{found.over_worst} above the worst")
    if found.repeated:
        facts.append(f"attempts repeated for {found.repeated}")
    if found.unknown:
        facts.append(f"{found.unknown} of unknown cost left out")
    return "; ".join(facts)


def _ratio(found: StrategyAccuracy) -> str:
    if found.ratio is None:
        return ""
    each = [f"{value:.2f}" for value in (found.p5, found.p50, found.p95) if value is not None]
    return f" (×{found.ratio:.2f}; each question ×{', ×'.join(each)} at p5, p50, p95)"
