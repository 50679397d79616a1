"""The calls of a claimed unit: at once, or by way of a provider's batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.question.embedding import Spend
from posology.budget.tenants.meter import Meters
from posology.llm.calls import Caller
from workers.engine import fairness
from workers.engine.journal import JobJournal
from workers.engine.lane.calls import LaneCalls, LaneRecords
from workers.engine.lane.records import LaneStore

if TYPE_CHECKING:
    from orchestrator.connections import Connections
    from orchestrator.question.request import Request
    from posology.seams import Complete
    from posology.types import Lane
    from workers.engine.claims import WorkStore
    from workers.engine.units import ClaimedUnit

#: seconds for which a unit that waits for budget, or for capacity, keeps its place in the worker
PATIENCE = 10.0
#: Seconds before a job's deadline, a quarter of its time at most, from which it does not wait for capacity any more:
#: longer than a unit is parked, so that the job ends with the provider's error
KEEP_FOR_RETRY = 30.0


class Spending:
    """Hands out what units spend by.

    Args:
        work: the job records.
        connections: connections to models.
        claimed: number of units that this process has claimed.
    """

    def __init__(
        self, work: WorkStore, connections: Connections, *, claimed: Callable[[], int]
    ) -> None:
        self._work = work
        self._connections = connections
        self._claimed = claimed
        self._meters = Meters(work.store.redis, work.store.url)

    def embedding(self, claimed: ClaimedUnit) -> Spend:
        """Return what pays for the question's vector: the job, as for every other call, and at once in every lane."""
        return Spend(
            tenant=claimed.unit.tenant, complete=lambda model: self._at_once(claimed, model)
        )

    def complete(self, claimed: ClaimedUnit, request: Request, *, reserve: float = 0.0) -> Complete:
        """Return what makes the calls of a unit, in the request's lane.

        Args:
            claimed: the unit.
            request: its question.
            reserve: seconds of the job's time that are kept for the units after it.

        Raises:
            UnknownModel: the provider is unknown, or has no batch endpoint.
            MissingKey: the provider's key is not set.
        """
        if not request.tier.startswith("batch"):
            return self._at_once(claimed, request.model, request.tier, reserve=reserve)
        journal = JobJournal(self._work, claimed)
        lane = LaneStore(self._work, claimed.unit.tenant)
        records = LaneRecords(
            recall=journal.recall,
            failed=partial(lane.failed, claimed),
            flawed=partial(lane.flawed, claimed),
        )
        repairs_live = request.tier == "batch-then-standard"
        return LaneCalls(
            records,
            line=self._connections.batches(request.model).line,
            prices=self._connections.prices,
            bound=self._connections.bound,
            live=self._at_once(claimed, request.model) if repairs_live else None,
            tenant=claimed.unit.tenant,
        )

    async def park(self, claimed: ClaimedUnit, calls: LaneCalls) -> None:
        """Park a unit until its calls have their replies from a provider's batch.

        Raises:
            JobCancelled: the job was cancelled.
            JobSuperseded: the unit is another worker's.
        """
        await LaneStore(self._work, claimed.unit.tenant).park(claimed, calls)

    def _at_once(
        self, claimed: ClaimedUnit, model: str, lane: Lane = "standard", *, reserve: float = 0.0
    ) -> Complete:
        later = min(KEEP_FOR_RETRY, claimed.patience / 4)
        if lane == "flex-then-standard":
            later = claimed.patience / 2
        journal, unit = JobJournal(self._work, claimed), claimed.unit
        return self._connections.complete(
            model,
            journal,
            Caller(
                recall=journal.recall,
                meter=self._meters.of(unit.tenant),
                owner=f"{unit.job}|{unit.name}",
                wait_timeout=PATIENCE,
                # as take.lua computes it, for this process
                max_waiters=max(fairness.WAITERS, self._claimed() // 4),
                sleep=claimed.sleep,
                lane=lane,
                capacity_timeout=lambda: claimed.left - max(later, reserve),
                requeued=True,
            ),
        )
