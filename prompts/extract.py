"""The prompt of one extraction: findings of some passages on a question, or none.

BriefContext, section 5.2, *ContextMap* and equation 2: instruction and query before the context
('query-aware contextualization'), and a model that takes out what is relevant or truthfully reports
that there is nothing. Where partitions answer (section 5.3), the findings are the explanation of an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pydantic import Field

from posology.types import Excerpt, PartitionMode, Query, QuoteForm
from prompts.answer import Quote, Verdict, quote_schema, render_choices, verdict
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


class AnsweringExtract(ExtractReply):
    """What a model replies where the partition answers: findings that explain the answer, and the answer."""

    answer: str = Field(description="what the findings answer, in at most ten words; empty if none")
    choice: Verdict = Field(description="the verdict")


class CitedAnsweringExtract(CitedExtract):
    """:class:`AnsweringExtract` where the reply names sentences."""

    answer: str
    choice: Verdict


def render_extract(
    query: Query,
    excerpts: Sequence[Excerpt],
    quotes: QuoteForm = "copied",
    mode: PartitionMode = "extract",
    *,
    own: str | None = None,
) -> Rendered:
    """Render the messages for one partition.

    Args:
        query: the question.
        excerpts: labelled 1, 2, … in their order, or P1, P2, … where words are copied.
        quotes: how the reply names its evidence.
        mode: what is asked of the partition.
        own: digest of the user's own templates; ``None``: the packaged ones.
    """
    copied = quotes == "copied"
    fenced = (fence if copied else fence_numbered)(excerpts, question=query.text)
    return render(
        form("extract" if mode == "extract" else "extract_answer", quotes),
        own=own,
        question=query.text,
        choices=render_choices(query),
        code=fenced.code,
        passages=fenced.text,
    )


def extract_schema(
    passages: int,
    quotes: QuoteForm = "copied",
    mode: PartitionMode = "extract",
    choices: tuple[str, ...] = (),
) -> type[ExtractReply] | type[CitedExtract]:
    """Return the form of the reply.

    Args:
        passages: number of passages, whose labels or numbers it may name.
        quotes: how the reply names its evidence.
        mode: what is asked of the partition.
        choices: of the question.
    """
    schema = _schema if quotes == "copied" else _cited_schema
    return schema(passages, None if mode == "extract" else choices)


@lru_cache(maxsize=FORMS)
def _schema(passages: int, choices: tuple[str, ...] | None) -> type[ExtractReply]:
    said = narrowed(Statement, quotes=items(quote_schema(passages), FINDING_QUOTES))
    findings = items(said, most_findings(passages))
    if choices is None:
        return narrowed(ExtractReply, findings=findings)
    return narrowed(AnsweringExtract, findings=findings, **verdict(choices))


@lru_cache(maxsize=FORMS)
def _cited_schema(passages: int, choices: tuple[str, ...] | None) -> type[CitedExtract]:
    names = items(sentence_name(passages), FINDING_SENTENCES)
    said = narrowed(CitedStatement, sentences=names)
    findings = items(said, most_findings(passages))
    if choices is None:
        return narrowed(CitedExtract, findings=findings)
    return narrowed(CitedAnsweringExtract, findings=findings, **verdict(choices))
