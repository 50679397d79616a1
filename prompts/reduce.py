"""The prompt that makes one answer of the findings of all partitions.

BriefContext, section 5.2, *ContextReduce* and equation 3: the summary sees what was extracted, never
the passages, and nothing of partitions in which nothing was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pydantic import Field

from posology.evidence import level
from posology.types import (
    Citation,
    Excerpt,
    Partition,
    PartitionMode,
    Passage,
    Query,
    QuoteForm,
    Sentence,
)
from prompts.answer import Cited, Verdict, render_choices, statement_schema, verdict
from prompts.fence import enclose, heading, line
from prompts.labels import FORMS, ReplyForm, items, narrowed, shared
from prompts.lengths import CLAIMS, LABELS
from prompts.sentences import numbers, place_name
from prompts.template import Rendered, form, render

#: letter of the labels of findings: F1, F2, …
LETTER = "F"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sourced:
    """A finding of one source."""

    statement: str
    passage: Passage
    #: place of the passage among all retrieved ones, from 0
    rank: int
    #: verified quotes of that passage, never empty
    citations: tuple[Citation, ...]
    #: answer of its partition by itself; ``None``: it gave none
    answer: str | None = None

    @property
    def excerpt(self) -> Excerpt:
        """Return the quotes as an excerpt of their passage."""
        spans = sorted((c.start, c.end) for c in self.citations)
        return Excerpt(
            passage=self.passage,
            sentences=tuple(Sentence(start=start, end=end) for start, end in spans),
        )


class Claim(ReplyForm):
    """A claim, and which findings say that it is true or false."""

    claim: str = Field(description="one sentence that can be true or false")
    #: labels of the findings that say it is true, and of those that say it is false
    supporting: list[str]
    opposing: list[str]
    #: the side with the stronger evidence
    resolution: Literal["supporting", "opposing", "unresolved", "none"]
    #: why, in one sentence
    reason: str


class CitedConclusion(Cited):
    """What every reply to a reduce prompt has where it names sentences."""


class CitedReduce(CitedConclusion):
    """What a model replies to the reduce prompt where it names sentences."""

    claims: list[Claim]


class CitedResolution(CitedConclusion):
    """What a model replies where partitions answered, and it names sentences."""

    short: str


class Conclusion(ReplyForm):
    """What every reply to a reduce prompt has."""

    answerable: bool = Field(description="whether the findings answer the question")
    answer: str = Field(description="the answer, or what is missing")
    choice: Verdict = Field(description="the verdict")
    evidence: list[str] = Field(description="labels of the findings that the answer rests on")


class ReduceReply(Conclusion):
    """What a model replies to the reduce prompt."""

    claims: list[Claim] = Field(description="claims on which sources agree or contradict")


class ResolutionReply(Conclusion):
    """What a model replies where partitions answered."""

    short: str = Field(description="the answer in at most ten words")


def render_reduce(
    query: Query,
    findings: Sequence[Sourced],
    unread: Sequence[Partition] = (),
    quotes: QuoteForm = "copied",
    mode: PartitionMode = "extract",
    *,
    own: str | None = None,
) -> Rendered:
    """Render the messages for findings.

    Args:
        query: the question.
        findings: of all partitions, labelled 1, 2, … in their order, or F1, F2, … where replies do not name sentences.
        unread: partitions that could not be read; only that is rendered.
        quotes: how the reply names its evidence.
        mode: what was asked of the partitions.
        own: digest of the user's own templates; ``None``: the packaged ones.
    """
    copied = quotes == "copied"
    if copied:
        bodies = [render_finding(finding) for finding in findings]
    else:
        bodies = [_numbered(finding, place) for place, finding in enumerate(findings)]
    fenced = enclose(bodies, LETTER if copied else "", question=query.text)
    return render(
        form("reduce" if mode == "extract" else "reduce_answers", quotes),
        own=own,
        question=query.text,
        choices=render_choices(query),
        unread=_unread(unread),
        code=fenced.code,
        findings=fenced.text,
    )


def ranks(partition: Partition) -> str:
    """Return the passages of a partition, counted from 1: ``passages 4 to 6``."""
    first, last = partition.first_rank + 1, partition.first_rank + len(partition.excerpts)
    return f"passage {first}" if first == last else f"passages {first} to {last}"


def reduce_schema(
    choices: tuple[str, ...],
    findings: int,
    quotes: QuoteForm = "copied",
    mode: PartitionMode = "extract",
) -> type[Conclusion] | type[CitedConclusion]:
    """Return the form of the reply, with the question's choices and the labels or the numbers of findings.

    Args:
        choices: of the question.
        findings: number of findings that are shown.
        quotes: how the reply names its evidence.
        mode: what was asked of the partitions.
    """
    if mode == "extract":
        return (_schema if quotes == "copied" else _cited_schema)(choices, findings)
    return _resolution(choices, findings, quotes)


@lru_cache(maxsize=FORMS)
def _resolution(
    choices: tuple[str, ...], findings: int, quotes: QuoteForm
) -> type[ResolutionReply] | type[CitedResolution]:
    if quotes == "copied":
        labels = items(shared(findings, LETTER), LABELS)
        return narrowed(ResolutionReply, **verdict(choices), evidence=labels)
    return narrowed(CitedResolution, **verdict(choices), statements=statement_schema(findings))


@lru_cache(maxsize=FORMS)
def _cited_schema(choices: tuple[str, ...], findings: int) -> type[CitedReduce]:
    labels = items(place_name(findings), LABELS)
    claim = narrowed(Claim, supporting=labels, opposing=labels)
    return narrowed(
        CitedReduce,
        **verdict(choices),
        statements=statement_schema(findings),
        claims=items(claim, CLAIMS),
    )


@lru_cache(maxsize=FORMS)
def _schema(choices: tuple[str, ...], findings: int) -> type[ReduceReply]:
    labels = items(shared(findings, LETTER), LABELS)
    claim = narrowed(Claim, supporting=labels, opposing=labels)
    return narrowed(ReduceReply, **verdict(choices), evidence=labels, claims=items(claim, CLAIMS))


def render_finding(finding: Sourced) -> str:
    """Render one finding, without its fences."""
    passage = finding.passage
    return "\n".join(
        [
            f"source: {finding.rank + 1}",
            *heading(passage, f"evidence: {level(passage.publication_types)}"),
            *_answered(finding),
            f"statement: {line(finding.statement)}",
            *(f"quote: {line(citation.quote)}" for citation in finding.citations),
        ]
    )


def _numbered(finding: Sourced, place: int) -> str:
    """Return a finding with its sentences in their order in the source; its statement only if it says another thing."""
    passage = finding.passage
    same = [c.quote for c in finding.citations] == [finding.statement]
    rows = [
        f"source: {finding.rank + 1}",
        *heading(passage, f"evidence: {level(passage.publication_types)}"),
        *_answered(finding),
        *([] if same else [f"statement: {line(finding.statement)}"]),
    ]
    return "\n".join([*rows, *numbers(finding.excerpt, place)])


def _answered(finding: Sourced) -> list[str]:
    return [] if finding.answer is None else [f"answer of its part: {line(finding.answer)}"]


def _unread(partitions: Sequence[Partition]) -> str:
    return "".join(
        f"Not among the findings: {ranks(p)} could not be read: contents unknown.\n"
        for p in partitions
    )
