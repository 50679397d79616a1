"""Direct RAG: one call over all retrieved passages, whole."""

from __future__ import annotations

from posology.seams import Complete
from posology.text.refusals import is_refusal
from posology.types import (
    Answer,
    Call,
    Completion,
    Excerpt,
    Finish,
    Query,
    Refusal,
    Stage,
    Task,
)
from prompts.answer import AnswerReply, render_answer, reply_schema
from prompts.lengths import reply_tokens
from strategies.evidence import check, remarks, whole

NAME = "direct"


class Direct:
    """Asks once, for a cited answer or a refusal, and keeps only the quotes that stand."""

    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal:
        """Answer from the passages in their order.

        Without passages there is nothing to ask about: that refuses without a call.

        Raises:
            ProviderError: the call failed; nothing was answered.
        """
        excerpts = whole(task.retrieval.passages)
        if not excerpts:
            return Refusal(reason="No passage was found for this question.", strategy=NAME)
        rendered = render_answer(task.query, excerpts)
        completion = await complete(
            Call(
                stage=Stage.ANSWER,
                model=task.model,
                query=task.query,
                excerpts=excerpts,
                messages=rendered.messages,
                prompt=rendered.prompt,
                schema=reply_schema(task.query),
                strategy=NAME,
                max_tokens=reply_tokens(Stage.ANSWER, task.max_tokens),
            )
        )
        return _conclude(task.query, completion, excerpts)


def _conclude(
    query: Query, completion: Completion, excerpts: tuple[Excerpt, ...]
) -> Answer | Refusal:
    reply = completion.parsed
    if completion.finish is Finish.FILTERED or not isinstance(reply, AnswerReply):
        return Refusal(
            reason="The provider's safety system declined to answer.",
            strategy=NAME,
            notes=(completion.text,) if completion.text else (),
        )
    answer = reply.answer.strip()
    if not reply.answerable or not answer:
        return _refuse(answer, reply)
    verified = check(reply.quotes, excerpts)
    choice = reply.choice if reply.choice in query.choices else None
    # an answer that says 'no' can sound like a refusal: the wording decides only where nothing else
    # speaks for an answer
    if not verified.citations and choice is None and is_refusal(answer):
        return _refuse(answer, reply)
    return Answer(
        text=answer,
        choice=choice,
        citations=verified.citations,
        dropped_quotes=len(verified.dropped),
        strategy=NAME,
        notes=(*_notes(query, choice), *remarks(verified)),
    )


def _refuse(reason: str, reply: AnswerReply) -> Refusal:
    return Refusal(
        reason=reason or "The model gave no answer and no reason.",
        strategy=NAME,
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
