"""Strategies of one call over excerpts: the call, its plan, and the conclusion from its reply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from posology.llm.models.effort import effort_of, reasoning_tokens
from posology.seams import Complete, Guess
from posology.text.refusals import declines
from posology.text.repeats import echoes, once, remark
from posology.types import (
    Answer,
    Call,
    Completion,
    Excerpt,
    Finish,
    Partition,
    PlannedCall,
    Query,
    Refusal,
    Stage,
    Task,
)
from prompts.answer import AnswerReply, CitedReply, render_answer, reply_schema
from prompts.lengths import reply_tokens
from prompts.template import Rendered
from strategies.citing import state
from strategies.evidence import check, name_sources, remarks
from strategies.verdict import verdict_of

NOTHING_FOUND = "No passage was found for this question."
ECHO = "The model only repeated the question."


class OneCall(ABC):
    """A strategy that answers a task by one call and can render it beforehand, so that a ladder can repeat it."""

    @abstractmethod
    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal:
        """Answer from the passages in their order."""

    @abstractmethod
    def call(self, task: Task) -> Call | None:
        """Render the call; ``None`` if there is nothing to ask about. Blocking."""

    def calls(self, task: Task, guess: Guess) -> Iterable[PlannedCall]:
        """Plan the one call, see :class:`~posology.seams.Strategy`."""
        call = self.call(task)
        if call is not None:
            yield planned(call, guess)

    def count(self, task: Task) -> int:  # noqa: ARG002 - the same for every task
        """Return 1."""
        return 1

    def partitions(self, task: Task) -> tuple[Partition, ...]:  # noqa: ARG002 - never any
        """Return none."""
        return ()


def planned(call: Call, guess: Guess) -> PlannedCall:
    """Plan a call whose messages are known."""
    return PlannedCall(call=call, input=guess.input(call), output=guess.output(call))


def ask(
    task: Task, excerpts: tuple[Excerpt, ...], *, strategy: str, before: Sequence[int] = ()
) -> Call | None:
    """Render the call for a cited answer or a refusal; ``None`` without excerpts.

    Args:
        task: the question.
        excerpts: excerpts to show, in this order.
        strategy: name of the strategy, for the account.
        before: number of excerpts that each earlier step of a ladder showed.
    """
    if not excerpts:
        return None
    earlier = sorted({shown for shown in before if 0 < shown < len(excerpts)})
    rendered = render_answer(task.query, excerpts, task.quotes, before=earlier, own=task.prompts)
    effort = effort_of(task.model, Stage.ANSWER, task.effort)
    return Call(
        stage=Stage.ANSWER,
        model=task.model,
        query=task.query,
        excerpts=excerpts,
        messages=rendered.messages,
        prompt=rendered.prompt,
        schema=reply_schema(
            task.query, task.step.last if task.step else len(excerpts), task.quotes
        ),
        cached=_cached(task, rendered, earlier, before),
        quotes=task.quotes,
        strategy=strategy,
        effort=effort,
        max_tokens=reply_tokens(
            Stage.ANSWER,
            task.max_tokens,
            quotes=task.quotes,
            reasoning=reasoning_tokens(task.model, effort),
        ),
    )


def _cached(
    task: Task, rendered: Rendered, earlier: Sequence[int], before: Sequence[int]
) -> tuple[int, ...]:
    """Return where the prompts end that a provider is to cache."""
    if task.step is None:
        return ()
    ends = dict(zip(earlier, rendered.ends, strict=True))
    found = {
        ends[excerpts]
        for passages, excerpts in zip(task.step.before, before, strict=True)
        if passages in task.step.cached and excerpts in ends
    }
    if len(task.retrieval.passages) in task.step.cached:
        found.add(len(rendered.messages[-1].content))
    return tuple(sorted(found))


def conclude(
    query: Query, completion: Completion, excerpts: tuple[Excerpt, ...], *, strategy: str
) -> Answer | Refusal:
    """Turn the reply to :func:`ask` into an answer or a refusal; only verified quotes are cited.

    Args:
        query: the question.
        completion: the reply.
        excerpts: excerpts that were shown.
        strategy: name of the strategy.
    """
    reply = completion.parsed
    if completion.finish is Finish.FILTERED or not isinstance(reply, AnswerReply | CitedReply):
        return Refusal(
            reason="The provider's safety system declined to answer.",
            strategy=strategy,
            notes=(completion.text,) if completion.text else (),
            filtered=True,
        )
    answer = reply.answer.strip()
    if not reply.answerable or not answer:
        return _refuse(name_sources(answer, excerpts), reply, strategy)
    if echoes(answer, query.text):
        return _refuse(ECHO, reply, strategy)
    if isinstance(reply, CitedReply):
        stated = state(reply.statements, excerpts, query.text)
        text, verified, statements = stated.text, stated.verified, stated.statements
        notes = stated.notes
    else:
        verified, statements = check(reply.quotes, excerpts), ()
        short = once(answer)
        text = name_sources(short, excerpts)
        notes = (*remarks(verified), *remark(int(short != answer)))
    verdict = verdict_of(query, reply.choice, answer)
    if declines(answer, quoted=bool(verified.citations)):
        return _refuse(name_sources(answer, excerpts), reply, strategy)
    return Answer(
        text=text,
        choice=verdict.choice,
        worded=verdict.worded,
        citations=verified.citations,
        dropped_quotes=len(verified.dropped),
        strategy=strategy,
        notes=(*verdict.notes, *_cut(completion), *notes),
        statements=statements,
        faulty_quotes=verified.faulty,
    )


def _refuse(reason: str, reply: AnswerReply | CitedReply, strategy: str) -> Refusal:
    return Refusal(
        reason=reason or "The model gave no answer and no reason.",
        strategy=strategy,
        notes=_discarded(reply),
    )


def _discarded(reply: AnswerReply | CitedReply) -> tuple[str, ...]:
    if isinstance(reply, AnswerReply):
        quotes = len(reply.quotes)
    else:
        quotes = sum(len(one.sentences) for one in reply.statements)
    return (f"The model refused, so its {quotes} quotes were ignored.",) if quotes else ()


def _cut(completion: Completion) -> tuple[str, ...]:
    """Return a remark on a reply of which only the beginning was read."""
    if completion.finish is not Finish.LENGTH:
        return ()
    return (
        "The model's reply was cut at the limit on output tokens: statements after these are missing.",
    )
