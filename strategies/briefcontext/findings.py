"""Findings of BriefContext's partitions, merged for the reduce step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

from posology.errors import DeadlineExceeded, NothingAffordable, NothingRead, ProviderError
from posology.text.bounds import words_bound
from posology.types import (
    Conflict,
    Coverage,
    Excerpt,
    Extraction,
    Failure,
    FaultyQuote,
    Partition,
    PartitionMode,
    QuoteForm,
    Reduction,
    Refusal,
)
from prompts.fence import heading
from prompts.lengths import FINDING_SENTENCES, most_findings
from prompts.reduce import Sourced, ranks, render_finding
from strategies.briefcontext.answers import LONGEST, Group, decided, group

NAME = "briefcontext"
#: bytes of findings for one token of their bound; English has fewer than 5
BYTES_A_TOKEN = 7
#: tokens around a finding: its fences
_FENCES = 48
#: Tokens of a partition's findings for each passage, beyond those of the passage: a finding that quotes it whole always
#: fits, and so does a short one with a statement.
_MORE = 112
#: more tokens for each passage where partitions answer: the answer stands in each of their findings
_ANSWER = LONGEST + 16
#: statement of a finding that is too long with its own
_AS_QUOTED = "as quoted"

#: failures of calls that were not sent
_UNSENT = frozenset({Failure.CANCELLED, Failure.UNAFFORDABLE})
_WHY = {
    Failure.PROVIDER: "the model call failed",
    Failure.DEADLINE: "the deadline passed",
    Failure.CANCELLED: "the job was cancelled",
    Failure.UNAFFORDABLE: "the budget does not pay for it",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """The findings of all partitions, and the coverage."""

    #: one source each, in rank order of the partitions
    findings: tuple[Sourced, ...]
    unread: tuple[Partition, ...]
    #: with the reduce call counted if there are findings
    coverage: Coverage
    #: reason → number of partitions that could not be read
    failures: dict[Failure, int]
    dropped_quotes: int
    #: quotes that are not in the passage that the model named
    faulty_quotes: tuple[FaultyQuote, ...]
    notes: tuple[str, ...]
    #: answers of partitions that differ, or the one; empty: findings were asked for
    groups: tuple[Group, ...] = ()
    #: conflict of those answers that the rule resolved, whose losing findings are left out; ``None``: it did not decide
    ruled: Conflict | None = None

    @property
    def all_failed(self) -> bool:
        """Whether there were partitions and none could be read."""
        return 0 < self.coverage.partitions == self.coverage.failed


def gather(asked: Reduction) -> Reading:
    """Gather the extractions in the order of their partitions.

    Raises:
        ValueError: there is not one extraction a partition, or one cites text that its partition does not hold.
    """
    by_index = {extraction.partition: extraction for extraction in asked.extractions}
    if len(by_index) != len(asked.extractions) or by_index.keys() != {
        part.index for part in asked.partitions
    }:
        raise ValueError("there must be one extraction for each partition")
    pairs = [(p, by_index[p.index]) for p in sorted(asked.partitions, key=lambda p: p.index)]
    failed = [(p, e.failure) for p, e in pairs if e.failure is not None]
    sourced = [(p, tuple(_sourced(p, e))) for p, e in pairs if e.failure is None]
    kept = [(p, _within(p, found, asked)) for p, found in sourced]
    findings = every = tuple(one for _, found in kept for one in found)
    groups = group(findings)
    ruled = decided(groups) if asked.mode == "answer-by-rule" else None
    if ruled is not None:
        prevails = {side.passage_id for side in ruled.supporting}
        findings = tuple(one for one in findings if one.passage.id in prevails)
    coverage = Coverage(
        partitions=len(pairs),
        found=sum(e.failure is None and bool(e.findings) for _, e in pairs),
        empty=sum(e.empty for _, e in pairs),
        failed=len(failed),
        calls=sum(e.failure not in _UNSENT for _, e in pairs) + bool(findings),
    )
    return Reading(
        findings=findings,
        unread=tuple(p for p, _ in failed),
        coverage=coverage,
        failures=dict(Counter(failure for _, failure in failed)),
        dropped_quotes=sum(e.dropped_quotes for _, e in pairs),
        faulty_quotes=tuple(one for _, e in pairs for one in e.faulty_quotes),
        notes=(
            *_unread_notes(failed),
            *_dropped_notes([e for _, e in pairs]),
            *_left_out_notes(sum(len(found) for _, found in sourced) - len(every)),
            *(f"Of {ranks(p)}: {note}" for p, e in pairs for note in e.notes),
            *_count_notes(coverage),
        ),
        groups=groups,
        ruled=ruled,
    )


def most_tokens(part: Partition, quotes: QuoteForm, mode: PartitionMode = "extract") -> int:
    """Return the bound on the tokens of a partition's findings: about that of its passages, so that reducing pays.

    Where replies name sentences, it is that of the longest ones, as many as all findings together may name.
    Tokens are those of :func:`~posology.text.bounds.words_bound`.
    """
    passages = [excerpt.passage for excerpt in part.excerpts]
    more = _MORE if mode == "extract" else _MORE + _ANSWER
    around = sum(more + words_bound("\n".join(heading(one))) for one in passages)
    if quotes == "copied":
        return around + sum(words_bound(one.text) for one in passages)
    named = FINDING_SENTENCES * most_findings(len(passages))
    sentences = (one.of(e.passage.text) for e in part.excerpts for one in e.sentences)
    return around + sum(nlargest(named, map(words_bound, sentences)))


def nothing_read(
    asked: Reduction, read: Reading
) -> ProviderError | DeadlineExceeded | NothingAffordable:
    """Return the error of a question of which no partition could be read."""
    if set(read.failures) == {Failure.DEADLINE}:
        return DeadlineExceeded(
            "the deadline passed before any passage was read: allow more time, or ask for fewer passages",
            seconds=None,
        )
    if set(read.failures) == {Failure.UNAFFORDABLE}:
        return NothingAffordable(
            f"the budget pays for none of {read.coverage.partitions} partitions: raise it, or ask for "
            "fewer passages or a cheaper model",
            partitions=read.coverage.partitions,
        )
    counts = {str(failure): n for failure, n in sorted(read.failures.items())}
    said = ", ".join(f"{n} {failure}" for failure, n in counts.items())
    return NothingRead(
        f"none of {read.coverage.partitions} partitions could be read ({said}): find the reasons in "
        "the attempts of this job, correct them, and ask again",
        provider=asked.model.partition(":")[0],
        model=asked.model,
        failures=counts,
    )


def nothing_found(asked: Reduction, read: Reading) -> Refusal:
    """Return the refusal of a question for which no partition has a finding."""
    if not asked.partitions:
        reason = "No passage was found for this question."
    elif read.coverage.partial:
        reason = (
            "None of the passages that could be read is relevant to this question; "
            f"{read.coverage.failed} of {read.coverage.partitions} partitions could not be read."
        )
    else:
        reason = "None of the passages is relevant to this question."
    return Refusal(reason=reason, strategy=NAME, notes=read.notes, coverage=read.coverage)


def quoted(findings: Sequence[Sourced]) -> tuple[Excerpt, ...]:
    """Return the findings as excerpts: one each, whose sentences are the quotes."""
    return tuple(finding.excerpt for finding in findings)


def _sourced(part: Partition, extraction: Extraction) -> Iterator[Sourced]:
    """Yield a finding of several passages once for each, since a side of a conflict is a source."""
    shown = {e.passage.id: (part.first_rank + i, e.passage) for i, e in enumerate(part.excerpts)}
    for finding in extraction.findings:
        for passage_id in dict.fromkeys(c.passage_id for c in finding.citations):
            citations = tuple(c for c in finding.citations if c.passage_id == passage_id)
            if passage_id not in shown or any(
                shown[passage_id][1].text[c.start : c.end] != c.quote for c in citations
            ):
                raise ValueError(f"a finding cites what {ranks(part)} do not hold: {passage_id}")
            rank, passage = shown[passage_id]
            yield Sourced(
                statement=finding.statement,
                passage=passage,
                rank=rank,
                citations=citations,
                answer=extraction.answer,
            )


def _within(part: Partition, found: Sequence[Sourced], asked: Reduction) -> tuple[Sourced, ...]:
    """Return the findings of a partition that its bound has room for, in their order.

    One that is too long is kept by its first quote alone, if there is room for that.
    """
    left = most_tokens(part, asked.quotes, asked.mode)
    room = BYTES_A_TOKEN * left
    findings = []
    for finding in found:
        short = replace(finding, statement=_AS_QUOTED, citations=finding.citations[:1])
        for one in (finding, short):
            text = render_finding(one)
            tokens = _FENCES + words_bound(text)
            size = _FENCES + len(text.encode("utf-8", "surrogatepass"))
            if tokens <= left and size <= room:
                findings.append(one)
                left, room = left - tokens, room - size
                break
    return tuple(findings)


def _left_out_notes(findings: int) -> tuple[str, ...]:
    if not findings:
        return ()
    return (
        f"{findings} findings were left out: the findings of their partition were longer than its limit.",
    )


def _unread_notes(failed: Sequence[tuple[Partition, Failure]]) -> tuple[str, ...]:
    if not failed:
        return ()
    said = "; ".join(f"{ranks(p)} ({_WHY[failure]})" for p, failure in failed)
    return (f"This answer is partial: some passages could not be read: {said}.",)


def _dropped_notes(extractions: Sequence[Extraction]) -> tuple[str, ...]:
    findings = sum(e.dropped_findings for e in extractions)
    if not findings:
        return ()
    return (f"{findings} findings were dropped because none of their quotes could be verified.",)


def _count_notes(coverage: Coverage) -> tuple[str, ...]:
    if not coverage.partitions:
        return ()
    return (f"The passages were read in {coverage.partitions} partitions.",)
