"""The story of one question: retrieve, decide, run the strategy, conclude; and once more where it was refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread

from orchestrator.question.decider import Decider, Means, refuse_declined, task_of
from orchestrator.question.embedding import Spend, encoded, seeing, unpaid, unseen
from orchestrator.question.request import Request
from posology.errors import VersionGone
from posology.index.search.filters import describe
from posology.index.search.retriever import Retriever
from posology.llm.accounting import Account
from posology.seams import Complete, Journal, Strategy
from posology.types import (
    DECLINE,
    Answer,
    Call,
    Decision,
    Dose,
    Filters,
    Query,
    Refusal,
    Retrieval,
    Task,
)
from strategies import make, takes_compressor
from strategies.evidence import truncate_task

if TYPE_CHECKING:
    from orchestrator.question.estimates.savings import Savings

#: gives the ``Complete`` of a model, accounting to a journal
Completes = Callable[[str, Journal], Complete]
#: what compressing saved of an outcome; ``None``: nothing was compressed, or nobody knows. Blocking
Spares = Callable[["Request", Retrieval, Answer | Refusal], "Savings | None"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Prepared:
    """A question, what was retrieved for it, and what was decided: nothing is spent yet."""

    request: Request
    retrieval: Retrieval
    decision: Decision
    #: does as was decided; ``None``: nothing is paid for
    strategy: Strategy | None
    #: seconds for retrieval, query embedding included
    retrieval_seconds: float
    #: ``None``: nobody knows
    spares: Spares | None = None

    @property
    def dose(self) -> Dose:
        """The dose that is next."""
        return (self.decision.then or self.decision).dose

    @property
    def task(self) -> Task:
        """What the strategy is asked to do."""
        return truncate_task(task_of(self.request, self.retrieval), self.dose)

    async def answer(self, complete: Complete) -> Answer | Refusal:
        """Give the dose.

        Raises:
            NothingAffordable: the policy declined.
            PosologyError: as the strategy raises.
        """
        refuse_declined(self.decision)
        if self.request.filters and not self.retrieval.passages:
            # a strategy would refuse, too, but knows of no filters
            return _nothing_within(self.request.filters, self.dose.strategy)
        assert self.strategy is not None
        return await self.strategy(self.task, complete)

    async def report(self, outcome: Answer | Refusal, account: Account, seconds: float) -> Report:
        """What became of it."""
        spared = None
        if outcome.compression is not None and self.spares is not None:
            # tokens are counted for it
            spared = await to_thread.run_sync(self.spares, self.request, self.retrieval, outcome)
        return Report(
            request=self.request,
            outcome=outcome,
            decision=self.decision,
            retrieval=self.retrieval,
            account=account,
            retrieval_seconds=self.retrieval_seconds,
            seconds=seconds,
            spared=spared,
        )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Report:
    """What became of a question."""

    request: Request
    outcome: Answer | Refusal
    decision: Decision
    retrieval: Retrieval
    #: every attempt at every model call
    account: Account
    #: seconds for retrieval, query embedding included
    retrieval_seconds: float
    #: seconds from question to outcome
    seconds: float
    #: what compressing saved; ``None``: nothing was compressed, or nobody knows
    spared: Savings | None = None


class Pipeline:
    """Runs questions. It holds no state of its own and may be shared by concurrent callers.

    Args:
        retriever: finds passages.
        decider: has a policy decide.
        completes: connects to a model.
    """

    def __init__(self, *, retriever: Retriever, decider: Decider, completes: Completes) -> None:
        self._retriever = retriever
        self._decider = decider
        self._completes = completes

    def spend(self, journal: Journal, tenant: str) -> Spend:
        """What pays for questions' vectors.

        Args:
            journal: spends.
            tenant: whose questions they are.
        """
        return Spend(tenant=tenant, complete=lambda model: self._completes(model, journal))

    async def unpaid(self, query: Query, tenant: str) -> Sequence[Call]:
        """The calls that a question's vector still has to be bought by, for a tenant."""
        return await unpaid(self._retriever.embedder, query.text, tenant)

    async def prepare(
        self,
        request: Request,
        *,
        means: Means | None = None,
        decided: Decision | None = None,
        spend: Spend | None = None,
    ) -> Prepared:
        """Retrieve and decide; no model is called but one that embeds the question, where that is paid for.

        Args:
            request: the question.
            means: looks up what may be spent on it; ``None``: nothing limits it.
            decided: what was decided for the same question before, and stands.
            spend: pays for the question's vector, where it has to be bought.

        Raises:
            VersionGone: the index does not hold the version that is asked for.
            PosologyError: the index cannot serve, there is no such strategy or policy, or what would pay for
                an answer is held by calls under way.
        """
        started = time.perf_counter()
        # before it is decided, which looks at what is left then
        vectors = await encoded(self._retriever.embedder, request.query.text, spend)
        retrieve = partial(
            self._retriever.retrieve,
            request.query,
            k=request.k,
            mode=seeing(request.mode, vectors),
            retracted=request.retracted,
            filters=request.filters,
            encoded=vectors,
        )
        version: int | str | None = request.index_version
        if version is None and decided is not None:
            # the calls that were paid for are those about its passages
            version = decided.versions.get("index")
        try:
            retrieval = await retrieve(version=version)
        except VersionGone:
            if request.index_version is not None:
                raise
            version = None
            retrieval = await retrieve()
        if len(retrieval.passages) < request.k and unseen(request.mode, vectors):
            # by meaning k are found whatever the question says: without its vector, any others of the index
            retrieval = await retrieve(version=version, mode="fused")
        seconds = time.perf_counter() - started
        decision = decided or await self._decider(request, retrieval, means=means)
        prepared = Prepared(
            request=request,
            retrieval=retrieval,
            decision=decision,
            strategy=None,
            retrieval_seconds=seconds,
            spares=self._decider.spared,
        )
        return replace(prepared, strategy=await self._strategy(prepared))

    async def further(
        self,
        prepared: Prepared,
        outcome: Answer | Refusal,
        *,
        means: Means | None = None,
        decided: Decision | None = None,
    ) -> Prepared | None:
        """Ask the policy again where a ladder was refused to the last; ``None`` where the outcome stands.

        Args:
            prepared: what was done.
            outcome: what became of it.
            means: looks up what may be spent still.
            decided: what was decided then for the same question before, and stands.

        Returns:
            The same question with the second decision; without a strategy where nothing more is paid for.
        """
        if not _refused_to_the_last(prepared, outcome):
            return None
        then = decided or await self._decider(
            prepared.request, prepared.retrieval, means=means, tried=outcome.rungs
        )
        again = replace(prepared, decision=replace(prepared.decision, then=then))
        return replace(again, strategy=await self._strategy(again))

    async def run(
        self,
        request: Request,
        account: Account,
        journal: Journal | None = None,
        *,
        tenant: str,
        means: Means | None = None,
    ) -> Report:
        """Answer one question in this process.

        The account is the caller's, so that what was spent is known when this raises, too.

        Args:
            request: the question.
            account: lists every attempt.
            journal: spends and hands on to the account; ``None``: nothing limits what is spent.
            tenant: whose question it is.
            means: looks up what may be spent; ``None``: the policy need not look at it.

        Raises:
            PosologyError: retrieval or a model call failed, or nothing is paid for; the account says what was
                spent.
        """
        started = time.perf_counter()
        # first, since a model without a key or a name need not be retrieved for
        complete = self._completes(request.model, journal or account)
        spend = self.spend(journal or account, tenant)
        prepared = await self.prepare(request, means=means, spend=spend)
        outcome = await prepared.answer(complete)
        further = await self.further(prepared, outcome, means=means)
        if further is not None:
            prepared = further
            outcome = await resume(further, outcome, complete)
        return await prepared.report(outcome, account, time.perf_counter() - started)

    async def _strategy(self, prepared: Prepared) -> Strategy | None:
        dose, request = prepared.dose, prepared.request
        if dose.strategy == DECLINE:
            return None
        build = partial(
            make, dose, choose=self._decider.compressors, partition_size=request.partition_size
        )
        # a compressor may load a model when it is first used
        return await to_thread.run_sync(build) if takes_compressor(dose.strategy) else build()


