"""The state machine of one question.

::

    Prepared ── begin ──▶ Answering ── answered ──▶ Concluded
                │             ▲  └──── answered ──▶ Escalating ── escalated ──▶ Answering, Partitioned, Concluded
                └──▶ Partitioned ── reduced ──▶ Concluded

States are values and transitions are pure: a driver retrieves, decides and calls models. :class:`Pipeline
<orchestrator.question.pipeline.Pipeline>` drives a question within one process; a worker
(:mod:`workers.engine.questions`) records each state and has other workers read partitions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from orchestrator.question.request import Request
from posology.errors import NothingAffordable
from posology.index.search.filters import describe
from posology.llm.models.families import tier_of
from posology.seams import Complete, Strategy
from posology.types import (
    Answer,
    Compression,
    Decision,
    Dose,
    Partition,
    Refusal,
    Retrieval,
    Rung,
    Scope,
    Task,
)
from strategies.evidence import truncate_task

Outcome = Answer | Refusal


@dataclass(frozen=True, kw_only=True, slots=True)
class RemainingBudget:
    """Budget that is left for a question."""

    #: dollars that are neither spent nor reserved
    dollars: Decimal
    #: dollars that would be left if calls in flight cost nothing
    later: Decimal
    #: scope with the least left
    scope: Scope


#: returns the remaining budget; ``None``: no limit
Remaining = Callable[[], Awaitable[RemainingBudget | None]]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Prepared:
    """A question with its passages and decision; no answer is paid for yet."""

    request: Request
    retrieval: Retrieval
    decision: Decision
    #: strategy of the current dose; ``None``: the policy declined
    strategy: Strategy | None
    #: seconds for retrieval, query embedding included
    retrieval_seconds: float
    #: returns the remaining budget, for a second decision; ``None``: no limit
    remaining: Remaining | None = None

    @property
    def dose(self) -> Dose:
        """The current dose: the second decision's after an escalation."""
        return (self.decision.then or self.decision).dose

    @property
    def task(self) -> Task:
        """The task of the strategy."""
        return truncate_task(task_of(self.request, self.retrieval), self.dose)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Answering:
    """The strategy is to run in this process."""

    prepared: Prepared
    #: what the ladder before led to; ``None``: this is the first dose
    before: Outcome | None = None

    @property
    def calls(self) -> int:
        """Most model calls for the question, repeats excluded."""
        strategy, before = self.prepared.strategy, _steps(self.before)
        made = 0 if strategy is None else strategy.count(self.prepared.task)
        return len(before) + made + self.prepared.request.afterwards

    async def run(self, complete: Complete) -> Outcome:
        """Run the strategy.

        Raises:
            NothingAffordable: the policy declined.
            PosologyError: as the strategy raises.
        """
        prepared = self.prepared
        raise_if_declined(prepared.decision)
        if prepared.request.filters and not prepared.retrieval.passages:
            # the strategy would refuse, too, but does not know the filters
            return Refusal(
                reason=f"No passage that passes the filters ({describe(prepared.request.filters)}) was found for this "
                "question: ask with fewer or wider filters.",
                strategy=prepared.dose.strategy,
            )
        assert prepared.strategy is not None
        outcome = await prepared.strategy(prepared.task, complete)
        if self.before is None:
            return outcome
        return reduced(outcome, self.before.rungs, self.before.compression)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Partitioned:
    """Several workers are to read the partitions, and one to reduce."""

    prepared: Prepared
    partitions: tuple[Partition, ...]
    #: what the ladder before led to; ``None``: this is the first dose
    before: Outcome | None = None

    @property
    def calls(self) -> int:
        """Most model calls for the question, repeats excluded."""
        after = self.prepared.request.afterwards
        return len(_steps(self.before)) + len(self.partitions) + 1 + after


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Escalating:
    """A ladder did not answer: the policy is to decide again, after a second search if its dose says so."""

    prepared: Prepared
    before: Outcome


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Concluded:
    """The question has its outcome."""

    prepared: Prepared
    outcome: Outcome

    @property
    def calls(self) -> int:
        """Calls of the ladder."""
        return len(self.outcome.rungs)


