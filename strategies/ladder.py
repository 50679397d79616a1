"""A ladder: the same question asked with more and more passages, until the model does not refuse.

Adaptive RAG takes a refusal as a sign that the context was not enough. The policy decides which passages each call
shows (:class:`policies.doubling.Doubling`); here the calls are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from posology.errors import BudgetExhausted, CallTooLarge, ContextTooLong, NothingAffordable
from posology.llm.memo import call_key
from posology.seams import Complete, Guess
from posology.types import (
    Answer,
    Call,
    Completion,
    Compression,
    Dose,
    Partition,
    PlannedCall,
    Refusal,
    Rung,
    Stage,
    Step,
    Task,
    Usage,
)
from strategies.evidence import cut, words
from strategies.single_call import OneCall

#: errors that waiting does not change: a step that meets one of these can never be made
_CANNOT_BE_PAID = (BudgetExhausted, NothingAffordable, CallTooLarge)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """The retrieved passages that one call shows."""

    #: place of the first passage, from 0
    first: int
    passages: int
    #: ``None``: the steps show different passages, so that no prompt begins as another
    place: Step | None = None

    def of(self, task: Task) -> Task:
        """Limit a task to these passages."""
        return replace(cut(task, self.first, self.passages), step=self.place)


class Ladder:
    """Repeats a call with more passages until it is answered with evidence, or no step is left.

    Where steps overlap, each prompt begins as the one before it, byte for byte, and the form of replies is the same, so that
    a provider's cache holds what is repeated. What a compressor kept of a passage stays as it is. A prompt is written to a
    cache that bills writes only if the ladder is likely to go on, see :func:`_cached`.

    A refusal leads to the next step. So does an answer without a verified quote: it cannot be checked, and in medicine
    a wrong answer harms more than another call costs. If nothing better comes, the last such answer is returned as
    unsupported; without one, the last refusal. A safety system that declines ends the ladder, too.

    If the budget or the model's window has no room for a step, the ladder ends before it and returns what the steps
    before led to, with a remark. ``rungs`` of the outcome lists every step with the usage of the replies that it was
    concluded from; a reply that had to be repaired is in the account only.

    Args:
        inner: makes each call and concludes from its reply.
        rungs: passages that each call shows.
        overlapping: whether each call also shows what the calls before it showed; else only the next passages.

    Raises:
        ValueError: no steps, an empty step, or overlapping steps that do not grow.
    """

    def __init__(self, inner: OneCall, *, rungs: Sequence[int], overlapping: bool = True) -> None:
        if not rungs or min(rungs) < 1:
            raise ValueError(f"each step of a ladder must show at least one passage (got {rungs})")
        if overlapping and any(b <= a for a, b in pairwise(rungs)):
            raise ValueError(f"each step must show more passages than the one before (got {rungs})")
        self.inner = inner
        self._passages = tuple(rungs)
        self._overlapping = overlapping

    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal:
        """Answer from as few of the passages as suffice, best first.

        Raises:
            ProviderError: a call failed; the outcome of the steps before is dropped.
            BudgetExhausted: the budget does not pay for the first step.
            HeadroomReserved: a step must wait for budget: the same task, tried later, replays the steps before.
        """
        steps = self._steps(task)
        if not steps:
            return await self.inner(task, complete)
        climb = _Climb(
            passages=len(task.retrieval.passages),
            words=words(task.retrieval.passages),
            steps=len(steps),
        )
        rewritten: dict[str, Completion] = {}
        for step in steps:
            counting = _Counting(complete, rewritten)
            try:
                part = step.of(task)
                outcome = await self.inner(part, counting)
            except _CANNOT_BE_PAID as error:
                if climb.kept is None:
                    raise
                return climb.end(
                    f"The ladder ended there because of the budget ({type(error).__name__})."
                )
            except ContextTooLong:
                # a larger step would not fit either, and the steps before are paid for
                if climb.kept is None:
                    raise
                return climb.end(
                    "The ladder ended there because of the model's window (ContextTooLong)."
                )
            climb.add(outcome, step, counting.usage, words=words(part.retrieval.passages))
            if _ends(outcome):
                break
        return climb.end()

    def calls(self, task: Task, guess: Guess) -> Iterable[PlannedCall]:
        """Plan each step's calls, as likely as the step is reached."""
        before = 0.0
        for i, step in enumerate(self._steps(task)):
            share, repeated = guess.reached(task.model, i), before
            for one in self.inner.calls(step.of(task), guess):
                known = repeated if one.call.stage is Stage.ANSWER and step.place else 0.0
                before = one.input
                yield replace(one, share=one.share * share, step=i, repeated=known)

    def count(self, task: Task) -> int:
        """Return the calls of all steps."""
        return self.inner.count(task) * len(self._passages)

    def partitions(self, task: Task) -> tuple[Partition, ...]:
        """Return those of the inner strategy: none."""
        return self.inner.partitions(task)

    def _steps(self, task: Task) -> tuple[_Step, ...]:
        return _steps(self._passages, len(task.retrieval.passages), overlapping=self._overlapping)


def step_tasks(task: Task, dose: Dose) -> tuple[Task, ...]:
    """Return the task of each step of a dose; the task itself if the dose has no steps."""
    if not dose.rungs:
        return (task,)
    steps = _steps(dose.rungs, len(task.retrieval.passages), overlapping=dose.overlapping)
    return tuple(step.of(task) for step in steps)


