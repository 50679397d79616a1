"""BriefContext: map-reduce RAG, for questions whose evidence a long context would hide.

Section 5.2 of the paper: divide the passages (*ContextMap*, algorithm 1), extract from each part what bears on the
question (equation 2), and reduce the findings to one answer (*ContextReduce*, equation 3, algorithm 2). The three
steps are functions of values, so that a queue can carry them; :class:`BriefContext` runs them in one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from posology.concurrency import map_concurrently
from posology.errors import (
    BudgetExhausted,
    DeadlineExceeded,
    HeadroomReserved,
    JobCancelled,
    ProviderError,
)
from posology.llm.models.effort import effort_of, reasoning_tokens
from posology.seams import Complete, Guess
from posology.types import (
    Answer,
    Call,
    Completion,
    Extract,
    Extraction,
    Failure,
    Finding,
    Finish,
    Partition,
    PlannedCall,
    Query,
    Reduction,
    Refusal,
    Retrieved,
    Stage,
    Task,
)
from prompts.extract import (
    AnsweringExtract,
    CitedAnsweringExtract,
    CitedExtract,
    ExtractReply,
    extract_schema,
    render_extract,
)
from prompts.lengths import FINDING_SENTENCES, reply_tokens
from prompts.reduce import ranks, reduce_schema, render_reduce
from strategies.briefcontext import findings
from strategies.briefcontext.answers import LONGEST
from strategies.briefcontext.conclusion import conclude
from strategies.briefcontext.findings import NAME
from strategies.briefcontext.plan import SHORT, findings_of, plan_reduce
from strategies.citing import Claim, bear_out
from strategies.evidence import check, remarks, whole
from strategies.single_call import planned

__all__ = [
    "DEFAULT_SIZE",
    "NAME",
    "BriefContext",
    "extract",
    "extract_call",
    "partition",
    "reduce",
    "reduce_call",
]

#: Passages a partition, at most. Figures: decision 7.
DEFAULT_SIZE = 3

_FAILURES: tuple[tuple[type[Exception], Failure], ...] = (
    (ProviderError, Failure.PROVIDER),
    (DeadlineExceeded, Failure.DEADLINE),
    (JobCancelled, Failure.CANCELLED),
    (BudgetExhausted, Failure.UNAFFORDABLE),
)


def partition(passages: Sequence[Retrieved], size: int) -> tuple[Partition, ...]:
    """Divide passages in rank order into the fewest parts of at most ``size`` passages.

    Algorithm 1, except that the remainder is spread over the parts, which are to be of equal size (section 5.2): 16
    passages by 3 make 3, 3, 3, 3, 2 and 2.

    Raises:
        ValueError: ``size`` is less than 1.
    """
    if size < 1:
        raise ValueError(f"a partition must hold at least one passage (got {size})")
    excerpts = whole(passages)
    count = -(-len(excerpts) // size)
    parts = []
    start = 0
    for index in range(count):
        end = start + len(excerpts) // count + (index < len(excerpts) % count)
        parts.append(Partition(index=index, first_rank=start, excerpts=excerpts[start:end]))
        start = end
    return tuple(parts)


def extract_call(asked: Extract) -> Call:
    """Render the call that reads one partition."""
    excerpts = asked.partition.excerpts
    rendered = render_extract(asked.query, excerpts, asked.quotes, asked.mode, own=asked.prompts)
    effort = effort_of(asked.model, Stage.EXTRACT, asked.effort)
    return Call(
        stage=Stage.EXTRACT,
        model=asked.model,
        query=asked.query,
        excerpts=excerpts,
        messages=rendered.messages,
        prompt=rendered.prompt,
        schema=extract_schema(len(excerpts), asked.quotes, asked.mode, asked.query.choices),
        quotes=asked.quotes,
        strategy=NAME,
        effort=effort,
        max_tokens=reply_tokens(
            Stage.EXTRACT,
            asked.max_tokens,
            quotes=asked.quotes,
            reasoning=reasoning_tokens(asked.model, effort),
        ),
    )


def reduce_call(asked: Reduction) -> Call | None:
    """Render the call that makes one answer of extractions; ``None`` if they found nothing."""
    read = findings.gather(asked)
    return _reduce_call(asked, read) if read.findings else None


async def extract(asked: Extract, complete: Complete) -> Extraction:
    """Extract findings with verified quotes from one partition.

    A call that failed for good is a typed result, since the other partitions are still worth reading. It records the
    error's class only; the error's text may quote anything.

    Raises:
        Exception: any error that is not this call's failure (an unreachable store, work that another worker took
            over, a defect); cancellation passes through, too.
    """
    part = asked.partition
    try:
        completion = await complete(extract_call(asked))
    except tuple(kind for kind, _ in _FAILURES) as error:
        failure = next(failure for kind, failure in _FAILURES if isinstance(error, kind))
        return Extraction(partition=part.index, failure=failure, error=type(error).__name__)
    return _extraction(asked, completion)


async def reduce(asked: Reduction, complete: Complete) -> Answer | Refusal:
    """Make one answer of all extractions. Without findings there is no call.

    The result depends on the extractions alone, not on the order in which they were completed.

    Raises:
        ProviderError: the call failed; or, as :class:`~posology.errors.NothingRead`, no partition could be read.
        DeadlineExceeded: no partition could be read in time.
        NothingAffordable: the budget paid for no partition.
        BudgetExhausted: the budget does not pay for the call.
        ValueError: there is not one extraction a partition, or one cites text that its partition does not hold.
    """
    read = findings.gather(asked)
    if read.all_failed:
        raise findings.nothing_read(asked, read)
    if not read.findings:
        return findings.nothing_found(asked, read)
    return conclude(asked.query, await complete(_reduce_call(asked, read)), read)


class BriefContext:
    """Reads partitions at the same time, then reduces.

    Makes one call a partition and one more (equation 5).

    Args:
        size: passages a partition, at most.
    """

    def __init__(self, *, size: int = DEFAULT_SIZE) -> None:
        if size < 1:
            raise ValueError(f"a partition must hold at least one passage (got {size})")
        self._size = size

    def partitions(self, task: Task) -> tuple[Partition, ...]:
        """Divide the passages, see :func:`partition`; workers read the parts by :func:`extract` and :func:`reduce`."""
        return partition(task.retrieval.passages, self._size)

    def count(self, task: Task) -> int:
        """Return one call a partition and one more."""
        return -(-len(task.retrieval.passages) // self._size) + 1

    def calls(self, task: Task, guess: Guess) -> Iterable[PlannedCall]:
        """Plan the extract calls and the reduce call; none without passages."""
        parts = self.partitions(task)
        if not parts:
            return
        extracts = [extract_call(_asked(task, part)) for part in parts]
        for call in extracts:
            yield planned(call, guess)
        extractions = tuple(
            Extraction(
                partition=part.index,
                findings=tuple(
                    Finding(statement=one.statement, citations=one.citations)
                    for one in findings_of([part])
                ),
                answer=None if task.partitions == "extract" else SHORT,
            )
            for part in parts
        )
        reduce = reduce_call(_reduction(task, parts, extractions))
        assert reduce is not None
        yield plan_reduce(reduce, extracts[0], parts, guess, task)

    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal:
        """Answer from the passages in their order.

        Raises:
            ProviderError: the reduce call failed, or every extraction did.
            DeadlineExceeded: the deadline passed.
        """
        parts = self.partitions(task)

        async def read(part: Partition) -> Extraction:
            try:
                return await extract(_asked(task, part), complete)
            except HeadroomReserved as error:
                # other calls in flight are paid for already, and are reduced with the rest
                return Extraction(
                    partition=part.index,
                    failure=Failure.UNAFFORDABLE,
                    error=type(error).__name__,
                )

        extractions = tuple(await map_concurrently(read, parts, limit=len(parts)))
        return await reduce(_reduction(task, parts, extractions), complete)


def _asked(task: Task, part: Partition) -> Extract:
    return Extract(
        query=task.query,
        partition=part,
        model=task.model,
        max_tokens=task.max_tokens,
        effort=task.effort,
        quotes=task.quotes,
        mode=task.partitions,
        prompts=task.prompts,
    )


def _reduction(
    task: Task, parts: tuple[Partition, ...], extractions: tuple[Extraction, ...]
) -> Reduction:
    return Reduction(
        query=task.query,
        partitions=parts,
        extractions=extractions,
        model=task.model,
        max_tokens=task.max_tokens,
        effort=task.effort,
        quotes=task.quotes,
        mode=task.partitions,
        prompts=task.prompts,
    )


def _reduce_call(asked: Reduction, read: findings.Reading) -> Call:
    rendered = render_reduce(
        asked.query,
        read.findings,
        read.unread,
        asked.quotes,
        asked.mode,
        own=asked.prompts,
    )
    effort = effort_of(asked.model, Stage.REDUCE, asked.effort)
    return Call(
        stage=Stage.REDUCE,
        model=asked.model,
        query=asked.query,
        excerpts=findings.quoted(read.findings),
        messages=rendered.messages,
        prompt=rendered.prompt,
        schema=reduce_schema(asked.query.choices, len(read.findings), asked.quotes, asked.mode),
        quotes=asked.quotes,
        strategy=NAME,
        effort=effort,
        max_tokens=reply_tokens(
            Stage.REDUCE,
            asked.max_tokens,
            quotes=asked.quotes,
            reasoning=reasoning_tokens(asked.model, effort),
        ),
    )


def _extraction(asked: Extract, completion: Completion) -> Extraction:
    part, reply = asked.partition, completion.parsed
    if completion.finish is Finish.FILTERED or not isinstance(reply, ExtractReply | CitedExtract):
        # a safety system declined: the partition is unread and may hold anything
        return Extraction(
            partition=part.index,
            failure=Failure.PROVIDER,
            notes=(f"The provider's safety system declined to read {ranks(part)}.",),
        )
    if not reply.found:
        set_aside = (
            f"The model reported 'nothing found', so {len(reply.findings)} findings were ignored."
        )
        return Extraction(partition=part.index, notes=(set_aside,) if reply.findings else ())
    if isinstance(reply, CitedExtract):
        claims = [Claim.of(said.statement.strip(), said.sentences) for said in reply.findings]
        checked = [
            (claim.text, bear_out(claim, part.excerpts, most=FINDING_SENTENCES)) for claim in claims
        ]
    else:
        checked = [
            (said.statement.strip(), check(said.quotes, part.excerpts)) for said in reply.findings
        ]
    copied = isinstance(reply, ExtractReply)
    verified = [(said, found) for said, found in checked if found.citations]
    return Extraction(
        partition=part.index,
        answer=_answer(asked.query, reply) if verified else None,
        findings=tuple(
            Finding(
                statement=said or found.citations[0].quote,
                citations=found.citations,
            )
            for said, found in verified
        ),
        dropped_quotes=sum(len(found.dropped) for _, found in checked),
        dropped_findings=len(checked) - len(verified),
        faulty_quotes=tuple(dict.fromkeys(one for _, found in checked for one in found.faulty)),
        notes=tuple(
            dict.fromkeys(
                note
                for _, found in checked
                if copied or not found.citations
                for note in remarks(found)
            )
        ),
    )


def _answer(query: Query, reply: ExtractReply | CitedExtract) -> str | None:
    """Return the answer of a partition: a verdict where one is asked for, else a few words."""
    if not isinstance(reply, AnsweringExtract | CitedAnsweringExtract):
        return None
    if query.choices:
        return reply.choice if reply.choice in query.choices else None
    return " ".join(reply.answer.split())[:LONGEST].strip() or None
