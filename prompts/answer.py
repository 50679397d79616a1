"""The prompt of direct RAG: a cited answer or a refusal.

The question stands before the passages and again after them: models use the two ends of a prompt
best (BriefContext, section 1, 'spotlight positions'; its prompts put the query first, section 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from posology.types import Excerpt, Form, Query
from prompts.fence import fence
from prompts.labels import FORMS, items, narrowed, one_of
from prompts.lengths import ANSWER_QUOTES
from prompts.template import Rendered, render


class Quote(BaseModel):
    """Words that the model says stand in a passage."""

    model_config = ConfigDict(extra="forbid")

    passage: str = Field(description="label of the passage, e.g. P1")
    quote: str = Field(description="copied from that passage character by character")


class AnswerReply(BaseModel):
    """What a model replies to the answer prompt."""

    model_config = ConfigDict(extra="forbid")

    answerable: bool = Field(description="whether the passages answer the question")
    answer: str = Field(description="the answer, or what is missing")
    choice: str | None = Field(description="the verdict, null where none is asked for")
    quotes: list[Quote] = Field(description="the evidence; empty if not answerable")


def render_answer(query: Query, excerpts: Sequence[Excerpt]) -> Rendered:
    """Render the messages for a question over excerpts, which are labelled P1, P2, … in their order."""
    fenced = fence(excerpts, question=query.text)
    return render(
        "answer",
        question=query.text,
        choices=render_choices(query),
        code=fenced.code,
        passages=fenced.text,
    )


def reply_schema(query: Query, passages: int) -> type[AnswerReply]:
    """Return the form of a reply: :class:`AnswerReply` with the question's choices and the labels of passages.

    Args:
        query: the question.
        passages: number of passages that are shown.
    """
    return _schema(query.choices, passages)


def verdict(choices: tuple[str, ...]) -> dict[str, Any]:
    """Return the field ``choice`` of a reply's form, narrowed to some choices; nothing without choices."""
    if not choices:
        return {}
    narrow = Literal[choices]  # type: ignore[valid-type]  # known at run time only
    told = f"one of {', '.join(choices)}; null if not answerable"
    return {"choice": (narrow | None, Field(description=told))}


@lru_cache(maxsize=FORMS)
def quote_schema(passages: int) -> type[Quote]:
    """Return the form of a quote: :class:`Quote`, from one of the first so many passages."""
    return narrowed(Quote, passage=one_of(passages))


def render_choices(query: Query) -> str:
    """Render the instruction on the verdict; empty for free questions."""
    match query.form:
        case Form.FREE:
            return ""
        case Form.CHOICE:
            options = "\n".join(f"{option.label}. {option.text}" for option in query.options)
            return f"Choose one of these options by its letter:\n{options}\n"
        case Form.YES_NO | Form.YES_NO_MAYBE:
            return f"The verdict is one of: {', '.join(query.choices)}.\n"


@lru_cache(maxsize=FORMS)
def _schema(choices: tuple[str, ...], passages: int) -> type[AnswerReply]:
    return narrowed(
        AnswerReply, **verdict(choices), quotes=items(quote_schema(passages), ANSWER_QUOTES)
    )
