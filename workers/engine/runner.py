"""Runs units of jobs: claim, work, record, and return the units to send next.

It does not know the queue: a worker passes the unit that a message named, and sends the units that are returned. A
question is driven through the states of :mod:`orchestrator.question.machine`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio
from structlog.contextvars import bound_contextvars

from orchestrator.connections import computes_here
from orchestrator.logs.events import note, note_refusal
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
from orchestrator.question.report import (
    answer_output,
    ask_output,
    compression,
    error_body,
    ranked,
    spending,
)
from orchestrator.question.request import JobRequest
from posology.budget.ledger.redis import RedisLedger
from posology.errors import (
    DeadlineExceeded,
    DeviceUnavailable,
    EmbedderUnavailable,
    HeadroomReserved,
    IndexFault,
    JobCancelled,
    JobExpired,
    JobSuperseded,
    MissingKey,
    ModelUnavailable,
    NothingAffordable,
    PosologyError,
    PromptsMismatch,
    ScorerUnavailable,
    StoreUnavailable,
    VersionGone,
)
from posology.llm.accounting import Account
from posology.turns import Occupied, taking
from posology.types import Decision, Extract, Extraction, Failure, Reduction
from strategies.briefcontext.strategy import extract, reduce
from workers.engine import fairness
from workers.engine.claims import WorkStore
from workers.engine.lane.calls import Waits
from workers.engine.spending import Spending
from workers.engine.units import DECISION, DRAFT, PARTITION, ClaimedUnit, Draft, Unit

if TYPE_CHECKING:
    from orchestrator.connections import Connections
    from orchestrator.question.pipeline import Pipeline

logger = logging.getLogger(__name__)

#: times that a job is requeued because a worker has no index or model, before it fails
RETURNS = 4
#: seconds for cancelled units to be requeued
_REQUEUE_TIMEOUT = 20.0
#: errors of this worker only: another may have what is missing
_NOT_HERE = (
    IndexFault, DeviceUnavailable, EmbedderUnavailable, ModelUnavailable, PromptsMismatch,
    ScorerUnavailable,
)  # fmt: skip

#: Share of a job's time that is kept for the reduce call, and the most seconds: partitions that are not read by then
#: have failed, and the answer is partial.
KEEP_FOR_REDUCE, KEEP_AT_MOST = 0.25, 60.0
#: Share of a job's remaining time that the repair of an answer may take: after that the first answer stands.
REPAIR = 0.75


class _Crowded(Exception):
    """The tenant has its share of what this process computes."""


class Runner:
    """Runs units, any number at a time, on one event loop.

    Args:
        work: the job records.
        connections: connections to models.
        pipeline: opens the index and returns its pipeline; called for each ``answer`` unit.
        keep: seconds before a job that this worker cannot do is requeued, so that it does not take all jobs.
        answerer: reduces partitions, and checks the sentences of the answers; ``None``: by rules alone.
    """

    def __init__(
        self,
        work: WorkStore,
        connections: Connections,
        pipeline: Callable[[], Awaitable[Pipeline]],
        *,
        keep: float = 2.0,
        answerer: Answerer | None = None,
    ) -> None:
        self._work = work
        self._pipeline = pipeline
        self._keep = keep
        self._answerer = answerer or Answerer()
        self._claimed: dict[ClaimedUnit, anyio.CancelScope] = {}
        self._spending = Spending(work, connections, claimed=lambda: len(self._claimed))
        #: units in work, including claims under way and units that are being requeued
        self._busy = 0
        self._idle = anyio.Event()
        self._idle.set()
        self._draining = False
        #: tenants that do long work in this process
        self._long: set[str] = set()
        #: units in work whose models compute in this process, by tenant
        self._computing: Counter[str] = Counter()
        #: units that the process works on at a time; ``None``: unknown, and no tenant has a share of its own
        self.threads: int | None = None

    @property
    def claimed(self) -> tuple[ClaimedUnit, ...]:
        """The units in work."""
        return tuple(self._claimed)

    async def run_all(self, units: Sequence[Unit]) -> list[Unit]:
        """Run units at the same time; see :meth:`run`."""
        following: list[Unit] = []

        async def one(unit: Unit) -> None:
            # an error of one unit must not stop the calls of the others
            try:
                following.extend(await self.run(unit))
            except StoreUnavailable as error:
                logger.warning("%s: %s", unit, error)
            except Exception:
                logger.exception("internal error unit=%s", unit)

        async with anyio.create_task_group() as group:
            for unit in units:
                group.start_soon(one, unit)
        return following

    async def run(self, unit: Unit) -> tuple[Unit, ...]:
        """Run a unit, if there is anything to do, and return the units to send next.

        Errors of the unit itself are recorded in the job, not raised.

        Raises:
            StoreUnavailable: Redis is unreachable; the sweep finds a unit that was begun.
        """
        if self._draining:
            # it is unclaimed, so it will be sent again
            return ()
        if not self._busy:
            self._idle = anyio.Event()
        self._busy += 1
        try:
            claimed = await self._work.claim(unit, delivery=uuid4().hex)
            return () if claimed is None else await self._work_on(claimed)
        finally:
            self._busy -= 1
            if not self._busy:
                self._idle.set()

    async def heartbeat(self) -> None:
        """Extend the leases of all claimed units; stop those that were cancelled or are another worker's."""
        claimed = self.claimed
        if not claimed:
            return
        for one, status in (await self._work.heartbeat(claimed)).items():
            if status != "ok":
                one.stopped.set()

    async def drain(self, grace: float) -> None:
        """Wait until all claimed units are finished; after ``grace`` seconds, requeue the rest.

        Afterwards this process has no claims, in the records either, unless a unit hangs in a thread that cannot be
        cancelled.
        """
        if not self._draining:
            note("shutdown began", units=len(self._claimed), grace_seconds=grace)
        self._draining = True
        with anyio.move_on_after(grace):
            await self._idle.wait()
        for scope in list(self._claimed.values()):
            scope.cancel()
        # a thread cannot be cancelled, and must not keep the process alive
        with anyio.move_on_after(_REQUEUE_TIMEOUT):
            await self._idle.wait()

    async def _work_on(self, claimed: ClaimedUnit) -> tuple[Unit, ...]:
        """Run a claimed unit, or requeue it if the process ends first."""
        scope = anyio.CancelScope()
        self._claimed[claimed] = scope
        try:
            # the lines of every library have the ids of the unit that they are about
            turn = partial(self._long_work, claimed.unit.tenant)
            with bound_contextvars(**_known(claimed.ids)), taking(turn), scope:
                if self._draining:
                    # claimed after the others were cancelled
                    scope.cancel()
                try:
                    return await self._attend(claimed)
                except (JobSuperseded, JobCancelled, JobExpired) as error:
                    # the record refused the unit's last step, and knows the job's end or will find it
                    logger.warning("%s", error)
            if scope.cancelled_caught:
                await self._work.release(claimed)
        finally:
            del self._claimed[claimed]
        return ()

    async def _attend(self, claimed: ClaimedUnit) -> tuple[Unit, ...]:
        """Run a unit within its job's deadline, and record every failure."""
        try:
            with anyio.move_on_after(claimed.left) as scope, self._share_of(claimed):
                match claimed.unit.kind:
                    case "answer":
                        return await self._answer(claimed)
                    case "extract":
                        return await self._extract(claimed)
                    case _:
                        return await self._reduce(claimed)
            assert scope.cancelled_caught
            late = DeadlineExceeded(
                f"the job did not end within its {claimed.patience:g} s", seconds=claimed.patience
            )
            await self._work.fail(claimed, error_body(late, None), expired=True)
        except (JobSuperseded, StoreUnavailable):
            raise
        except HeadroomReserved as error:
            # another unit may use this place meanwhile
            await fairness.park(self._work, claimed, error)
        except Occupied:
            await fairness.park_long(self._work, claimed)
        except _Crowded:
            await fairness.park_crowded(self._work, claimed)
        except Waits as waiting:
            await self._spending.park(claimed, waiting.calls)
        except VersionGone as error:
            # the question names a version that no worker has
            await self._work.fail(claimed, error_body(error, None))
        except _NOT_HERE as error:
            await self._return(claimed, error)
        except JobCancelled as error:
            # a store that raised this has settled the unit; a model call has not
            with suppress(JobSuperseded):
                await self._work.fail(claimed, error_body(error, None))
        except NothingAffordable as error:
            note_refusal(error, **claimed.ids)
            await self._work.fail(claimed, error_body(error, None))
        except MissingKey as error:
            # readers of the job may have a machine of their own, whose variables change nothing here
            body = error_body(error, None)
            told = f"the operator must fix this and restart the service: {error.message}"
            await self._work.fail(claimed, body.model_copy(update={"message": told}))
        except PosologyError as error:
            expired = isinstance(error, JobExpired)
            await self._work.fail(claimed, error_body(error, None), expired=expired)
        except Exception as error:
            logger.exception("internal error unit=%s", claimed.unit)
            defect = PosologyError(f"internal error: {type(error).__name__}: {error}")
            await self._work.fail(claimed, error_body(defect, None))
        return ()

    @contextmanager
    def _share_of(self, claimed: ClaimedUnit) -> Iterator[None]:
        """Count a unit whose model computes in this process; a tenant has only its share of them."""
        if self.threads is None or not computes_here(_request(claimed).model):
            yield
            return
        tenant = claimed.unit.tenant
        if self._computing[tenant] >= fairness.share(self.threads):
            raise _Crowded
        self._computing[tenant] += 1
        try:
            yield
        finally:
            self._computing[tenant] -= 1
            if not self._computing[tenant]:
                del self._computing[tenant]

    @contextmanager
    def _long_work(self, tenant: str) -> Iterator[None]:
        """Let a tenant do one long work at a time: its others would wait in places that other tenants need."""
        if tenant in self._long:
            raise Occupied
        self._long.add(tenant)
        try:
            yield
        finally:
            self._long.discard(tenant)

    async def _return(self, claimed: ClaimedUnit, error: PosologyError) -> None:
        """Requeue a job for which this worker lacks an index or a model, a few times and after a pause.

        A worker that cannot answer is faster than all that can, and would fail a whole batch.
        """
        if claimed.returned >= RETURNS:
            await self._work.fail(claimed, error_body(error, None))
            return
        logger.warning("%s: %s", claimed.unit, error)
        await claimed.sleep(self._keep)
        await self._work.release(claimed, counted=True)

    async def _answer(self, claimed: ClaimedUnit) -> tuple[Unit, ...]:
        started = anyio.current_time()
        request = _request(claimed).as_settled()
        complete, account = self._spending.complete(claimed, request), Account()
        pipeline = await self._pipeline()
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
        prepared, before = state.prepared, state.refused
        savings = None if before is None else await pipeline.savings(prepared, before)
        draft = Draft(
            rungs=before.rungs if before else (),
            retrieved=ranked(prepared.retrieval),
            index=prepared.retrieval.index_version,
            retrieval_seconds=prepared.retrieval_seconds,
            compression=compression(before.compression, savings) if before else None,
            growth=prepared.retrieval.growth,
        )
        return await self._work.decide(
            claimed,
            prepared.decision,
            calls=state.calls,
            draft=draft,
            partitions=state.partitions,
        )

    async def _extract(self, claimed: ClaimedUnit) -> tuple[Unit, ...]:
        request = _request(claimed).as_settled()
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
        kept = min(KEEP_AT_MOST, KEEP_FOR_REDUCE * claimed.patience)
        late = Extraction(
            partition=part.index, failure=Failure.DEADLINE, error=DeadlineExceeded.__name__
        )
        extraction = late
        with anyio.move_on_after(claimed.left - kept):
            complete = self._spending.complete(claimed, request, kept=kept)
            extraction = await extract(asked, complete)
        return await self._work.extracted(claimed, extraction)

    async def _reduce(self, claimed: ClaimedUnit) -> tuple[Unit, ...]:
        started = anyio.current_time()
        request = _request(claimed).as_settled()
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


def _known(ids: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in ids.items() if value is not None}


def _request(claimed: ClaimedUnit) -> JobRequest:
    return JobRequest.model_validate_json(claimed.request)


def _decided(claimed: ClaimedUnit) -> tuple[Decision | None, Decision | None]:
    """Return the recorded decision of a unit that was claimed before, and the one after its ladder."""
    if claimed.decision is None:
        return None, None
    decision = DECISION.validate_json(claimed.decision)
    return replace(decision, then=None), decision.then
