"""Every answer: its strategy runs, its sentences are checked for support, and one call may follow; the same for all strategies.

The call sends sentences that are not supported back to the model (``repair``), or has a model judge all of them (``model``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from anyio import move_on_after, to_thread

from orchestrator.question.machine import Outcome
from orchestrator.question.request import Request
from posology.errors import (
    BudgetError,
    HeadroomReserved,
    JobError,
    PosologyError,
    StoreUnavailable,
)
from posology.llm.models.names import parse
from posology.seams import Complete, SupportJudge
from posology.types import Answer, Call, Completion, Excerpt, Finish, Repair
from strategies.support.check import applied, cases_of, checked, supported, unread
from strategies.support.judging import judging_call, verdicts_of
from strategies.support.repair import (
    Recording,
    Unrecorded,
    estimated,
    problems_of,
    repair_call,
)

#: runs the strategy of a question
Run = Callable[[Complete], Awaitable[Outcome]]


def no_judge() -> None:
    """Return no judge, so that rules alone decide."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long a question waits for the repair of its answer."""

    #: returns the seconds that it may take; ``None``: any
    seconds: Callable[[], float] | None = None
    #: whether the question is asked again once there is budget, and its replies are replayed
    requeued: bool = False


class Answerer:
    """Answers a question, and checks whether the quotes behind each sentence support it.

    The check calls no language model and spends nothing, unless the request asks for a model's judgement. The same answer gets
    the same result from the same judge, whose name is recorded. In the mode ``repair``, sentences that are not supported are
    sent back to the model by one more call.

    Args:
        judge: loads or returns the judge, in a thread; ``None``: there is none.
    """

    def __init__(self, judge: Callable[[], SupportJudge | None] = no_judge) -> None:
        self._judge = judge

    async def __call__(
        self,
        run: Run,
        complete: Complete,
        *,
        request: Request,
        excerpts: Iterable[Excerpt],
        patience: Patience = Patience(),
    ) -> Outcome:
        """Run a strategy, and mark, drop or repair the sentences that its quotes do not support.

        The offline reader's answers stay as they are: they are quotes, and remarks that no quote stands behind. So do refusals.

        Args:
            run: runs the strategy; for a repair, a second time on the same replies.
            complete: makes calls.
            request: the question, with its mode.
            excerpts: every retrieved passage, with all of its sentences.
            patience: how long a repair or a judgement may take.

        Raises:
            HeadroomReserved: a repair or a judgement must wait for budget, and the question is requeued.
            JobError: the job ended meanwhile.
            StoreUnavailable: neither can be paid for, and no answer recorded.
            PosologyError: as the strategy raises. An error of a repair or of a judgement costs no answer.
        """
        recording = Recording(complete) if request.repairs else None
        outcome = await run(recording or complete)
        quoting = parse(request.model).provider == "offline"
        if request.support == "off" or quoting or not isinstance(outcome, Answer):
            return outcome
        by_id = {one.passage.id: one for one in excerpts}

        async def check(answer: Answer) -> Answer:
            return await to_thread.run_sync(checked, answer, by_id, request.query.text, self._judge)

        if request.judge is not None:
            judged = await self._judged_by_model(outcome, by_id, request, complete, patience)
            return applied(judged, request.support)
        found = await check(outcome)
        if recording is not None and found.support and found.support.unsupported:
            found = await _repaired(found, run, recording, check, complete, patience)
        return applied(found, request.support)

    async def _judged_by_model(
        self,
        answer: Answer,
        excerpts: Mapping[str, Excerpt],
        request: Request,
        complete: Complete,
        patience: Patience,
    ) -> Answer:
        """Return an answer with the support of its sentences by a language model; without its reply, by the packaged judge."""
        assert request.judge is not None
        question = request.query.text
        cases = await to_thread.run_sync(cases_of, answer, excerpts, question)
        if cases is None:
            return unread(answer)
        call = judging_call(
            cases,
            request.query,
            model=request.judge,
            effort=request.effort,
            strategy=answer.strategy,
        )
        if call is None:
            return supported(answer, cases, [None] * len(cases), None)
        said = await _afterwards(call, complete, patience)
        if isinstance(said, Completion):
            return supported(answer, cases, verdicts_of(cases, said), said.served_model)
        packaged = await to_thread.run_sync(checked, answer, excerpts, question, self._judge)
        why = {
            Repair.UNAFFORDABLE: "The remaining budget is too small to let a model judge the sentences",
            Repair.REFUSED: "The provider's safety system declined to judge the sentences",
            Repair.FAILED: "The call that asked a model to judge the sentences failed",
        }[said]
        return replace(
            packaged,
            notes=(*packaged.notes, f"{why}: rules and the packaged judge judged them instead."),
        )


async def _afterwards(call: Call, complete: Complete, patience: Patience) -> Completion | Repair:
    """Make the one call that may follow an answer, or return why there is no reply.

    Raises:
        HeadroomReserved: it must wait for budget, and the question is requeued.
        JobError: the job ended meanwhile.
        StoreUnavailable: it cannot be paid for, and no answer recorded.
    """
    completion: Completion | None = None
    with move_on_after(patience.seconds() if patience.seconds else None):
        try:
            completion = await complete(call)
        except HeadroomReserved:
            if patience.requeued:
                raise
            return Repair.UNAFFORDABLE
        except BudgetError:
            return Repair.UNAFFORDABLE
        except (JobError, StoreUnavailable):
            # the job is over, or no answer can be recorded
            raise
        except PosologyError:
            # a deadline, too: the first answer is paid for, and a job past its end still takes it
            return Repair.FAILED
    if completion is None:
        return Repair.FAILED
    return Repair.REFUSED if completion.finish is Finish.FILTERED else completion


async def _repaired(
    first: Answer,
    run: Run,
    recording: Recording,
    check: Callable[[Answer], Awaitable[Answer]],
    complete: Complete,
    patience: Patience,
) -> Answer:
    """Return the answer with fewer sentences that are not supported, of the first and the one to a repair."""
    behind = recording.behind(first)
    assert behind is not None
    call, reply = behind
    if not estimated(call, reply.text):
        return _kept(first, Repair.UNAFFORDABLE)
    asked = repair_call(call, reply.text, problems_of(first, call.quotes))
    said = await _afterwards(asked, complete, patience)
    if isinstance(said, Repair):
        return _kept(first, said)
    try:
        second = await run(recording.replaced(call, said))
    except Unrecorded:
        # a ladder would go on, since no quote of the second reply could be verified
        return _kept(first, Repair.REFUSED)
    except PosologyError:
        return _kept(first, Repair.FAILED)
    if not isinstance(second, Answer):
        return _kept(first, Repair.REFUSED)
    better = await check(second)
    assert first.support is not None
    if better.support is None or better.support.unsupported >= first.support.unsupported:
        return _kept(first, Repair.NO_BETTER)
    return _kept(better, Repair.BETTER)


def _kept(answer: Answer, repair: Repair) -> Answer:
    """Return an answer with the outcome of its repair."""
    assert answer.support is not None
    remark = {
        Repair.BETTER: "Quotes did not support some sentences of the first answer, so the model was asked again: this is its second answer.",
        Repair.NO_BETTER: "The model was asked once more, and its second answer is not better supported.",
        Repair.REFUSED: "The model was asked once more, and gave no second answer.",
        Repair.UNAFFORDABLE: "The remaining budget is too small to ask the model for a better answer.",
        Repair.FAILED: "The call that asked the model for a better answer failed.",
    }[repair]
    return replace(
        answer, support=replace(answer.support, repair=repair), notes=(*answer.notes, remark)
    )
