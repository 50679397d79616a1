"""What ``--json`` prints: one object, of a form that is published under ``docs/schema``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict

from orchestrator.pipeline import Report
from posology.errors import BadFile, BadRecord, PosologyError
from posology.index.report import IngestReport
from posology.index.store import IndexInfo
from posology.llm.accounting import Account
from posology.types import (
    Answer,
    Attempt,
    Citation,
    Decision,
    Form,
    Passage,
    Refusal,
    Retrieval,
    Retrieved,
    Sentence,
    Usage,
)


class _Output(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Status(StrEnum):
    """What became of a question."""

    ANSWERED = "answered"
    #: answered, but no quote of it stands
    UNSUPPORTED = "unsupported"
    REFUSED = "refused"


class Source(_Output):
    """A passage, without its text."""

    id: str
    pmid: str | None
    title: str
    journal: str | None
    year: int | None
    publication_types: tuple[str, ...]
    retracted: bool
    source: str | None


class Evidence(_Output):
    """A verified quote."""

    passage: Source
    start: int
    """first code point of the quote in the passage's text"""
    end: int
    """one past the last code point"""
    quote: str
    context_start: int
    """first code point of the sentences that the quote stands in"""
    context: str
    """those sentences, whole, so that nothing around the quote is hidden"""


class Ranked(_Output):
    """A retrieved passage and its places in the rankings, counted from 1."""

    passage: Source
    dense: int | None
    bm25: int | None
    fused: int | None
    dense_score: float | None
    bm25_score: float | None
    fused_score: float | None


class Spending(_Output):
    """What the model calls of a question took."""

    attempts: tuple[Attempt, ...]
    usage: Usage
    """of all attempts whose usage is known"""
    usage_complete: bool
    """false when an attempt's usage is unknown: it may have been billed"""
    cost_usd: Decimal | None
    """null when usage or price of an attempt is unknown"""


class AskOutput(_Output):
    """What ``posology ask --json`` prints."""

    status: Status
    question: str
    form: Form
    model: str
    answer: str | None
    """null when refused"""
    choice: str | None
    """the verdict, where the question asked for one and the model gave one"""
    refusal: str | None
    """why not, null when answered"""
    evidence: tuple[Evidence, ...]
    dropped_quotes: int
    """quotes that the model gave and that did not pass the check"""
    notes: tuple[str, ...]
    strategy: str
    decision: Decision
    spending: Spending
    retrieved: tuple[Ranked, ...]
    index: str
    retrieval_seconds: float
    seconds: float


class SearchOutput(_Output):
    """What ``posology search --json`` prints."""

    query: str
    mode: str
    k: int
    hits: tuple[Ranked, ...]
    """in the order of the mode's ranking"""
    dense: tuple[str, ...]
    """ids, best first"""
    bm25_rerank: tuple[str, ...]
    """the passages of ``dense`` in BM25's order"""
    bm25: tuple[str, ...]
    fused: tuple[str, ...]
    index: str
    seconds: float


class BadItem(_Output):
    """A record or a file that cannot be read."""

    path: str
    line: int | None
    reason: str


class IngestOutput(_Output):
    """What ``posology ingest --json`` prints."""

    good: int
    """records that can be read"""
    written: int
    """of these, records that were embedded and written in this run"""
    unchanged: int
    """of these, records that were in the index already"""
    replaced: int
    """of these, records whose id came again at once"""
    bad: int
    bad_records: tuple[BadItem, ...]
    """the first of them"""
    bad_files: tuple[BadItem, ...]
    """files that cannot be read, or not to their end"""
    files: int
    seconds: float
    written_per_second: float


class IndexOutput(_Output):
    """What ``posology index info --json`` prints."""

    uri: str
    version: str
    passages: int
    retracted: int
    embedder: str
    dim: int
    format: int
    splitter: int
    created: str
    vector_index: str | None
    """null while the index is so small that every vector is compared"""


class ErrorBody(_Output):
    """An error as data."""

    type: str
    message: str
    exit_code: int
    details: dict[str, object]
    spending: Spending | None
    """what the failed work had spent, where it had begun to spend"""


class ErrorOutput(_Output):
    """What any command prints with ``--json`` when it fails."""

    error: ErrorBody


def ask_output(report: Report) -> AskOutput:
    """The published form of a report."""
    outcome = report.outcome
    answer = outcome if isinstance(outcome, Answer) else None
    refusal = outcome if isinstance(outcome, Refusal) else None
    return AskOutput(
        status=status(outcome),
        question=report.request.query.text,
        form=report.request.query.form,
        model=report.request.model,
        answer=answer.text if answer else None,
        choice=answer.choice if answer else None,
        refusal=refusal.reason if refusal else None,
        evidence=evidence(answer.citations, report.retrieval) if answer else (),
        dropped_quotes=answer.dropped_quotes if answer else 0,
        notes=outcome.notes,
        strategy=outcome.strategy,
        decision=report.decision,
        spending=spending(report.account),
        retrieved=ranked(report.retrieval),
        index=report.retrieval.index_version,
        retrieval_seconds=report.retrieval_seconds,
        seconds=report.seconds,
    )


