"""From what the system computes to the forms that it publishes as JSON."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from orchestrator.question.passages import ranked
from posology.errors import PosologyError
from posology.llm.accounting import Account
from posology.published.answers import (
    AskOutput,
    CompressionOutput,
    DifferenceOutput,
    Disagreement,
    Evidence,
    Position,
    Ranked,
    RefusedQuote,
    SentenceSupportOutput,
    Source,
    Status,
    SupportOutput,
    judged,
    standing,
)
from posology.published.calls import AttemptOutput, ErrorBody, ErrorOutput, Spending
from posology.published.decisions import DecisionOutput
from posology.types import (
    UNREADABLE,
    Answer,
    Citation,
    Compression,
    Conflict,
    Decision,
    Excerpt,
    Growth,
    Passage,
    Refusal,
    Sentence,
    SentenceRole,
    Side,
    Support,
)
from posology.types.flags import OWN

if TYPE_CHECKING:
    from orchestrator.question.estimates.savings import Savings
    from orchestrator.question.pipeline import Report
    from orchestrator.question.request import Request


def ask_output(report: Report) -> AskOutput:
    """The published form of a report."""
    return answer_output(
        request=report.request,
        outcome=report.outcome,
        decision=report.decision,
        excerpts=[one.excerpt() for one in report.retrieval.passages],
        retrieved=ranked(report.retrieval),
        index=report.retrieval.index_version,
        growth=report.retrieval.growth,
        spending=spending(report.account),
        retrieval_seconds=report.retrieval_seconds,
        seconds=report.seconds,
        spared=report.spared,
        withdrawn=report.withdrawn,
    )


def answer_output(
    *,
    request: Request,
    outcome: Answer | Refusal,
    decision: Decision,
    excerpts: Sequence[Excerpt],
    retrieved: tuple[Ranked, ...],
    index: str,
    spending: Spending,
    retrieval_seconds: float,
    seconds: float,
    spared: Savings | None = None,
    growth: Growth | None = None,
    withdrawn: Sequence[str] = (),
) -> AskOutput:
    """Return the published form of an outcome.

    Args:
        request: the question.
        outcome: answer or refusal.
        decision: which strategy ran, and why.
        excerpts: every retrieved passage; citations point into them.
        retrieved: the same passages with their places in the rankings.
        index: name and version.
        spending: what the model calls took.
        retrieval_seconds: of the retrieval alone.
        seconds: of the whole.
        spared: what compressing saved; ``None``: nothing was compressed, or unknown.
        growth: how far the first ingest of the index was; ``None``: it was complete.
        withdrawn: ids of retracted articles that were left out of the passages; a refusal says so.
    """
    answer = outcome if isinstance(outcome, Answer) else None
    refusal = outcome if isinstance(outcome, Refusal) else None
    by_id = {excerpt.passage.id: excerpt for excerpt in excerpts}
    reason, notes = refusal.reason if refusal else None, outcome.notes
    # the job store imports this module, and needs no text
    from posology.text.languages import foreign

    if language := foreign(request.query.text):
        # the reader's own reason speaks of passages, and is not the true one
        if refusal and not refusal.filtered and not judged(request.model):
            notes = (*notes, f"The reader's own reason: {reason}")
            reason = (
                f"The question seems to be in {language}. {request.model} reads English: ask it in English, or "
                "choose a model that reads the language."
            )
        notes = (*notes, language_remark(language))
    quoted = evidence(answer.citations, by_id) if answer else ()
    notes = (
        *notes,
        *standings(one.passage for one in quoted),
        *unread(excerpt.passage for excerpt in excerpts),
        *(left_out(withdrawn) if refusal else ()),
    )
    return AskOutput(
        status=status(outcome),
        question=request.query.text,
        form=request.query.form,
        model=request.model,
        answer=answer.text if answer else None,
        choice=answer.choice if answer else None,
        worded=answer.worded if answer else None,
        refusal=reason,
        evidence=quoted,
        dropped_quotes=answer.dropped_quotes if answer else 0,
        faulty_quotes=answer.faulty_quotes if answer else (),
        support=_support(answer.support) if answer and answer.support else None,
        notes=notes if growth is None else (str(growth), *notes),
        conflicts=tuple(_disagreement(c, by_id) for c in answer.conflicts) if answer else (),
        coverage=outcome.coverage,
        shown=outcome.shown,
        compression=compression(outcome.compression, spared),
        strategy=outcome.strategy,
        rungs=outcome.rungs,
        decision=DecisionOutput.of(decision),
        spending=spending,
        retrieved=retrieved,
        index=index,
        filters=request.filters or None,
        retrieval_seconds=retrieval_seconds,
        seconds=seconds,
    )


def _support(support: Support) -> SupportOutput:
    return SupportOutput(
        judge=support.judge,
        sentences=tuple(
            SentenceSupportOutput(
                start=sentence.start,
                end=sentence.end,
                backing=sentence.backing,
                probability=sentence.probability,
                evidence=sentence.citations,
                failed=sentence.failed,
                differences=tuple(
                    DifferenceOutput(
                        rule=each.rule, said=each.said, quoted=each.quoted, words=str(each)
                    )
                    for each in sentence.differences
                ),
                refused=tuple(
                    RefusedQuote(
                        passage=each.passage_id, start=each.start, end=each.end, quote=each.quote
                    )
                    for each in sentence.refused
                ),
                disagrees=sentence.disagrees,
            )
            for sentence in support.sentences
        ),
        unsupported=support.unsupported,
        removed=support.removed,
        repair=support.repair,
    )


def language_remark(language: str) -> str:
    """Return the remark on a question that is not English."""
    return (
        f"The question seems to be in {language}. The search finds more for questions in English."
    )


def compression(took: Compression | None, spared: Savings | None) -> CompressionOutput | None:
    """Return the published form of a compression; ``None``: nothing was compressed.

    Args:
        took: its time and sizes.
        spared: its savings; ``None``: unknown.
    """
    if took is None:
        return None
    cost: Decimal | None = None
    if spared is not None and spared.calls is not None:
        cost = spared.calls + (spared.machine or 0)
    return CompressionOutput(
        compressor=took.compressor,
        extractive=took.extractive,
        kept=took.kept,
        sentences=took.sentences,
        seconds=took.seconds,
        usage=took.usage,
        tokens=spared.tokens if spared else None,
        shown_tokens=spared.shown if spared else None,
        saved_usd=spared.saved if spared else None,
        calls_usd=spared.calls if spared else None,
        machine_usd=spared.machine if spared else None,
        cost_usd=cost,
    )


def error_output(error: PosologyError, account: Account | None) -> ErrorOutput:
    """The published form of an error."""
    return ErrorOutput(error=error_body(error, account))


def error_body(error: PosologyError, account: Account | None) -> ErrorBody:
    """An error as data, with what was spent until then."""
    return ErrorBody(
        type=type(error).__name__,
        message=error.message,
        exit_code=error.exit_code,
        details={k: v for k, v in error.details.items() if k != "usage"},
        spending=spending(account) if account else None,
    )


def status(outcome: Answer | Refusal) -> Status:
    """Answered, unsupported or refused."""
    if isinstance(outcome, Refusal):
        return Status.REFUSED
    return Status.ANSWERED if outcome.supported else Status.UNSUPPORTED


def spending(account: Account) -> Spending:
    """Return the published form of an account."""
    return Spending(
        attempts=tuple(map(AttemptOutput.of, account.attempts)),
        usage=account.usage,
        usage_complete=all(attempt.usage is not None for attempt in account.attempts),
        cost_usd=account.cost,
        charged_usd=account.charged,
    )


def evidence(
    citations: Sequence[Citation], excerpts: Mapping[str, Excerpt]
) -> tuple[Evidence, ...]:
    """Citations with their sources and the whole sentences that they stand in.

    Args:
        citations: verified quotes.
        excerpts: passage id to the passage with its sentences.
    """
    return tuple(_evidence(citation, excerpts[citation.passage_id]) for citation in citations)


def standings(passages: Iterable[Source]) -> tuple[str, ...]:
    """Return remarks on passages of whose standing others than their own records have spoken, each once."""
    told = {one.id: one.flags for one in passages if any(f.source != OWN for f in one.flags)}
    return tuple(f"Standing of {name}: {standing(flags)}." for name, flags in told.items())


def left_out(withdrawn: Sequence[str]) -> tuple[str, ...]:
    """Return the remark on retracted articles that were found and are no evidence; none without any."""
    if not withdrawn:
        return ()
    one = (
        "1 retracted article was"
        if len(withdrawn) == 1
        else f"{len(withdrawn):,} retracted articles were"
    )
    return (f"{one} left out: {', '.join(withdrawn)}.",)


def unread(passages: Iterable[Passage]) -> tuple[str, ...]:
    """Return remarks on the passages, and on their documents, of which something could not be read; none if all were read whole."""
    found = list(passages)
    remarks = []
    if partly := [one.id for one in found if UNREADABLE in one.text]:
        remarks.append(
            f"Parts of these passages could not be read from their files: {', '.join(partly)}. Sentences with {UNREADABLE} are not quoted."
        )
    if missing := {one.parent or one.id: one.unread_pages for one in found if one.unread_pages}:
        counts = ", ".join(f"{count:,} of {name}" for name, count in missing.items())
        remarks.append(f"Pages that could not be read: {counts}. This answer lacks what they say.")
    return tuple(remarks)


def context(citation: Citation, sentences: Sequence[Sentence]) -> tuple[int, int]:
    """Start and end of the sentences that a citation stands in; its own where none covers it."""
    inside = [s for s in sentences if s.start < citation.end and citation.start < s.end]
    start = min([s.start for s in inside] + [citation.start])
    end = max([s.end for s in inside] + [citation.end])
    return start, end


def _disagreement(conflict: Conflict, excerpts: Mapping[str, Excerpt]) -> Disagreement:
    def positions(sides: Sequence[Side]) -> tuple[Position, ...]:
        return tuple(
            Position(
                passage=Source.of(excerpts[side.passage_id].passage),
                level=side.level,
                quotes=tuple(citation.quote for citation in side.citations),
            )
            for side in sides
        )

    return Disagreement(
        claim=conflict.claim,
        supporting=positions(conflict.supporting),
        opposing=positions(conflict.opposing),
        resolution=conflict.resolution,
        how=conflict.how,
    )


def _evidence(citation: Citation, excerpt: Excerpt) -> Evidence:
    start, end = context(citation, excerpt.sentences)
    pages = excerpt.passage.pages
    first, last = (None, None) if pages is None else pages.span(citation.start, citation.end)
    return Evidence(
        passage=Source.of(excerpt.passage),
        start=citation.start,
        end=citation.end,
        quote=citation.quote,
        context_start=start,
        context=excerpt.passage.text[start:end],
        page=first,
        last_page=last,
        ocr=pages is not None and pages.scanned(citation.start, citation.end),
        role=_role(citation, excerpt),
    )


def _role(citation: Citation, excerpt: Excerpt) -> SentenceRole | None:
    """Return the role of the sentence in which a quote begins."""
    starts = [sentence.start for sentence in excerpt.sentences]
    place = bisect_right(starts, citation.start) - 1
    return None if excerpt.roles is None or place < 0 else excerpt.roles[place]
