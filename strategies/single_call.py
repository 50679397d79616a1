"""What direct and compressed RAG share: one call over excerpts, and what becomes of its reply."""

from __future__ import annotations

from posology.text.refusals import is_refusal
from posology.types import Answer, Call, Completion, Excerpt, Finish, Query, Refusal, Stage, Task
from prompts.answer import AnswerReply, render_answer, reply_schema
from prompts.lengths import reply_tokens
from strategies.evidence import check, remarks

NOTHING_FOUND = "No passage was found for this question."


def ask(task: Task, excerpts: tuple[Excerpt, ...], *, strategy: str) -> Call | None:
    """The call for a cited answer or a refusal; ``None`` without excerpts.

    Args:
        task: the question.
        excerpts: what is shown, in this order.
        strategy: who asks, for the account.
    """
    if not excerpts:
        return None
    rendered = render_answer(task.query, excerpts)
    return Call(
        stage=Stage.ANSWER,
        model=task.model,
        query=task.query,
        excerpts=excerpts,
        messages=rendered.messages,
        prompt=rendered.prompt,
        schema=reply_schema(task.query),
        strategy=strategy,
        max_tokens=reply_tokens(Stage.ANSWER, task.max_tokens),
    )


def conclude(
    query: Query, completion: Completion, excerpts: tuple[Excerpt, ...], *, strategy: str
) -> Answer | Refusal:
    """What a reply to :func:`ask` comes to: only quotes that stand are cited.

    Args:
        query: the question.
        completion: the reply.
        excerpts: what was shown.
        strategy: who asked.
    """
    reply = completion.parsed
    if completion.finish is Finish.FILTERED or not isinstance(reply, AnswerReply):
        return Refusal(
            reason="The provider's safety system declined to answer.",
            strategy=strategy,
            notes=(completion.text,) if completion.text else (),
            filtered=True,
        )
    answer = reply.answer.strip()
    if not reply.answerable or not answer:
        return _refuse(answer, reply, strategy)
    verified = check(reply.quotes, excerpts)
    choice = reply.choice if reply.choice in query.choices else None
    # an answer that says 'no' can sound like a refusal: the wording decides only where nothing else
    # speaks for an answer
    if not verified.citations and choice is None and is_refusal(answer):
        return _refuse(answer, reply, strategy)
    return Answer(
        text=answer,
        choice=choice,
        citations=verified.citations,
        dropped_quotes=len(verified.dropped),
        strategy=strategy,
        notes=(*_notes(query, choice), *remarks(verified)),
    )


def _refuse(reason: str, reply: AnswerReply, strategy: str) -> Refusal:
    return Refusal(
        reason=reason or "The model gave no answer and no reason.",
        strategy=strategy,
        notes=_discarded(reply),
    )


def _discarded(reply: AnswerReply) -> tuple[str, ...]:
    if not reply.quotes:
        return ()
    return (f"{len(reply.quotes)} quotes that came with the refusal were set aside.",)


def _notes(query: Query, choice: str | None) -> tuple[str, ...]:
    if query.choices and choice is None:
        return (f"The model gave no verdict of {', '.join(query.choices)}.",)
    return ()