async def resume(
    prepared: Prepared, refused: Answer | Refusal, complete: Complete
) -> Answer | Refusal:
    """Go on after a ladder that was refused to the last.

    Args:
        prepared: with the second decision.
        refused: what the ladder gave.
        complete: spends.
    """
    if prepared.strategy is None:
        return not_resumed(prepared, refused)
    outcome = await prepared.strategy(prepared.task, complete)
    return replace(outcome, rungs=refused.rungs, compression=refused.compression)


def not_resumed(prepared: Prepared, refused: Answer | Refusal) -> Answer | Refusal:
    """The refusal that stands, since nothing more is paid for; it says so."""
    assert prepared.decision.then is not None
    return replace(refused, notes=(*refused.notes, prepared.decision.then.reason))


def _nothing_within(filters: Filters, strategy: str) -> Refusal:
    return Refusal(
        reason=f"No passage was found for this question among those that are asked for ({describe(filters)}): "
        "ask with fewer or wider filters.",
        strategy=strategy,
    )


def _refused_to_the_last(prepared: Prepared, outcome: Answer | Refusal) -> bool:
    dose = prepared.decision.dose
    if not dose.escalate or prepared.decision.then or not isinstance(outcome, Refusal):
        return False
    if outcome.filtered:
        return False
    planned = dose.rungs[-1] if dose.overlapping else sum(dose.rungs)
    read = max((rung.first + rung.passages for rung in outcome.rungs), default=0)
    # a ladder that the money ended has no money for more
    return 0 < read >= min(planned, len(prepared.retrieval.passages))
