"""Measures of a run, with 95 % bootstrap intervals over questions; and paired differences of two runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.evaluation.folder import Rows
from orchestrator.evaluation.forms import (
    CellOutput,
    CostMeasured,
    DifferenceMeasured,
    EvalRow,
    Measured,
    Outcome,
    SupportCounts,
)
from orchestrator.evaluation.grading import regraded
from posology.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from orchestrator.evaluation.plan import Plan

#: resamples of a bootstrap (Efron and Tibshirani, 1993), and the seed of their draw
DRAWS, SEED = 2_000, 0
_ENDS = (2.5, 97.5)
#: numbers of a bootstrap that are held at once
_HELD = 4_000_000

#: a question's share in the numerator and the denominator of a ratio; ``None``: it has none
Ratio = Callable[[EvalRow], tuple[float, float] | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """Suite, policy and model."""

    suite: str
    policy: str
    model: str

    @classmethod
    def of(cls, row: EvalRow) -> Cell:
        """Return the cell of a row."""
        return cls(suite=row.suite, policy=row.policy, model=row.model)


def ratio(rows: Sequence[EvalRow], of: Ratio) -> Measured | None:
    """Return a share of two sums over questions; ``None``: no question has one, or the denominator is zero."""
    pairs = [pair for row in rows if (pair := of(row)) is not None]
    values = np.array(pairs, dtype=float).reshape(-1, 2)
    top, bottom = values.sum(axis=0)
    if not bottom:
        return None
    drawn = _resampled(values)
    # a draw of questions without any of the denominator has no share
    known = drawn[drawn[:, 1] > 0]
    low, high = np.percentile(known[:, 0] / known[:, 1], _ENDS)
    return Measured(
        mean=float(top / bottom), low=float(low), high=float(high), questions=len(pairs)
    )


def cost_per_right(rows: Sequence[EvalRow]) -> CostMeasured | None:
    """Return the dollars for each right answer, over the questions of a known cost; ``None``: none of them is right."""
    pairs = [
        (float(row.cost_usd), float(row.outcome is Outcome.RIGHT))
        for row in rows
        if row.cost_usd is not None
    ]
    values = np.array(pairs, dtype=float).reshape(-1, 2)
    cost, right = values.sum(axis=0)
    if not right:
        return None
    drawn = _resampled(values)
    # without a right answer no sum is enough for one
    costs = np.divide(
        drawn[:, 0], drawn[:, 1], out=np.full(len(drawn), np.inf), where=drawn[:, 1] > 0
    )
    low = np.percentile(costs, _ENDS[0], method="lower")
    high = np.percentile(costs, _ENDS[1], method="higher")
    return CostMeasured(
        mean=float(cost / right),
        low=float(low),
        high=float(high) if np.isfinite(high) else None,
        questions=len(pairs),
    )


def mean(values: Sequence[float]) -> Measured | None:
    """Return a mean over questions; ``None``: there are none."""
    if not values:
        return None
    sample = np.array(values, dtype=float).reshape(-1, 1)
    low, high = np.percentile(_resampled(sample)[:, 0] / len(values), _ENDS)
    return Measured(
        mean=float(sample.mean()), low=float(low), high=float(high), questions=len(values)
    )


def _resampled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of the columns in every resample."""
    draw, count = np.random.default_rng(SEED), len(values)
    step = max(1, _HELD // count)
    sums = [
        values[draw.integers(0, count, (min(step, DRAWS - done), count))].sum(axis=1)
        for done in range(0, DRAWS, step)
    ]
    return np.concatenate(sums)


def cells(plan: Plan, rows: Rows) -> tuple[CellOutput, ...]:
    """Return the measures of every suite, policy and model of a plan."""
    keys: dict[Cell, list[str]] = {}
    for item in plan.items:
        cell = Cell(suite=item.suite, policy=item.way.policy, model=item.way.model)
        keys.setdefault(cell, []).append(item.key)
    return tuple(
        measured(cell, [rows[key] for key in of if key in rows], planned=len(of))
        for cell, of in keys.items()
    )


def measured(cell: Cell, rows: Sequence[EvalRow], *, planned: int) -> CellOutput:
    """Return the measures of one cell.

    Args:
        cell: the cell.
        rows: its rows.
        planned: number of its questions.
    """
    counts = Counter(row.outcome for row in rows)
    support = [row.support for row in rows if row.support is not None]
    seconds = [row.seconds for row in rows if row.seconds is not None]
    return CellOutput(
        suite=cell.suite,
        policy=cell.policy,
        model=cell.model,
        questions=len(rows),
        missing=planned - len(rows),
        outcomes={outcome: counts[outcome] for outcome in Outcome},
        accuracy=_share(rows, Outcome.RIGHT),
        refused=_share(rows, Outcome.REFUSED),
        wrong=_share(rows, Outcome.WRONG),
        undecided=_share(rows, Outcome.UNDECIDED),
        citation_precision=ratio(rows, _precision),
        citation_recall=ratio(rows, _recall),
        retrieval_recall=ratio(rows, _retrieved),
        support=_total(support) if support else None,
        supported=ratio(rows, _supported),
        strategies=Counter(row.decision.strategy for row in rows if row.decision is not None),
        calls=mean([float(row.calls) for row in rows]),
        tokens=mean([tokens for row in rows if (tokens := _tokens(row)) is not None]),
        cost_usd=mean([float(row.cost_usd) for row in rows if row.cost_usd is not None]),
        cost_per_right_usd=cost_per_right(rows),
        seconds_p50=float(np.percentile(seconds, 50)) if seconds else None,
        seconds_p95=float(np.percentile(seconds, 95)) if seconds else None,
        unknown_costs=sum(row.cost_usd is None for row in rows),
    )


def _share(rows: Sequence[EvalRow], outcome: Outcome) -> Measured | None:
    return mean([float(row.outcome is outcome) for row in rows])


def _precision(row: EvalRow) -> tuple[float, float] | None:
    return (row.citations.right, row.citations.cited) if row.citations else None


def _recall(row: EvalRow) -> tuple[float, float] | None:
    # a refusal cites nothing, and is counted as a refusal
    if row.citations is None or row.answer is None:
        return None
    return row.citations.found, row.citations.gold


def _retrieved(row: EvalRow) -> tuple[float, float] | None:
    return (row.citations.retrieved, row.citations.gold) if row.citations else None


def _supported(row: EvalRow) -> tuple[float, float] | None:
    found = row.support
    if found is None:
        return None
    checked = found.supported + found.unclear + found.unsupported + found.contradicted
    return found.supported, checked + found.removed


def _tokens(row: EvalRow) -> float | None:
    if row.input_tokens is None or row.output_tokens is None:
        return None
    return float(row.input_tokens + row.output_tokens)


def _total(found: Sequence[SupportCounts]) -> SupportCounts:
    return SupportCounts(
        **{name: sum(getattr(one, name) for one in found) for name in SupportCounts.model_fields}
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Other:
    """Another run, to compare with."""

    #: its folder
    path: Path
    rows: Rows


def differences(plan: Plan, rows: Rows, other: Other | None = None) -> Iterator[DifferenceMeasured]:
    """Yield paired differences over the questions that both were asked.

    Within a run, every policy and model is compared with the first one. With another run, each is compared with the same policy
    and model there; a suite that has only one policy and model in both runs is compared even if these differ.

    Args:
        plan: of the run.
        rows: of the run.
        other: another run; ``None``: there is none.
    """
    mine = _by_cell(rows[item.key] for item in plan.items if item.key in rows)
    theirs = {} if other is None else _by_cell(_comparable(plan, other))
    for suite in plan.suites:
        here = [cell for cell in mine if cell.suite == suite.name]
        for cell in here[1:]:
            yield from _difference(cell, mine[cell], here[0], mine[here[0]], None)
        there = [cell for cell in theirs if cell.suite == suite.name]
        alone = len(here) == len(there) == 1
        for cell in here:
            before = cell if cell in theirs else there[0] if alone else None
            if before is not None and other is not None:
                yield from _difference(cell, mine[cell], before, theirs[before], str(other.path))


def _comparable(plan: Plan, other: Other) -> Iterator[EvalRow]:
    """Yield the rows of another run, of a question that it was asked in several ways that of the plan.

    Raises:
        InputError: none of them is the plan's.
    """
    asked = {item.key for item in plan.items}
    names = {(item.suite, item.case.id) for item in plan.items}
    found: dict[tuple[Cell, str], list[str]] = {}
    for key, row in other.rows.items():
        found.setdefault((Cell.of(row), row.id), []).append(key)
    for (cell, name), keys in found.items():
        same = asked.intersection(keys) or keys
        if len(same) > 1 and (cell.suite, name) in names:
            raise InputError(
                f"{other.path} has question {name} in {len(same)} ways that differ in an option: compare with a folder of one run"
            )
        yield other.rows[next(iter(same))]


def _by_cell(rows: Iterable[EvalRow]) -> dict[Cell, dict[str, EvalRow]]:
    """Return rows by cell, then by id of the question."""
    found: dict[Cell, dict[str, EvalRow]] = {}
    for row in rows:
        found.setdefault(Cell.of(row), {})[row.id] = row
    return found


def _difference(
    cell: Cell,
    rows: Mapping[str, EvalRow],
    before: Cell,
    others: Mapping[str, EvalRow],
    folder: str | None,
) -> Iterator[DifferenceMeasured]:
    """Yield the difference; none if no question is in both."""
    # known answers may have been corrected since
    pairs = [
        (row, regraded(row.gold, others[name]))
        for name, row in rows.items()
        if name in others and others[name].question == row.question
    ]
    right = [(a.outcome is Outcome.RIGHT, b.outcome is Outcome.RIGHT) for a, b in pairs]
    accuracy, refused, wrong = (
        mean([float(a.outcome is one) - float(b.outcome is one) for a, b in pairs])
        for one in (Outcome.RIGHT, Outcome.REFUSED, Outcome.WRONG)
    )
    if accuracy is None or refused is None or wrong is None:
        return
    yield DifferenceMeasured(
        suite=cell.suite,
        policy=cell.policy,
        model=cell.model,
        against_policy=before.policy,
        against_model=before.model,
        against=folder,
        questions=len(pairs),
        gained=sum(a and not b for a, b in right),
        lost=sum(b and not a for a, b in right),
        accuracy=accuracy,
        refused=refused,
        wrong=wrong,
        tokens=_paired(pairs, _tokens),
        cost_usd=_paired(pairs, _cost),
    )


def _cost(row: EvalRow) -> float | None:
    return None if row.cost_usd is None else float(row.cost_usd)


def _paired(
    pairs: Sequence[tuple[EvalRow, EvalRow]], of: Callable[[EvalRow], float | None]
) -> Measured | None:
    values = [(of(a), of(b)) for a, b in pairs]
    return mean([a - b for a, b in values if a is not None and b is not None])
