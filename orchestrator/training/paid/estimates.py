"""What a run will cost, before any of it is spent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from orchestrator.cli.terminal import money
from orchestrator.question.estimates.costs import Dollars
from posology.published.training import DatasetEstimate, TrainingEstimate


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """What calls will cost together."""

    calls: int = 0
    #: tokens, at best guess
    input: int = 0
    #: tokens, at best guess
    output: int = 0
    dollars: Dollars = field(default_factory=Dollars)


def money_lines(out: TrainingEstimate | DatasetEstimate) -> Iterator[str]:
    """What is to be paid, and whether what is left pays for it."""
    if out.free:
        yield "the model is free, so it is $0"
        return
    yield (
        f"{money(out.expected_usd)} expected, {money(out.low_usd)} at least, "
        f"{money(out.worst_usd)} at worst; {out.input_tokens:,} tokens in and {out.output_tokens:,} out"
    )
    left = [(f"{one.scope} of {one.tenant}", one.left_usd) for one in out.balances]
    if out.cap_usd is not None:
        left.append(("--max-cost", max(Decimal(0), out.cap_usd - out.spent_usd)))
    for name, amount in left:
        if amount is not None:
            yield f"{name}: {money(amount)} left{_fits(out, amount)}"


def _fits(out: TrainingEstimate | DatasetEstimate, amount: Decimal) -> str:
    if amount >= out.worst_usd:
        return ": the worst fits"
    if amount >= out.expected_usd:
        return ": the expected fits, the worst does not"
    return ": not even the expected fits; what it pays for is kept"