def search_output(retrieval: Retrieval, *, mode: str, k: int, seconds: float) -> SearchOutput:
    """The published form of a search."""
    return SearchOutput(
        query=retrieval.query.text,
        mode=mode,
        k=k,
        hits=ranked(retrieval),
        dense=retrieval.dense.ids,
        bm25_rerank=retrieval.bm25_rerank.ids,
        bm25=retrieval.bm25.ids,
        fused=retrieval.fused.ids,
        index=retrieval.index_version,
        seconds=seconds,
    )


def ingest_output(report: IngestReport) -> IngestOutput:
    """The published form of an ingest's report."""
    return IngestOutput(
        good=report.good,
        written=report.written,
        unchanged=report.unchanged,
        replaced=report.replaced,
        bad=report.bad,
        bad_records=tuple(_bad(item) for item in report.bad_records),
        bad_files=tuple(_bad(item) for item in report.bad_files),
        files=report.files,
        seconds=report.seconds,
        written_per_second=report.rate,
    )


def index_output(info: IndexInfo) -> IndexOutput:
    """The published form of what an index says of itself."""
    return IndexOutput.model_validate(asdict(info))


def error_output(error: PosologyError, account: Account | None) -> ErrorOutput:
    """The published form of an error."""
    return ErrorOutput(
        error=ErrorBody(
            type=type(error).__name__,
            message=error.message,
            exit_code=error.exit_code,
            details={k: v for k, v in error.details.items() if k != "usage"},
            spending=spending(account) if account else None,
        )
    )


def status(outcome: Answer | Refusal) -> Status:
    """Answered, unsupported or refused."""
    if isinstance(outcome, Refusal):
        return Status.REFUSED
    return Status.ANSWERED if outcome.supported else Status.UNSUPPORTED


def spending(account: Account) -> Spending:
    """What an account holds."""
    return Spending(
        attempts=account.attempts,
        usage=account.usage,
        usage_complete=all(attempt.usage is not None for attempt in account.attempts),
        cost_usd=account.cost,
    )


def evidence(citations: Sequence[Citation], retrieval: Retrieval) -> tuple[Evidence, ...]:
    """Citations with their sources and the whole sentences that they stand in."""
    by_id = {retrieved.passage.id: retrieved for retrieved in retrieval.passages}
    return tuple(_evidence(citation, by_id[citation.passage_id]) for citation in citations)


def ranked(retrieval: Retrieval) -> tuple[Ranked, ...]:
    """The retrieved passages with their places in the three rankings."""
    places = {
        ranking.method: {hit.passage_id: (i, hit.score) for i, hit in enumerate(ranking.hits, 1)}
        for ranking in (retrieval.dense, retrieval.bm25, retrieval.fused)
    }
    rows = []
    for retrieved in retrieval.passages:
        fields: dict[str, float | None] = {}
        for method, by_id in places.items():
            place, score = by_id.get(retrieved.passage.id, (None, None))
            fields |= {method: place, f"{method}_score": score}
        rows.append(Ranked.model_validate({"passage": source(retrieved.passage), **fields}))
    return tuple(rows)


def source(passage: Passage) -> Source:
    """A passage, without its text."""
    return Source(**{name: getattr(passage, name) for name in Source.model_fields})


def context(citation: Citation, sentences: Sequence[Sentence]) -> tuple[int, int]:
    """Start and end of the sentences that a citation stands in; its own where none covers it."""
    inside = [s for s in sentences if s.start < citation.end and citation.start < s.end]
    start = min([s.start for s in inside] + [citation.start])
    end = max([s.end for s in inside] + [citation.end])
    return start, end


def _bad(item: BadRecord | BadFile) -> BadItem:
    return BadItem(path=item.path, line=item.line, reason=item.reason)


def _evidence(citation: Citation, retrieved: Retrieved) -> Evidence:
    start, end = context(citation, retrieved.sentences)
    return Evidence(
        passage=source(retrieved.passage),
        start=citation.start,
        end=citation.end,
        quote=citation.quote,
        context_start=start,
        context=retrieved.passage.text[start:end],
    )


#: what ``posology schema`` prints, by name
SCHEMAS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        "ask": AskOutput,
        "search": SearchOutput,
        "ingest": IngestOutput,
        "index": IndexOutput,
        "error": ErrorOutput,
    }
)
