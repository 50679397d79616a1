"""Runs units of jobs: claim, work, write down, and say what is to be sent next.

It knows no queue: a worker hands it the unit that a message named and sends what it returns.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio
from pydantic import TypeAdapter

from orchestrator.question.decider import Left, Means, left
from orchestrator.question.embedding import Spend
from orchestrator.question.pipeline import not_resumed
from orchestrator.question.report import answer_output, ask_output, error_body, spending
from orchestrator.question.request import JobRequest
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.meter import Meters
from posology.errors import (
    DeadlineExceeded,
    DeviceUnavailable,
    EmbedderUnavailable,
    HeadroomReserved,
    IndexFault,
    JobCancelled,
    JobExpired,
    JobSuperseded,
    ModelUnavailable,
    PosologyError,
    ScorerUnavailable,
    StoreUnavailable,
)
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.types import Decision, Extract, Extraction, Failure, Partition, Reduction
from strategies.briefcontext.strategy import extract, reduce
from workers.engine import fairness
from workers.engine.claims import WorkStore
from workers.engine.drafts import draft, read_draft
from workers.engine.journal import JobJournal
from workers.engine.units import Held, Unit

if TYPE_CHECKING:
    from orchestrator.connections import Connections
    from orchestrator.question.pipeline import Prepared, Report
    from orchestrator.service import Service
    from posology.seams import Complete

logger = logging.getLogger(__name__)

#: times that a job is given to another worker because this one has no index, before it fails
RETURNS = 4
#: seconds for what was cancelled to be handed back
_HANDED_BACK = 20.0
#: seconds for which a unit that waits for money keeps its worker's place
PATIENCE = 10.0
#: what this worker lacks, and another may have
_NOT_HERE = (
    IndexFault, DeviceUnavailable, EmbedderUnavailable, ModelUnavailable, ScorerUnavailable,
)  # fmt: skip
_decision = TypeAdapter(Decision)
_partition = TypeAdapter(Partition)

#: Of the time that a job was given, the share that is kept for the reduce, and at most so many seconds:
#: partitions that are not read by then have failed, and the answer is partial instead of none.
KEEP_FOR_REDUCE, KEEP_AT_MOST = 0.25, 60.0


class Runner:
    """Runs units, any number at a time, on one event loop.

    Args:
        work: the job records.
        connections: to models.
        service: opens the index; asked when a unit first needs it.
        keep: seconds that a job is kept which this worker cannot do, so that it does not take all.
    """

    def __init__(
        self,
        work: WorkStore,
        connections: Connections,
        service: Callable[[], Awaitable[Service]],
        *,
        keep: float = 2.0,
    ) -> None:
        self._work = work
        self._connections = connections
        self._service = service
        self._keep = keep
        self._meters = Meters(work.store.redis, work.store.url)
        self._held: dict[Held, anyio.CancelScope] = {}
        #: claims under way included, and units that are being handed back
        self._busy = 0
        self._idle = anyio.Event()
        self._idle.set()
        self._draining = False

    @property
    def held(self) -> tuple[Held, ...]:
        """What is being worked on."""
        return tuple(self._held)

    async def run_all(self, units: Sequence[Unit]) -> list[Unit]:
        """Work on units at the same time; see :meth:`run`."""
        following: list[Unit] = []

        async def one(unit: Unit) -> None:
            # whatever happens to one unit, the calls of the others go on
            try:
                following.extend(await self.run(unit))
            except StoreUnavailable as error:
                logger.warning("%s: %s", unit, error)
            except Exception:
                logger.exception("a defect of Posology at %s", unit)

        async with anyio.create_task_group() as group:
            for unit in units:
                group.start_soon(one, unit)
        return following

    async def run(self, unit: Unit) -> tuple[Unit, ...]:
        """Work on a unit, if there is anything to do, and return the units to be sent next.

        It raises nothing that is the unit's fault: what goes wrong is in the job's record.

        Raises:
            StoreUnavailable: Redis is out of reach; what was begun is found by the sweep.
        """
        if self._draining:
            # nobody has claimed it, so it is sent again
            return ()
        if not self._busy:
            self._idle = anyio.Event()
        self._busy += 1
        try:
            held = await self._work.claim(unit, delivery=uuid4().hex)
            return () if held is None else await self._work_on(held)
        finally:
            self._busy -= 1
            if not self._busy:
                self._idle.set()

    async def heartbeat(self) -> None:
        """Extend the leases of all that is held; what is cancelled or lost begins nothing more."""
        held = self.held
        if not held:
            return
        for one, said in (await self._work.heartbeat(held)).items():
            if said != "ok":
                one.stopped.set()

    async def drain(self, grace: float) -> None:
        """Wait until all that is held is finished; after ``grace`` seconds, hand it back.

        When this returns, nothing is held by this process, in the records either, but for what hangs
        where nothing can be cancelled.
        """
        self._draining = True
        with anyio.move_on_after(grace):
            await self._idle.wait()
        for scope in list(self._held.values()):
            scope.cancel()
        # what hangs in a thread cannot be cancelled, and must not hold the process
        with anyio.move_on_after(_HANDED_BACK):
            await self._idle.wait()

    async def _work_on(self, held: Held) -> tuple[Unit, ...]:
        """Work on a unit, or hand it back where the process is to end first."""
        scope = anyio.CancelScope()
        self._held[held] = scope
        try:
            with scope:
                if self._draining:
                    # it was claimed while the others were told to end
                    scope.cancel()
                try:
                    return await self._attend(held)
                except JobSuperseded as error:
                    logger.warning("%s", error)
            if scope.cancelled_caught:
                await self._work.release(held)
        finally:
            del self._held[held]
        return ()

    async def _attend(self, held: Held) -> tuple[Unit, ...]:
        """Work on a unit within its job's deadline, and make every failure a record."""
        try:
            with anyio.move_on_after(held.left) as scope:
                match held.unit.kind:
                    case "answer":
                        return await self._answer(held)
                    case "extract":
                        return await self._extract(held)
                    case _:
                        return await self._reduce(held)
            assert scope.cancelled_caught
            late = DeadlineExceeded(
                f"the job was not done within its {held.patience:g} s", seconds=held.patience
            )
            await self._work.fail(held, error_body(late, None), expired=True)
        except (JobSuperseded, StoreUnavailable):
            raise
        except HeadroomReserved as error:
            # another's work may go on in this place
            await fairness.park(self._work, held, error)
        except _NOT_HERE as error:
            await self._cannot_read(held, error)
        except JobCancelled as error:
            # where the store said so, the unit is settled; where it was a model call, not yet
            with suppress(JobSuperseded):
                await self._work.fail(held, error_body(error, None))
        except PosologyError as error:
            expired = isinstance(error, JobExpired)
            await self._work.fail(held, error_body(error, None), expired=expired)
        except Exception as error:
            logger.exception("a defect of Posology in %s", held.unit)
            defect = PosologyError(f"a defect of Posology: {type(error).__name__}: {error}")
            await self._work.fail(held, error_body(defect, None))
        return ()

    async def _cannot_read(self, held: Held, error: PosologyError) -> None:
        """This worker has no index, or no model. Another may have: it is given the job, a few times, and not at once.

        A worker that cannot answer is quicker than all that can, and would fail a whole batch.
        """
        if held.returned >= RETURNS:
            await self._work.fail(held, error_body(error, None))
            return
        logger.warning("%s: %s", held.unit, error)
        await held.sleep(self._keep)
        await self._work.release(held, counted=True)

    async def _answer(self, held: Held) -> tuple[Unit, ...]:
        started = anyio.current_time()
        request = _request(held).as_settled()
        complete, account = self._complete(held, request.model)
        service, means = await self._service(), self._means(held)
        decided, then = _decided(held)
        # what was decided stands, whatever is left by now: its calls are replayed, and paid for once
        try:
            prepared = await service.prepare(
                request, means=means, decided=decided, spend=self._spend(held)
            )
        except HeadroomReserved as error:
            await fairness.park(self._work, held, error, undecided=True)
            return ()
        parts = _partitions(prepared)
        if parts:
            return await self._hand_over(held, prepared, parts)
        if decided is None:
            await self._work.decide(held, prepared.decision, calls=_calls(prepared))
        outcome = await prepared.answer(complete)
        further = await service.further(prepared, outcome, means=means, decided=then)
        if further is not None:
            prepared = further
            parts = _partitions(prepared)
            if parts:
                report = await prepared.report(outcome, account, anyio.current_time() - started)
                return await self._hand_over(held, prepared, parts, report)
            await self._work.decide(held, prepared.decision, calls=len(outcome.rungs))
            outcome = not_resumed(prepared, outcome)
        out = ask_output(await prepared.report(outcome, account, anyio.current_time() - started))
        await self._work.succeed(held, out)
        return ()

    async def _hand_over(
        self,
        held: Held,
        prepared: Prepared,
        parts: tuple[Partition, ...],
        vain: Report | None = None,
    ) -> tuple[Unit, ...]:
        """Have workers read the partitions; ``vain`` is what came of a ladder before."""
        rungs = vain.outcome.rungs if vain else ()
        return await self._work.decide(
            held,
            prepared.decision,
            calls=len(rungs) + len(parts) + 1,
            draft=draft(prepared, vain),
            partitions=parts,
        )

    async def _extract(self, held: Held) -> tuple[Unit, ...]:
        request = _request(held).as_settled()
        assert held.partition is not None
        part = _partition.validate_json(held.partition)
        asked = Extract(
            query=request.query,
            partition=part,
            model=request.model,
            max_tokens=request.max_tokens,
        )
        kept = min(KEEP_AT_MOST, KEEP_FOR_REDUCE * held.patience)
        late = Extraction(
            partition=part.index, failure=Failure.DEADLINE, error=DeadlineExceeded.__name__
        )
        extraction = late
        with anyio.move_on_after(held.left - kept):
            extraction = await extract(asked, self._complete(held, asked.model)[0])
        return await self._work.extracted(held, extraction)

    async def _reduce(self, held: Held) -> tuple[Unit, ...]:
        started = anyio.current_time()
        request = _request(held).as_settled()
        partitions, extractions = await self._work.gathered(held.unit)
        outcome = await reduce(
            Reduction(
                query=request.query,
                partitions=partitions,
                extractions=extractions,
                model=request.model,
                max_tokens=request.max_tokens,
            ),
            self._complete(held, request.model)[0],
        )
        assert held.decision is not None
        assert held.draft is not None
        kept = read_draft(held.draft)
        outcome = replace(outcome, rungs=kept.rungs)
        out = answer_output(
            request=request,
            outcome=outcome,
            decision=_decision.validate_json(held.decision),
            excerpts=[excerpt for part in partitions for excerpt in part.excerpts],
            retrieved=kept.retrieved,
            index=kept.index,
            # a job's account is in its record, where every worker writes it
            spending=spending(Account()),
            retrieval_seconds=kept.retrieval_seconds,
            seconds=held.elapsed + anyio.current_time() - started,
        )
        await self._work.succeed(held, out.model_copy(update={"compression": kept.compression}))
        return ()

    def _means(self, held: Held) -> Means:
        store, unit = self._work.store, held.unit

        async def look() -> Left | None:
            ledger = RedisLedger(store.redis, store.url, tenant=unit.tenant)
            return left(await ledger.balances(unit.job))

        return look

    def _spend(self, held: Held) -> Spend:
        """Pays for the question's vector as for every other call of the job."""
        return Spend(tenant=held.unit.tenant, complete=lambda model: self._complete(held, model)[0])

    def _complete(self, held: Held, model: str) -> tuple[Complete, Account]:
        journal, unit = JobJournal(self._work, held), held.unit
        complete = self._connections.complete(
            model,
            journal,
            Caller(
                recall=journal.recall,
                meter=self._meters.of(unit.tenant),
                owner=f"{unit.job}|{unit.name}",
                wait_timeout=PATIENCE,
                # as take.lua reckons it, for this process
                max_waiters=max(fairness.WAITERS, len(self._held) // 4),
                sleep=held.sleep,
            ),
        )
        return complete, Account()


def _request(held: Held) -> JobRequest:
    return JobRequest.model_validate_json(held.request)


def _decided(held: Held) -> tuple[Decision | None, Decision | None]:
    """What was decided for a unit that another worker had before, and what after its ladder."""
    if held.decision is None:
        return None, None
    decided = _decision.validate_json(held.decision)
    return replace(decided, then=None), decided.then


def _calls(prepared: Prepared) -> int:
    """Model calls that are planned where nobody else reads partitions."""
    strategy = prepared.strategy
    return 0 if strategy is None else strategy.count(prepared.task)


def _partitions(prepared: Prepared) -> tuple[Partition, ...]:
    """The parts that workers are to read, where the strategy has parts and there is anything to read."""
    return () if prepared.strategy is None else prepared.strategy.partitions(prepared.task)
