"""The calls of a claimed unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from orchestrator.question.embedding import Spend
from posology.budget.tenants.meter import Meters
from posology.llm.calls import Caller
from workers.engine import fairness
from workers.engine.journal import JobJournal

if TYPE_CHECKING:
    from orchestrator.connections import Connections
    from orchestrator.question.request import Request
    from posology.seams import Complete
    from workers.engine.claims import WorkStore
    from workers.engine.units import ClaimedUnit

#: seconds for which a unit that waits for budget keeps its place in the worker
PATIENCE = 10.0


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
        """Return what pays for the question's vector: the job, as for every other call."""
        return Spend(
            tenant=claimed.unit.tenant, complete=lambda model: self._at_once(claimed, model)
        )

    def complete(self, claimed: ClaimedUnit, request: Request) -> Complete:
        """Return what makes the calls of a unit.

        Raises:
            UnknownModel: the provider is unknown.
            MissingKey: the provider's key is not set.
        """
        return self._at_once(claimed, request.model)

    def _at_once(self, claimed: ClaimedUnit, model: str) -> Complete:
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
            ),
        )