def _steps(rungs: Sequence[int], passages: int, *, overlapping: bool) -> tuple[_Step, ...]:
    """Return the steps over so many passages, without those that would show nothing new."""
    steps: list[_Step] = []
    seen = 0
    for rung in rungs:
        first = 0 if overlapping else seen
        end = min(first + rung, passages)
        if end > seen:
            steps.append(_Step(first=first, passages=end - first))
            seen = end
    if not overlapping or len(steps) < 2:
        return tuple(steps)
    shown = [step.passages for step in steps]
    return tuple(
        replace(
            step,
            place=Step(before=tuple(shown[:i]), last=shown[-1], cached=_cached(shown, i)),
        )
        for i, step in enumerate(steps)
    )


def _cached(shown: Sequence[int], step: int) -> frozenset[int]:
    """Return the passages of the steps whose prompts a provider is to cache, as of a step.

    A write costs a quarter more than an input token, and a read a tenth of one, so that writing pays if the next call is
    made for more than 28 % of the questions. After a first call it is for 8 %, after a second one for 90 %
    (:mod:`evals.policy.doubling`); and first prompts are shorter than what providers cache.
    """
    return frozenset(shown[1 : min(step + 1, len(shown) - 1)])


class _Counting:
    """A :class:`~posology.seams.Complete` that sums the usage of its calls.

    Args:
        inner: sends calls.
        rewritten: replies to rewriters of the steps before: a call of the same content is not paid for again.
    """

    def __init__(self, inner: Complete, rewritten: dict[str, Completion]) -> None:
        self._inner = inner
        self._rewritten = rewritten
        #: ``None`` once a provider reported none
        self.usage: Usage | None = Usage()

    async def __call__(self, call: Call) -> Completion:
        """Send one call."""
        if call.stage is not Stage.COMPRESS:
            return await self._send(call)
        key = call_key(call)
        if (known := self._rewritten.get(key)) is not None:
            return replace(known, usage=Usage())
        completion = self._rewritten[key] = await self._send(call)
        return completion

    async def _send(self, call: Call) -> Completion:
        completion = await self._inner(call)
        known = self.usage is not None and completion.usage is not None
        self.usage = self.usage + completion.usage if known else None  # type: ignore[operator]
        return completion


class _Climb:
    """The outcome of the steps so far."""

    def __init__(self, *, passages: int, words: int, steps: int) -> None:
        self._passages = passages
        self._steps = steps
        self._words = words
        #: words that were shown, repetitions included; ``None`` once it is unknown of a call
        self._shown: float | None = 0.0
        self._rungs: list[Rung] = []
        #: sum over all steps that compressed anything
        self._compression: Compression | None = None
        #: outcome if nothing better comes
        self.kept: Answer | Refusal | None = None
        self._kept_at = 0

    def add(
        self, outcome: Answer | Refusal, step: _Step, usage: Usage | None, *, words: int
    ) -> None:
        """Add a step over so many words; a refusal does not replace an answer."""
        if self._shown is not None:
            self._shown = None if outcome.shown is None else self._shown + outcome.shown * words
        if outcome.compression is not None:
            before = self._compression
            self._compression = before + outcome.compression if before else outcome.compression
        self._rungs.append(
            Rung(
                passages=step.passages,
                first=step.first,
                usage=usage,
                refused=isinstance(outcome, Refusal),
            )
        )
        if isinstance(outcome, Answer) or not isinstance(self.kept, Answer):
            self.kept, self._kept_at = outcome, len(self._rungs) - 1

    def end(self, *remarks: str) -> Answer | Refusal:
        """Return the outcome, with the steps and remarks on them."""
        assert self.kept is not None
        notes = (*self.kept.notes, *self._remarks(), *remarks)
        share = self._shown / self._words if self._shown is not None and self._words else None
        return replace(
            self.kept,
            notes=notes,
            rungs=tuple(self._rungs),
            shown=share,
            compression=self._compression,
        )

    def _remarks(self) -> list[str]:
        seen = max(rung.first + rung.passages for rung in self._rungs)
        if isinstance(self.kept, Refusal):
            return [f"Refused in {_steps_of(len(self._rungs))}, which read {self._share(seen)}."]
        rung = self._rungs[self._kept_at]
        step = (
            f" (step {self._kept_at + 1} of the ladder's {self._steps})" if self._steps > 1 else ""
        )
        remarks = [f"Answered from {self._range(rung)}{step}."]
        if later := len(self._rungs) - 1 - self._kept_at:
            remarks.append(
                f"None of its quotes could be verified; {_later(later)} of the ladder gave no answer."
            )
        return remarks

    def _range(self, rung: Rung) -> str:
        if not rung.first:
            return self._share(rung.passages)
        return f"passages {rung.first + 1} to {rung.first + rung.passages} of {self._passages}"

    def _share(self, passages: int) -> str:
        if passages == self._passages:
            return f"all passages ({passages})"
        return f"the first {passages} of {self._passages} passages"


def _ends(outcome: Answer | Refusal) -> bool:
    """Return whether more passages are of no use: it is answered, or a safety system declined."""
    return outcome.supported if isinstance(outcome, Answer) else outcome.filtered


def _steps_of(n: int) -> str:
    # not calls: a step whose reply was repaired made two, and the account counts them
    return "1 step of the ladder" if n == 1 else f"{n} steps of the ladder"


def _later(n: int) -> str:
    return "the next step" if n == 1 else f"the next {n} steps"
