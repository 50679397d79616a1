"""The driver of one question within one process: retrieve, decide, run the strategy, conclude."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from anyio import to_thread

from orchestrator.compressors import Compressors
from orchestrator.question.answering import Answerer, Patience
from orchestrator.question.checks import check_awaited
from orchestrator.question.decider import Decider
from orchestrator.question.embedding import Spend, encoded, seeing, unpaid, unseen
from orchestrator.question.machine import (
    Answering,
    Concluded,
    Escalating,
    Outcome,
    Prepared,
    Remaining,
    State,
    answered,
    begin,
    escalated,
    task_of,
)
from orchestrator.question.request import Request
from orchestrator.settings import DEFAULT_COMPRESSOR
from posology.errors import IndexFault, VersionGone
from posology.index.search.retriever import Retriever
from posology.llm.accounting import Account
from posology.llm.calls import CAPACITY_TIMEOUT, Caller, Told
from posology.llm.models.families import tier_of
from posology.seams import Complete, Journal, Recall, Strategy
from posology.types import DECLINE, Call, Decision, Dose, Lane, Query, Refusal, Retrieval, Task
from strategies import Choose, make, takes_compressor
from strategies.evidence import whole

if TYPE_CHECKING:
    from orchestrator.question.estimates.costs import Estimator
    from orchestrator.question.estimates.savings import Savings


class Completes(Protocol):
    """Returns the ``Complete`` of a model for a caller, with a journal as its account."""

    def __call__(
        self,
        model: str,
        journal: Journal,
        caller: Caller = Caller(),  # noqa: B008 - a frozen value
        /,
    ) -> Complete: ...


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Report:
    """The outcome of a question, with its account."""

    request: Request
    outcome: Outcome
    decision: Decision
    retrieval: Retrieval
    #: every attempt at every model call
    account: Account
    #: seconds for retrieval, query embedding included
    retrieval_seconds: float
    #: seconds from question to outcome
    seconds: float
    #: savings of compressing; ``None``: nothing was compressed, or they are unknown
    spared: Savings | None = None
    #: ids of retracted articles that were left out of the passages of a refusal
    withdrawn: tuple[str, ...] = ()


class Pipeline:
    """Answers questions. It holds no state of its own; concurrent callers may share it.

    Args:
        retriever: finds passages.
        decider: has a policy decide.
        completes: connects to a model.
        compressors: returns compressors; ``None``: those without configuration, the pruner by default.
        estimator: knows prices, for the savings of compressing; ``None``: they are unknown.
        seconds: predicted seconds of a compression, above which it is refused; ``None``: no limit.
        answerer: runs strategies, and checks the sentences of their answers; ``None``: by rules alone.
    """

    def __init__(
        self,
        *,
        retriever: Retriever,
        decider: Decider,
        completes: Completes,
        compressors: Choose | None = None,
        estimator: Estimator | None = None,
        seconds: float | None = None,
        answerer: Answerer | None = None,
    ) -> None:
        #: finds passages
        self.retriever = retriever
        self._decider = decider
        self._completes = completes
        self._compressors = compressors or Compressors(DEFAULT_COMPRESSOR)
        self._estimator = estimator
        self._seconds = seconds
        self._answerer = answerer or Answerer()

    def spend(self, journal: Journal, tenant: str, recall: Recall | None = None) -> Spend:
        """Return what pays for the vectors of questions.

        Args:
            journal: takes the account.
            tenant: tenant that pays.
            recall: replies to the same work; ``None``: there are none.
        """
        caller = Caller(recall=recall)
        return Spend(tenant=tenant, complete=lambda model: self._completes(model, journal, caller))

    async def unpaid(self, query: Query, tenant: str) -> Sequence[Call]:
        """Return the calls that a tenant still has to pay for a question's vector."""
        return await unpaid(self.retriever.embedder, query.text, tenant)

    async def prepare(
        self,
        request: Request,
        *,
        remaining: Remaining | None = None,
        decided: Decision | None = None,
        spend: Spend | None = None,
    ) -> Prepared:
        """Retrieve and decide. Calls no model, except to embed the question if its vector has to be paid for.

        Args:
            request: the question.
            remaining: returns the remaining budget; ``None``: no limit.
            decided: decision that was recorded for the same question and stands; ``None``: the policy decides.
            spend: pays for the question's vector; ``None``: it is not paid for.

        Raises:
            VersionGone: the index does not hold the requested version.
            PosologyError: the index cannot serve, the strategy or policy is unknown, or calls in flight have
                reserved the budget for an answer.
        """
        started = time.perf_counter()
        # before the decision, which depends on the remaining budget
        vectors = await encoded(self.retriever.embedder, request.query.text, spend)
        retrieve = partial(
            self.retriever.retrieve,
            request.query,
            k=request.k,
            mode=seeing(request.mode, vectors),
            retracted=request.retracted,
            filters=request.filters,
            encoded=vectors,
        )
        version: int | str | None = request.index_version
        if version is None and decided is not None:
            # replies that were paid for are about the passages of this version
            version = decided.versions.get("index")
        try:
            retrieval = await retrieve(version=version)
        except VersionGone:
            if request.index_version is not None:
                raise
            version = None
            retrieval = await retrieve()
        if len(retrieval.passages) < request.k and unseen(request.mode, vectors):
            # a search by meaning always finds k: without the question's vector, fill up with any passages
            retrieval = await retrieve(version=version, mode="fused")
        seconds = time.perf_counter() - started
        decision = decided or await self._decider(request, retrieval, remaining=remaining)
        return Prepared(
            request=request,
            retrieval=retrieval,
            decision=decision,
            strategy=await self._strategy(decision.dose, request),
            retrieval_seconds=seconds,
            remaining=remaining,
        )

    async def foreseen(self, request: Request, retrieval: Retrieval, dose: Dose) -> Task:
        """Return the task over all passages that a dose may read, a second search's among them; calls no model.

        Args:
            request: the question.
            retrieval: the first search.
            dose: what the policy decided on it.

        Raises:
            PosologyError: the index cannot serve, or no longer has the version of the first search.
        """
        if dose.search:
            retrieval = await self._further(request, retrieval)
        return task_of(request, retrieval)

    async def _further(self, request: Request, before: Retrieval) -> Retrieval:
        return await self.retriever.further(before, request.k, retracted=request.retracted)

    async def advance(
        self,
        state: Answering | Escalating,
        complete: Complete,
        *,
        decided: Decision | None = None,
        distributed: bool = False,
        seconds: Callable[[], float] | None = None,
    ) -> State:
        """Do what a state asks for, and return the next one.

        Args:
            state: the state.
            complete: makes calls.
            decided: second decision that was recorded for the same question and stands; ``None``: the policy
                decides.
            distributed: whether other workers can read partitions, and the question is requeued if it must wait.
            seconds: returns the seconds that the repair of an answer may take; ``None``: any.

        Raises:
            NothingAffordable: the policy declined.
            PosologyError: a model call failed.
        """
        if isinstance(state, Answering):
            outcome = await self._answerer(
                state.run,
                complete,
                request=state.prepared.request,
                excerpts=whole(state.prepared.retrieval.passages),
                patience=Patience(seconds=seconds, requeued=distributed),
            )
            return answered(state, outcome)
        prepared = state.prepared
        if prepared.decision.dose.search:
            started = time.perf_counter()
            retrieval = await self._further(prepared.request, prepared.retrieval)
            took = prepared.retrieval_seconds + time.perf_counter() - started
            prepared = replace(prepared, retrieval=retrieval, retrieval_seconds=took)
        then = decided or await self._decider(
            prepared.request,
            prepared.retrieval,
            remaining=prepared.remaining,
            tried=state.before.rungs,
        )
        strategy = await self._strategy(then.dose, prepared.request)
        decision = replace(prepared.decision, then=then)
        return escalated(
            state,
            replace(prepared, decision=decision, strategy=strategy),
            distributed=distributed,
        )

    async def run(
        self,
        request: Request,
        account: Account,
        journal: Journal | None = None,
        *,
        tenant: str,
        remaining: Remaining | None = None,
        recall: Recall | None = None,
        told: Told | None = None,
    ) -> Report:
        """Answer one question in this process.

        The account is the caller's, so that the spending is known if this raises, too.

        Args:
            request: the question.
            account: lists every attempt.
            journal: reserves budget and forwards to the account; ``None``: no limit on spending.
            tenant: tenant that pays.
            remaining: returns the remaining budget; ``None``: the policy decides without it.
            recall: replies that an interrupted run got to the same question; ``None``: there are none.
            told: takes the progress of replies; ``None``: nothing does.

        Raises:
            InvalidQuery: the tier is batch.
            PosologyError: retrieval or a model call failed, or the budget pays for no dose; the account has the
                spending.
        """
        check_awaited(request.tier)
        started = time.perf_counter()
        # first: without a key for the model there is no need to retrieve
        caller = replace(_caller(request.tier), recall=recall, told=told)
        complete = self._completes(request.model, journal or account, caller)
        spend = self.spend(journal or account, tenant, recall)
        state: State = begin(await self.prepare(request, remaining=remaining, spend=spend))
        while isinstance(state, Answering | Escalating):
            state = await self.advance(state, complete)
        assert isinstance(state, Concluded)
        return await self.report(state, account, time.perf_counter() - started)

    async def report(self, state: Concluded, account: Account, seconds: float) -> Report:
        """Return the report of a question.

        Args:
            state: its outcome.
            account: every attempt.
            seconds: from question to outcome.
        """
        prepared = state.prepared
        return Report(
            request=prepared.request,
            outcome=state.outcome,
            decision=prepared.decision,
            retrieval=prepared.retrieval,
            account=account,
            retrieval_seconds=prepared.retrieval_seconds,
            seconds=seconds,
            spared=await self.savings(prepared, state.outcome),
            withdrawn=await self.withdrawn(prepared) if isinstance(state.outcome, Refusal) else (),
        )

    async def withdrawn(self, prepared: Prepared) -> tuple[str, ...]:
        """Return the ids of the retracted articles that a question's passages lack; none if the index no longer tells."""
        request, found = prepared.request, prepared.retrieval
        if request.retracted:
            return ()
        k = max(request.k, len(found.passages))
        mode = request.mode if found.query_vector.any() else "bm25"
        try:
            return await self.retriever.withdrawn(found, k, mode)
        except IndexFault:
            return ()  # removed while the question was answered: the outcome stands

    async def savings(self, prepared: Prepared, outcome: Outcome) -> Savings | None:
        """Return what compressing saved on an answer; ``None``: nothing was compressed, or prices are unknown."""
        if outcome.compression is None or self._estimator is None:
            return None
        # counting tokens takes milliseconds, which would block the event loop
        return await to_thread.run_sync(
            self._estimator.weighing.actual,
            prepared.retrieval,
            outcome.compression,
            prepared.request.model,
            tier_of(prepared.request.tier),
        )

    async def _strategy(self, dose: Dose, request: Request) -> Strategy | None:
        if dose.strategy == DECLINE:
            return None
        build = partial(
            make,
            dose,
            choose=self._compressors,
            partition_size=request.partition_size,
            seconds=self._seconds,
        )
        # a compressor may load a model when it is first used
        return await to_thread.run_sync(build) if takes_compressor(dose.strategy) else build()


def _caller(lane: Lane) -> Caller:
    """Return the caller of a question without a deadline: flex has as much time as by default in a job."""
    share = 0.5 if lane == "flex-then-standard" else 1.0
    return Caller(lane=lane, capacity_timeout=lambda: CAPACITY_TIMEOUT * share)
