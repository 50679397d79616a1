"""Runs units of jobs: claim, work, record, and return the units to send next.

It does not know the queue: a worker passes the unit that a message named, and sends the units that are returned.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio
from structlog.contextvars import bound_contextvars

from orchestrator.connections import computes_here
from orchestrator.logs.events import note, note_refusal
from orchestrator.question.answering import Answerer
from orchestrator.question.report import error_body
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
from posology.turns import Occupied, taking
from workers.engine import fairness
from workers.engine.claims import WorkStore
from workers.engine.lane.calls import Waits
from workers.engine.questions import Questions, request_of
from workers.engine.spending import Spending
from workers.engine.units import ClaimedUnit, Unit

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


class _Crowded(Exception):
    """The tenant has its share of what this process computes."""


class Runner:
    """Runs units, any number at a time, on one event loop.

    Args:
        work: the job records.
        connections: connections to models.
        pipeline: opens the index of a collection and returns its pipeline; called for each ``answer`` unit.
        keep: seconds before a job that this worker cannot do is requeued, so that it does not take all jobs.
        answerer: reduces partitions, and checks the sentences of the answers; ``None``: by rules alone.
    """

    def __init__(
        self,
        work: WorkStore,
        connections: Connections,
        pipeline: Callable[[str | None], Awaitable[Pipeline]],
        *,
        keep: float = 2.0,
        answerer: Answerer | None = None,
    ) -> None:
        self._work = work
        self._keep = keep
        self._claimed: dict[ClaimedUnit, anyio.CancelScope] = {}
        self._spending = Spending(work, connections, claimed=lambda: len(self._claimed))
        self._questions = Questions(work, self._spending, pipeline, answerer or Answerer())
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
                return await self._questions.work_on(claimed)
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
        if self.threads is None or not computes_here(request_of(claimed).model):
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


def _known(ids: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in ids.items() if value is not None}
