"""The prompt that shortens passages to their answer to a question.

The idea is CQSumDP's (Laskar et al. 2023, as LeanContext's baseline 2 asks it): a document and its query, and
the most reasonable summary for both. The wording is our own, and the summaries stay with their passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pydantic import Field

from posology.types import Excerpt, Query
from prompts.answer import render_choices
from prompts.fence import fence
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
