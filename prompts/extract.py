"""The prompt of one extraction: findings of some passages on a question, or none.

BriefContext, section 5.2, *ContextMap* and equation 2: instruction and query before the context
('query-aware contextualization'), and a model that takes out what is relevant or truthfully reports
that there is nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field

from posology.types import Excerpt, Query
from prompts.answer import Quote, quote_schema, render_choices
from prompts.fence import fence
from prompts.labels import FORMS, items, narrowed
from prompts.lengths import FINDING_QUOTES, most_findings
from prompts.template import Rendered, render


class Statement(BaseModel):
    """What one passage says, with the words that say it."""

    model_config = ConfigDict(extra="forbid")

    statement: str = Field(description="what the passage says on the question, in one sentence")
    quotes: list[Quote] = Field(description="the words of the passage that say it, at least one")


class ExtractReply(BaseModel):
    """What a model replies to the extraction prompt."""

    model_config = ConfigDict(extra="forbid")

    found: bool = Field(description="whether any passage says something on the question")
    findings: list[Statement] = Field(description="what they say; empty if nothing")


def render_extract(query: Query, excerpts: Sequence[Excerpt]) -> Rendered:
    """Render the messages for one partition's excerpts, labelled P1, P2, … in their order."""
    fenced = fence(excerpts, question=query.text)
    return render(
        "extract",
        question=query.text,
        choices=render_choices(query),
        code=fenced.code,
        passages=fenced.text,
    )


@lru_cache(maxsize=FORMS)
def extract_schema(passages: int) -> type[ExtractReply]:
    """Return the form of the reply: :class:`ExtractReply` with the labels of the first so many passages."""
    said = narrowed(Statement, quotes=items(quote_schema(passages), FINDING_QUOTES))
    return narrowed(ExtractReply, findings=items(said, most_findings(passages)))