State = Answering | Partitioned | Escalating | Concluded


def begin(
    prepared: Prepared, *, distributed: bool = False, before: Outcome | None = None
) -> Answering | Partitioned:
    """Return the state of a prepared question.

    Args:
        prepared: the question.
        distributed: whether other workers can read partitions.
        before: what the ladder before led to; ``None``: this is the first dose.
    """
    if distributed and prepared.strategy is not None:
        partitions = prepared.strategy.partitions(prepared.task)
        if partitions:
            return Partitioned(prepared=prepared, partitions=partitions, before=before)
    return Answering(prepared=prepared, before=before)


def answered(state: Answering, outcome: Outcome) -> Escalating | Concluded:
    """Return the state after the strategy ran."""
    first = state.before is None
    if first and _escalates(state.prepared, outcome):
        return Escalating(prepared=state.prepared, before=outcome)
    return Concluded(prepared=state.prepared, outcome=outcome)


def escalated(
    state: Escalating, prepared: Prepared, *, distributed: bool = False
) -> Answering | Partitioned | Concluded:
    """Return the state after the policy decided again.

    Args:
        state: the state before.
        prepared: the question with the second decision in ``decision.then``, and its strategy.
        distributed: whether other workers can read partitions.
    """
    if prepared.strategy is not None:
        return begin(prepared, distributed=distributed, before=state.before)
    assert prepared.decision.then is not None
    notes = (*state.before.notes, prepared.decision.then.reason)
    return Concluded(prepared=prepared, outcome=replace(state.before, notes=notes))


def reduced(
    outcome: Outcome, steps: tuple[Rung, ...], compression: Compression | None = None
) -> Outcome:
    """Add the steps of the ladder before to an outcome, and what compressing for them took."""
    return replace(outcome, rungs=steps, compression=compression)


def task_of(request: Request, retrieval: Retrieval) -> Task:
    """Return the task of a strategy over all retrieved passages."""
    return Task(
        query=request.query,
        retrieval=retrieval,
        model=request.model,
        max_tokens=request.max_tokens,
        effort=request.effort,
        tier=tier_of(request.tier),
        quotes=request.quotes,
        partitions=request.partitions,
        prompts=request.prompts,
    )


def raise_if_declined(decision: Decision) -> None:
    """Raise if the policy declined.

    Raises:
        NothingAffordable: the remaining budget pays for no dose.
    """
    if not decision.declined:
        return
    cheapest = min(offer.worst for offer in decision.offers)
    lacking = "" if decision.remaining is None else f" by ${cheapest - decision.remaining:f}"
    raise NothingAffordable(
        f"{decision.reason.rstrip('.')}. The cheapest way to answer costs ${cheapest:f} at worst: raise the "
        f"budget{lacking}, or ask a cheaper model",
        remaining=decision.remaining,
        cheapest=cheapest,
    )


def _steps(before: Outcome | None) -> tuple[Rung, ...]:
    return before.rungs if before is not None else ()


def _escalates(prepared: Prepared, outcome: Outcome) -> bool:
    """Return whether all planned steps did not answer; a ladder that the budget ended has no money for more."""
    dose = prepared.decision.dose
    if not dose.escalate or prepared.decision.then:
        return False
    if isinstance(outcome, Answer):
        # other passages may have a sentence for it; where a repair is asked for, that was its second chance
        wanted = dose.search and not outcome.supported and not prepared.request.repairs
    else:
        # a refusal in place of an answer whose sentences were all left out is none of the model's
        wanted = not outcome.filtered and all(step.refused for step in outcome.rungs)
    read = max((step.first + step.passages for step in outcome.rungs), default=0)
    return wanted and 0 < read >= min(dose.planned, len(prepared.retrieval.passages))
