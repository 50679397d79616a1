"""The prompts by which a model writes passages anew: shortened to their answer to a question, or in few words for any question.

The ideas are CQSumDP's (Laskar et al. 2023, as LeanContext's baseline 2 asks it), a document and its query, and the most
reasonable summary for both; and Gilbert et al.'s (*Semantic Compression With Large Language Models*, 2023, LeanContext's
baseline 3), a text for another model rather than for people. The wording is our own, and both stay with their passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pydantic import Field

from posology.types import Excerpt, Query
from prompts.answer import render_choices
from prompts.fence import fence, label
from prompts.labels import FORMS, ReplyForm, items, narrowed, one_of
from prompts.template import Rendered, render


class Summary(ReplyForm):
    """What one passage says on the question."""

    passage: str = Field(description="label of the passage, e.g. P1")
    summary: str = Field(description="what it says on the question, key sentences copied")


class SummaryReply(ReplyForm):
    """What a model replies to the prompt."""

    summaries: list[Summary] = Field(description="of the passages that bear on the question")


def render_summarise(
    query: Query, excerpts: Sequence[Excerpt], *, words: int, own: str | None = None
) -> Rendered:
    """Render the messages for excerpts, labelled P1, P2, … in their order.

    Args:
        query: the question.
        excerpts: what is to be shortened.
        words: that all summaries together may have.
        own: digest of the user's own templates; ``None``: the packaged ones.
    """
    fenced = fence(excerpts, question=query.text)
    return render(
        "summarise",
        own=own,
        question=query.text,
        choices=render_choices(query),
        words=str(words),
        code=fenced.code,
        passages=fenced.text,
    )


@lru_cache(maxsize=FORMS)
def summary_schema(passages: int) -> type[SummaryReply]:
    """Return the form of the reply: :class:`SummaryReply` with the labels of the first so many passages."""
    return narrowed(SummaryReply, summaries=items(narrowed(Summary, passage=one_of(passages))))


class Rewritten(ReplyForm):
    """One passage in other words."""

    passage: str = Field(description="label of the passage, e.g. P1")
    text: str = Field(description="what it says, its main result copied, the rest in few words")


class RewriteReply(ReplyForm):
    """What a model replies to the prompt."""

    passages: list[Rewritten] = Field(description="all passages, one entry each")


def render_rewrite(
    excerpts: Sequence[Excerpt], *, words: Sequence[int], own: str | None = None
) -> Rendered:
    """Render the messages for excerpts, labelled P1, P2, … in their order.

    Args:
        excerpts: what is to be written anew.
        words: that each may have.
        own: digest of the user's own templates; ``None``: the packaged ones.
    """
    fenced = fence(excerpts)
    return render(
        "rewrite",
        own=own,
        limits=", ".join(f"{label(i)} {n}" for i, n in enumerate(words)),
        code=fenced.code,
        passages=fenced.text,
    )


@lru_cache(maxsize=FORMS)
def rewrite_schema(passages: int) -> type[RewriteReply]:
    """Return the form of the reply: :class:`RewriteReply` with the labels of the first so many passages."""
    return narrowed(RewriteReply, passages=items(narrowed(Rewritten, passage=one_of(passages))))
