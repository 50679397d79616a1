"""A training as a person follows it in a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli.terminal import safe
from orchestrator.spending import balance_fields
from orchestrator.training.paid.estimates import Costs, money_lines
from orchestrator.training.qtable.learner import Lesson
from orchestrator.training.qtable.view import percent
from posology.published.money import BalanceOutput
from posology.published.training import Explored, LeftOut, TrainingEstimate, TrainOutput
from posology.types import Balance

#: lines that are told one by one
_TOLD = 20


def training_estimate(
    costs: Costs,
    *,
    spent: Decimal,
    questions: int,
    answered: int,
    free: bool,
    cap: Decimal | None,
    tenant: str,
    balances: Sequence[Balance],
) -> TrainingEstimate:
    """The published form of what is to be paid for.

    Args:
        costs: of the calls that are to be made.
        spent: dollars that were spent before.
        questions: that are explored.
        answered: of their calls, those that need not be made.
        free: whether the model costs nothing.
        cap: dollars for the run.
        tenant: who pays.
        balances: what it has left.
    """
    return TrainingEstimate(
        questions=questions,
        calls=costs.calls,
        answered=answered,
        free=free,
        input_tokens=costs.input,
        output_tokens=costs.output,
        low_usd=costs.dollars.low,
        expected_usd=costs.dollars.expected,
        worst_usd=costs.dollars.worst,
        spent_usd=spent,
        cap_usd=cap,
        balances=tuple(BalanceOutput(**balance_fields(tenant, one)) for one in balances),
    )


def estimate_lines(out: TrainingEstimate) -> Iterator[str]:
    """What is to be paid for, and whether it can be."""
    before = f", {out.answered:,} are answered already" if out.answered else ""
    yield f"{out.questions:,} questions, {out.calls:,} calls to make{before}"
    if not out.calls:
        return
    yield from money_lines(out)


def explored(lessons: Iterable[Lesson]) -> tuple[Explored, ...]:
    """What each action came to, the smallest share first."""
    found: dict[float, list[tuple[float, float]]] = {}
    for lesson in lessons:
        for grade in lesson.grades:
            found.setdefault(grade.keep, []).append((grade.tau, grade.r))
    return tuple(
        Explored(
            keep=keep,
            questions=len(pairs),
            tokens=sum(tau for tau, _ in pairs) / len(pairs),
            quality=sum(r for _, r in pairs) / len(pairs),
        )
        for keep, pairs in sorted(found.items())
    )


def left_out(reasons: Mapping[int, str]) -> tuple[LeftOut, ...]:
    """Lines that nothing was learned from, in order."""
    return tuple(LeftOut(line=line, reason=reasons[line]) for line in sorted(reasons))


def show_left_out(console: Console, found: Sequence[LeftOut]) -> None:
    """Each line with its reason."""
    for one in found[:_TOLD]:
        console.print(Text(safe(f"line {one.line}: {one.reason}"), style="yellow"), soft_wrap=True)
    if len(found) > _TOLD:
        console.print(Text(f"… and {len(found) - _TOLD:,} more", style="yellow"))


def show_training(console: Console, out: TrainOutput) -> None:
    """What each action came to; the table itself is shown elsewhere."""
    shown = Table(title=f"{out.learned:,} questions", title_justify="left")
    for name in ("keep", "questions", "tokens", "quality"):
        shown.add_column(name, justify="right", no_wrap=True)
    for one in out.actions:
        shown.add_row(
            percent(one.keep), f"{one.questions:,}", f"{one.tokens:.1%}", f"{one.quality:.3f}"
        )
    console.print(shown)
