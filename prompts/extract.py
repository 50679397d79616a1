"""The prompt of one extraction: findings of some passages on a question, or none.

BriefContext, section 5.2, *ContextMap* and equation 2: instruction and query before the context
('query-aware contextualization'), and a model that takes out what is relevant or truthfully reports
that there is nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pydantic import Field

from posology.types import Excerpt, Query, QuoteForm
from prompts.answer import Quote, quote_schema, render_choices
from prompts.fence import fence
from prompts.labels import FORMS, ReplyForm, items, narrowed
from prompts.lengths import FINDING_QUOTES, FINDING_SENTENCES, most_findings
from prompts.sentences import fence_numbered, sentence_name
from prompts.template import Rendered, form, render


class Statement(ReplyForm):
    """What one passage says, with the words that say it."""

    statement: str = Field(description="what the passage says on the question, in one sentence")
    quotes: list[Quote] = Field(description="the words of the passage that say it, at least one")


class ExtractReply(ReplyForm):
    """What a model replies to the extraction prompt."""

    found: bool = Field(description="whether any passage says something on the question")
    findings: list[Statement] = Field(description="what they say; empty if nothing")


class CitedStatement(ReplyForm):
    """What one passage says, with the numbers of the sentences that say it."""

    statement: str
    sentences: list[str]


class CitedExtract(ReplyForm):
    """What a model replies to the extraction prompt where it names sentences; the prompt describes the fields."""

    found: bool
    findings: list[CitedStatement]


def render_extract(
    query: Query, excerpts: Sequence[Excerpt], quotes: QuoteForm = "copied"
) -> Rendered:
    """Render the messages for one partition.

    Args:
        query: the question.
        excerpts: labelled 1, 2, … in their order, or P1, P2, … where words are copied.
        quotes: how the reply names its evidence.
    """
    copied = quotes == "copied"
    fenced = (fence if copied else fence_numbered)(excerpts, question=query.text)
    return render(
        form("extract", quotes),
        question=query.text,
        choices=render_choices(query),
        code=fenced.code,
        passages=fenced.text,
    )


def extract_schema(
    passages: int, quotes: QuoteForm = "copied"
) -> type[ExtractReply] | type[CitedExtract]:
    """Return the form of the reply, with the labels or the numbers of the first so many passages."""
    return (_schema if quotes == "copied" else _cited_schema)(passages)


@lru_cache(maxsize=FORMS)
def _schema(passages: int) -> type[ExtractReply]:
    said = narrowed(Statement, quotes=items(quote_schema(passages), FINDING_QUOTES))
    return narrowed(ExtractReply, findings=items(said, most_findings(passages)))


@lru_cache(maxsize=FORMS)
def _cited_schema(passages: int) -> type[CitedExtract]:
    names = items(sentence_name(passages), FINDING_SENTENCES)
    said = narrowed(CitedStatement, sentences=names)
    return narrowed(CitedExtract, findings=items(said, most_findings(passages)))
