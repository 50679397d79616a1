"""A ladder: the same question again, with more passages, while the reply is that they do not answer it.

Adaptive RAG: the model's refusal is taken as its word that the context was not enough. Which passages
each call shows is decided elsewhere (:class:`policies.doubling.Doubling`); here the calls are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from posology.errors import BudgetExhausted, CallTooLarge, ContextTooLong, NothingAffordable
from posology.seams import Complete
from posology.types import Answer, Call, Completion, Compression, Refusal, Rung, Task, Usage
from strategies.evidence import cut, words

#: what waiting does not change: a rung that meets one of these can never be made
_CANNOT_BE_PAID = (BudgetExhausted, NothingAffordable, CallTooLarge)


class OneCall(Protocol):
    """A strategy that answers a task by one call, and can say by which: what a ladder repeats."""

    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal: ...

    def call(self, task: Task) -> Call | None:
        """The call; ``None`` where there is nothing to ask about."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """Which of the retrieved passages a rung shows."""

    first: int
    passages: int

    def of(self, task: Task) -> Task:
        """The task over them alone."""
        return cut(task, self.first, self.passages)


class Ladder:
    """Climbs until a call is answered with evidence, or no rung is left.

    A refusal goes on to the next rung. So does an answer of which no quote stands: what nobody can
    check is no reason to stop where more can be read, and in medicine a wrong answer harms more than
    another call costs. If nothing better comes, the last such answer is given, unsupported as it is;
    without one, the last refusal. A safety system that declines ends it, too.

    A rung that the budget does not pay for, or that the model's window does not hold, ends the ladder between
    two calls: what the rungs before it led to is given, with a remark. Each rung is in ``rungs`` of what is given, with the usage of the
    replies that it was concluded from (a reply that had to be repaired is in the account alone).

    Args:
        inner: makes each call, and concludes from its reply.
        rungs: how many passages each call shows.
        overlapping: whether each shows what those before it showed, too; else the passages that come next.

    Raises:
        ValueError: no rungs, an empty one, or overlapping ones that do not grow.
    """

    def __init__(self, inner: OneCall, *, rungs: Sequence[int], overlapping: bool = True) -> None:
        if not rungs or min(rungs) < 1:
            raise ValueError(f"each rung of a ladder shows at least one passage, not {rungs}")
        if overlapping and any(b <= a for a, b in pairwise(rungs)):
            raise ValueError(f"each rung of a ladder shows more than the one before, not {rungs}")
        self.inner = inner
        self._rungs = tuple(rungs)
        self._overlapping = overlapping

    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal:
        """Answer from as few of the passages as suffice, best first.

        Raises:
            ProviderError: a call failed; what the rungs before it led to is not given.
            BudgetExhausted: the budget does not pay for the first rung.
            HeadroomReserved: a rung cannot be made yet: the same task, tried later, replays those
                before it.
        """
        steps = self._steps(len(task.retrieval.passages))
        if not steps:
            return await self.inner(task, complete)
        climb = _Climb(passages=len(task.retrieval.passages), words=words(task.retrieval.passages))
        for step in steps:
            counting = _Counting(complete)
            try:
                shown = step.of(task)
                outcome = await self.inner(shown, counting)
            except _CANNOT_BE_PAID as error:
                if climb.kept is None:
                    raise
                return climb.end(f"The budget ended the ladder there ({type(error).__name__}).")
            except ContextTooLong:
                # what is larger would not fit either, and what was read is paid for
                if climb.kept is None:
                    raise
                return climb.end("The model's window ended the ladder there (ContextTooLong).")
            climb.add(outcome, step, counting.usage, words=words(shown.retrieval.passages))
            if _ends(outcome):
                break
        return climb.end()

    def call(self, task: Task) -> Call | None:
        """The first rung's call; ``None`` where there is nothing to ask about."""
        steps = self._steps(len(task.retrieval.passages))
        return self.inner.call(steps[0].of(task) if steps else task)

    def tasks(self, task: Task) -> tuple[Task, ...]:
        """What the inner strategy is given at each rung; the later ones only if they must be climbed."""
        return tuple(step.of(task) for step in self._steps(len(task.retrieval.passages)))

    def _steps(self, passages: int) -> tuple[_Step, ...]:
        """The rungs over so many passages; none that would show nothing new."""
        steps: list[_Step] = []
        seen = 0
        for rung in self._rungs:
            first = 0 if self._overlapping else seen
            end = min(first + rung, passages)
            if end > seen:
                steps.append(_Step(first=first, passages=end - first))
                seen = end
        return tuple(steps)


class _Counting:
    """A :class:`~posology.seams.Complete` that adds up what the calls through it used."""

    def __init__(self, inner: Complete) -> None:
        self._inner = inner
        #: ``None`` once a provider did not tell
        self.usage: Usage | None = Usage()

    async def __call__(self, call: Call) -> Completion:
        """Send one call."""
        completion = await self._inner(call)
        known = self.usage is not None and completion.usage is not None
        self.usage = self.usage + completion.usage if known else None  # type: ignore[operator]
        return completion


class _Climb:
    """What the rungs so far led to."""

    def __init__(self, *, passages: int, words: int) -> None:
        self._passages = passages
        self._words = words
        #: words that were shown, with repetitions; ``None`` once a call did not tell
        self._shown: float | None = 0.0
        self._rungs: list[Rung] = []
        #: of all rungs that compressed anything
        self._compression: Compression | None = None
        #: what is given if nothing better comes
        self.kept: Answer | Refusal | None = None
        self._kept_at = 0

    def add(
        self, outcome: Answer | Refusal, step: _Step, usage: Usage | None, *, words: int
    ) -> None:
        """One more rung, of so many words; a refusal does not take the place of an answer."""
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
        """What is given, with the rungs and what a reader must know of them."""
        assert self.kept is not None
        notes = (*self.kept.notes, *self._told(), *remarks)
        share = self._shown / self._words if self._shown is not None and self._words else None
        return replace(
            self.kept,
            notes=notes,
            rungs=tuple(self._rungs),
            shown=share,
            compression=self._compression,
        )

    def _told(self) -> list[str]:
        seen = max(rung.first + rung.passages for rung in self._rungs)
        if isinstance(self.kept, Refusal):
            return [f"Refused in {_calls(len(self._rungs))}, which read {self._share(seen)}."]
        rung = self._rungs[self._kept_at]
        told = [f"Answered from {self._range(rung)}, in call {self._kept_at + 1} of a ladder."]
        if later := len(self._rungs) - 1 - self._kept_at:
            told.append(
                f"None of its quotes stands, and {_calls(later)} that came after it gave no answer."
            )
        return told

    def _range(self, rung: Rung) -> str:
        if not rung.first:
            return self._share(rung.passages)
        return f"passages {rung.first + 1} to {rung.first + rung.passages} of {self._passages}"

    def _share(self, passages: int) -> str:
        if passages == self._passages:
            return f"all passages ({passages})"
        return f"the first {passages} of {self._passages} passages"


def _ends(outcome: Answer | Refusal) -> bool:
    """Whether more passages are of no use: it is answered, or a safety system will not have it answered."""
    return outcome.supported if isinstance(outcome, Answer) else outcome.filtered


def _calls(n: int) -> str:
    return "1 call" if n == 1 else f"{n} calls"
