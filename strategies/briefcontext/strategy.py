"""BriefContext: map-reduce RAG, for questions whose evidence a long context would hide.

Section 5.2 of the paper: the passages are divided (*ContextMap*, algorithm 1), each part is asked for
what bears on the question (equation 2), and the findings are made one answer (*ContextReduce*,
equation 3, algorithm 2). The three steps are functions of values, so that a queue can carry them;
:class:`BriefContext` runs them in one process.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from posology.errors import (
    BudgetExhausted,
    DeadlineExceeded,
    HeadroomReserved,
    JobCancelled,
    ProviderError,
)
from posology.seams import Complete
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
    Reduction,
    Refusal,
    Retrieved,
    Stage,
    Task,
)
from prompts.extract import ExtractReply, render_extract
from prompts.lengths import reply_tokens
from prompts.reduce import ranks, reduce_schema, render_reduce
from strategies.briefcontext import findings
from strategies.briefcontext.conclusion import conclude
from strategies.briefcontext.findings import NAME
from strategies.evidence import check, remarks, whole

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
    """Divide passages in rank order into as few parts of at most ``size`` as hold them all.

    Algorithm 1, but for the last part: it is not left with the remainder, since parts are to be of
    equal size (section 5.2). 16 passages by 3 make 3, 3, 3, 3, 2 and 2.

    Raises:
        ValueError: ``size`` is less than 1.
    """
    if size < 1:
        raise ValueError(f"a partition holds at least one passage, not {size}")
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
    """The call that reads one partition."""
    excerpts = asked.partition.excerpts
    rendered = render_extract(asked.query, excerpts)
    return Call(
        stage=Stage.EXTRACT,
        model=asked.model,
        query=asked.query,
        excerpts=excerpts,
        messages=rendered.messages,
        prompt=rendered.prompt,
        schema=ExtractReply,
        strategy=NAME,
        max_tokens=reply_tokens(Stage.EXTRACT, asked.max_tokens),
    )


def reduce_call(asked: Reduction) -> Call | None:
    """The call that makes one answer of extractions; ``None`` where they gave nothing."""
    read = findings.gather(asked)
    return _reduce_call(asked, read) if read.findings else None


async def extract(asked: Extract, complete: Complete) -> Extraction:
    """Ask for what one partition says on the question, with quotes, and keep what stands.

    A call that failed for good is a typed result: the other partitions are still worth reading. What
    went wrong is told by the error's class alone; its text may quote anything.

    Raises:
        Exception: what is no failure of this call (a store out of reach, work taken over by another,
            a defect) passes through; so does cancellation.
    """
    part = asked.partition
    try:
        completion = await complete(extract_call(asked))
    except tuple(kind for kind, _ in _FAILURES) as error:
        failure = next(failure for kind, failure in _FAILURES if isinstance(error, kind))
        return Extraction(partition=part.index, failure=failure, error=type(error).__name__)
    return _extraction(part, completion)


async def reduce(asked: Reduction, complete: Complete) -> Answer | Refusal:
    """Make one answer of what the partitions gave. Nothing is spent when they gave nothing.

    The result depends on the extractions alone, not on the order in which they were completed.

    Raises:
        ProviderError: the call failed; or, as :class:`~posology.errors.NothingRead`, no partition
            could be read.
        DeadlineExceeded: no partition could be read in time.
        NothingAffordable: the budget paid for no partition.
        BudgetExhausted: it does not pay for the call.
        ValueError: the extractions are not one a partition, or cite what theirs does not hold.
    """
    read = findings.gather(asked)
    if read.all_failed:
        raise findings.nothing_read(asked, read)
    if not read.findings:
        return findings.nothing_found(asked, read)
    return conclude(asked.query, await complete(_reduce_call(asked, read)), read)


class BriefContext:
    """Reads partitions at the same time, then reduces.

    Costs one call a partition and one more (equation 5).

    Args:
        size: passages a partition, at most.
    """

    def __init__(self, *, size: int = DEFAULT_SIZE) -> None:
        if size < 1:
            raise ValueError(f"a partition holds at least one passage, not {size}")
        self._size = size

    def partition(self, passages: Sequence[Retrieved]) -> tuple[Partition, ...]:
        """The parts that it reads, see :func:`partition`; for callers that have them read elsewhere."""
        return partition(passages, self._size)

    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal:
        """Answer from the passages in their order.

        Raises:
            ProviderError: the reduce call failed, or every extraction did.
            DeadlineExceeded: the time was over.
        """
        parts = self.partition(task.retrieval.passages)
        done: list[Extraction] = []
        raised: list[Exception] = []

        async def read(part: Partition) -> None:
            asked = Extract(
                query=task.query, partition=part, model=task.model, max_tokens=task.max_tokens
            )
            try:
                done.append(await extract(asked, complete))
            except HeadroomReserved as error:
                # others under way are paid for already, and may be read with the rest
                done.append(
                    Extraction(
                        partition=part.index,
                        failure=Failure.UNAFFORDABLE,
                        error=type(error).__name__,
                    )
                )
            except Exception as error:  # noqa: BLE001 - raised again below, out of the task group's wrapping
                raised.append(error)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for part in parts:
                group.start_soon(read, part)
        if raised:
            raise raised[0]
        return await reduce(
            Reduction(
                query=task.query,
                partitions=parts,
                extractions=tuple(sorted(done, key=lambda one: one.partition)),
                model=task.model,
                max_tokens=task.max_tokens,
            ),
            complete,
        )


def _reduce_call(asked: Reduction, read: findings.Reading) -> Call:
    rendered = render_reduce(asked.query, read.findings, read.unread)
    return Call(
        stage=Stage.REDUCE,
        model=asked.model,
        query=asked.query,
        excerpts=findings.quoted(read.findings),
        messages=rendered.messages,
        prompt=rendered.prompt,
        schema=reduce_schema(asked.query.choices),
        strategy=NAME,
        max_tokens=reply_tokens(Stage.REDUCE, asked.max_tokens),
    )


def _extraction(part: Partition, completion: Completion) -> Extraction:
    reply = completion.parsed
    if completion.finish is Finish.FILTERED or not isinstance(reply, ExtractReply):
        # what a safety system declined to read was not read, and may hold anything
        return Extraction(
            partition=part.index,
            failure=Failure.PROVIDER,
            notes=(f"The provider's safety system declined to read {ranks(part)}.",),
        )
    if not reply.found:
        set_aside = f"{len(reply.findings)} findings that came with 'nothing found' were set aside."
        return Extraction(partition=part.index, notes=(set_aside,) if reply.findings else ())
    checked = [(said, check(said.quotes, part.excerpts)) for said in reply.findings]
    kept = [(said, found) for said, found in checked if found.citations]
    return Extraction(
        partition=part.index,
        findings=tuple(
            Finding(
                statement=said.statement.strip() or found.citations[0].quote,
                citations=found.citations,
            )
            for said, found in kept
        ),
        dropped_quotes=sum(len(found.dropped) for _, found in checked),
        dropped_findings=len(checked) - len(kept),
        notes=tuple(dict.fromkeys(note for _, found in checked for note in remarks(found))),
    )
