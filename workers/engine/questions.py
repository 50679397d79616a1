"""Work on the units of a question: retrieve and decide, read a partition, reduce.

A question is driven through the states of :mod:`orchestrator.question.machine`; each is recorded before the next.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio

from orchestrator.question.answering import Answerer, Patience
from orchestrator.question.decider import remaining_budget
from orchestrator.question.machine import (
    Concluded,
    Escalating,
    Partitioned,
    Remaining,
    RemainingBudget,
    State,
    begin,
    reduced,
)
from orchestrator.question.passages import ranked
from orchestrator.question.report import answer_output, ask_output, compression, spending
from orchestrator.question.request import JobRequest
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.grants import check_grants
from posology.errors import DeadlineExceeded, HeadroomReserved
from posology.llm.accounting import Account
from posology.types import Decision, Extract, Extraction, Failure, Reduction
from strategies.briefcontext.strategy import extract, reduce
from workers.engine import fairness
from workers.engine.claims import WorkStore
from workers.engine.spending import Spending
from workers.engine.units import DECISION, DRAFT, PARTITION, ClaimedUnit, Draft, Unit

if TYPE_CHECKING:
    from orchestrator.question.pipeline import Pipeline


#: Share of a job's time that is kept for the reduce call, and the most seconds: partitions that are not read by then
#: have failed, and the answer is partial.
KEEP_FOR_REDUCE, KEEP_AT_MOST = 0.25, 60.0
#: Share of a job's remaining time that the repair of an answer may take: after that the first answer stands.
REPAIR = 0.75


class Questions:
    """Works on claimed units; what fails is raised.

    Args:
        work: the job records.
        spending: pays for the calls of claimed units.
        pipeline: opens the index of a collection and returns its pipeline; called for each ``answer`` unit.
        answerer: reduces partitions, and checks the sentences of the answers.
    """

    def __init__(
        self,
        work: WorkStore,
        spending: Spending,
        pipeline: Callable[[str | None], Awaitable[Pipeline]],
        answerer: Answerer,
    ) -> None:
        self._work = work
        self._spending = spending
        self._pipeline = pipeline
        self._answerer = answerer

    async def work_on(self, claimed: ClaimedUnit) -> tuple[Unit, ...]:
        """Work on a unit, record its result, and return the units to send next."""
        match claimed.unit.kind:
            case "answer":
                return await self._answer(claimed)
            case "extract":
                return await self._extract(claimed)
            case _:
                return await self._reduce(claimed)

    async def _answer(self, claimed: ClaimedUnit) -> tuple[Unit, ...]:
        started = anyio.current_time()
        asked = request_of(claimed)
        request, store = asked.as_settled(), self._work.store
        # again, since a grant may end while the job waits
        await check_grants(store.redis, store.url, claimed.unit.tenant, [asked.collection])
        complete, account = self._spending.complete(claimed, request), Account()
        pipeline = await self._pipeline(asked.collection)
        # a recorded decision stands regardless of the remaining budget: its calls are replayed, and paid for once
        recorded, then = _decided(claimed)
        try:
            prepared = await pipeline.prepare(
                request,
                remaining=self._remaining(claimed),
                decided=recorded,
                spend=self._spending.embedding(claimed),
            )
        except HeadroomReserved as error:
            await fairness.park(self._work, claimed, error, undecided=True)
            return ()
        state: State = begin(prepared, distributed=True)
        while True:
            if isinstance(state, Partitioned):
                return await self._hand_over(claimed, pipeline, state)
            decision = state.prepared.decision
            if not isinstance(state, Escalating) and decision is not recorded:
                await self._work.decide(claimed, decision, calls=state.calls)
                recorded = decision
            if isinstance(state, Concluded):
                break
            state = await pipeline.advance(
                state,
                complete,
                decided=then,
                distributed=True,
                seconds=lambda: REPAIR * claimed.left,
            )
        seconds = anyio.current_time() - started
        await self._work.succeed(
            claimed, ask_output(await pipeline.report(state, account, seconds))
        )
        return ()

    async def _hand_over(
        self, claimed: ClaimedUnit, pipeline: Pipeline, state: Partitioned
    ) -> tuple[Unit, ...]:
        """Record the decision and the partitions; return the units that read them."""
        prepared, before = state.prepared, state.before
        savings = None if before is None else await pipeline.savings(prepared, before)
        draft = Draft(
            rungs=before.rungs if before else (),
            retrieved=ranked(prepared.retrieval),
            index=prepared.retrieval.index_version,
            retrieval_seconds=prepared.retrieval_seconds,
            compression=compression(before.compression, savings) if before else None,
            growth=prepared.retrieval.growth,
            # the worker that reduces opens no index
            withdrawn=await pipeline.withdrawn(prepared),
        )
        return await self._work.decide(
            claimed,
            prepared.decision,
            calls=state.calls,
            draft=draft,
            partitions=state.partitions,
        )

    async def _extract(self, claimed: ClaimedUnit) -> tuple[Unit, ...]:
        request = request_of(claimed).as_settled()
        assert claimed.partition is not None
        part = PARTITION.validate_json(claimed.partition)
        asked = Extract(
            query=request.query,
            partition=part,
            model=request.model,
            max_tokens=request.max_tokens,
            effort=request.effort,
            quotes=request.quotes,
            mode=request.partitions,
            prompts=request.prompts,
        )
        reserve = min(KEEP_AT_MOST, KEEP_FOR_REDUCE * claimed.patience)
        late = Extraction(
            partition=part.index, failure=Failure.DEADLINE, error=DeadlineExceeded.__name__
        )
        extraction = late
        with anyio.move_on_after(claimed.left - reserve):
            complete = self._spending.complete(claimed, request, reserve=reserve)
            extraction = await extract(asked, complete)
        return await self._work.extracted(claimed, extraction)

    async def _reduce(self, claimed: ClaimedUnit) -> tuple[Unit, ...]:
        started = anyio.current_time()
        request = request_of(claimed).as_settled()
        partitions, extractions = await self._work.gathered(claimed.unit)
        reduction = Reduction(
            query=request.query,
            partitions=partitions,
            extractions=extractions,
            model=request.model,
            max_tokens=request.max_tokens,
            effort=request.effort,
            quotes=request.quotes,
            mode=request.partitions,
            prompts=request.prompts,
        )
        assert claimed.decision is not None
        assert claimed.draft is not None
        draft = DRAFT.validate_json(claimed.draft)
        excerpts = [excerpt for part in partitions for excerpt in part.excerpts]
        outcome = await self._answerer(
            partial(reduce, reduction),
            self._spending.complete(claimed, request),
            request=request,
            excerpts=excerpts,
            patience=Patience(seconds=lambda: REPAIR * claimed.left, requeued=True),
        )
        out = answer_output(
            request=request,
            outcome=reduced(outcome, draft.rungs),
            decision=DECISION.validate_json(claimed.decision),
            excerpts=excerpts,
            retrieved=draft.retrieved,
            index=draft.index,
            growth=draft.growth,
            withdrawn=draft.withdrawn,
            # the job's account is in its record, where every worker writes it
            spending=spending(Account()),
            retrieval_seconds=draft.retrieval_seconds,
            seconds=claimed.elapsed + anyio.current_time() - started,
        )
        out = out.model_copy(update={"compression": draft.compression})
        await self._work.succeed(claimed, out)
        return ()

    def _remaining(self, claimed: ClaimedUnit) -> Remaining:
        store, unit = self._work.store, claimed.unit

        async def look() -> RemainingBudget | None:
            ledger = RedisLedger(store.redis, store.url, tenant=unit.tenant)
            return remaining_budget(await ledger.balances(unit.job))

        return look


def request_of(claimed: ClaimedUnit) -> JobRequest:
    """Return the request of a unit's job."""
    return JobRequest.model_validate_json(claimed.request)


def _decided(claimed: ClaimedUnit) -> tuple[Decision | None, Decision | None]:
    """Return the recorded decision of a unit that was claimed before, and the one after its ladder."""
    if claimed.decision is None:
        return None, None
    decision = DECISION.validate_json(claimed.decision)
    return replace(decision, then=None), decision.then
