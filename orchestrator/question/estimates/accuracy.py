"""Accuracy of estimates, by the actual costs of the same questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from pydantic import ValidationError

from posology.errors import BadFile
from posology.published.estimates import Accuracy, StrategyAccuracy
from posology.published.jobs import BatchRow

if TYPE_CHECKING:
    from orchestrator.question.estimates.costs import Estimate
    from orchestrator.question.estimates.rows import Estimated
    from posology.published.calls import AttemptOutput


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """One question's estimate and actual cost."""

    estimate: Estimate
    #: dollars; ``None``: an attempt's cost is unknown
    actual: Decimal | None
    #: whether an attempt was repeated, or made by a worker that died
    repeated: bool

    @property
    def over(self) -> bool:
        """Whether it cost more than the worst case."""
        return self.actual is not None and self.actual > self.estimate.dollars.worst

    @property
    def within(self) -> bool:
        """Whether it cost between the low and the worst case."""
        assert self.actual is not None
        return self.estimate.dollars.low <= self.actual and not self.over


def read_answers(lines: Iterable[bytes], path: str) -> Iterator[BatchRow]:
    """Read the rows that ``posology batch`` wrote.

    Raises:
        BadFile: a line is not such a row.
    """
    for line, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        try:
            yield BatchRow.model_validate_json(raw)
        except ValidationError:
            reason = "not a row of an output of `posology batch`"
            raise BadFile(reason, path=path, line=line) from None


def compare(estimates: Sequence[Estimated], answers: Iterable[BatchRow], path: str) -> Accuracy:
    """Compare estimates with the answers to the same questions.

    Args:
        estimates: in the order of the questions.
        answers: rows of a batch of the same questions.
        path: file of the answers, for messages.

    Raises:
        BadFile: the answers are to other questions.
    """
    by_row = {one.row.number: one for one in estimates}
    compared: list[Compared] = []
    unanswered = other_index = 0
    for answer in answers:
        estimated = by_row.get(answer.row)
        if estimated is None or answer.id != _id(estimated):
            raise _others(path, answer.row)
        if answer.result is None or estimated.request is None:
            unanswered += 1
            continue
        if answer.result.question != estimated.request.query.text:
            raise _others(path, answer.row)
        # a short budget may have led to a smaller dose than this
        decided = estimated.decided if answer.result.decision.dose == estimated.dose else None
        estimate = decided or estimated.of(answer.result.strategy)
        if estimate is None:
            raise BadFile(
                f"row {answer.row} was answered by {answer.result.strategy}, but its question asks for "
                "another strategy: pass the same options as for the batch",
                path=path,
            )
        other_index += answer.result.index != estimated.index
        spent = answer.result.spending
        compared.append(
            Compared(
                estimate=estimate,
                actual=spent.cost_usd,
                repeated=_repeated(spent.attempts, estimate.calls),
            )
        )
    names = dict.fromkeys(one.estimate.strategy for one in compared)
    return Accuracy(
        strategies=tuple(
            accuracy(name, [c for c in compared if c.estimate.strategy == name]) for name in names
        ),
        unanswered=unanswered,
        other_index=other_index,
    )


def accuracy(strategy: str, compared: Sequence[Compared]) -> StrategyAccuracy:
    """Return the accuracy of the estimates of one strategy."""
    known = [c for c in compared if c.actual is not None]
    estimated = sum((c.estimate.dollars.expected for c in known), Decimal(0))
    actual = sum((c.actual for c in known if c.actual is not None), Decimal(0))
    ratios = sorted(
        float(c.actual / c.estimate.dollars.expected)
        for c in known
        if c.actual is not None and c.estimate.dollars.expected
    )
    return StrategyAccuracy(
        strategy=strategy,
        questions=len(known),
        estimated_usd=estimated,
        actual_usd=actual,
        ratio=float(actual / estimated) if estimated else None,
        p5=_quantile(ratios, 0.05),
        p50=_quantile(ratios, 0.5),
        p95=_quantile(ratios, 0.95),
        within=sum(c.within for c in known) / len(known) if known else None,
        over_worst=sum(c.over and not c.repeated for c in known),
        repeated=sum(c.repeated for c in known),
        unknown=len(compared) - len(known),
    )


def _repeated(attempts: Sequence[AttemptOutput], calls: int) -> bool:
    """Return whether there were more attempts than the calls and their repairs need."""
    return any(a.attempt > 1 for a in attempts) or len({a.call for a in attempts}) > 2 * calls


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the nearest value; ``None`` if there are none."""
    return ordered[round(share * (len(ordered) - 1))] if ordered else None


def _id(found: Estimated) -> object:
    return None if found.row.id is None else json.loads(found.row.id)


def _others(path: str, row: int) -> BadFile:
    return BadFile(f"row {row} is the answer to another question", path=path)
