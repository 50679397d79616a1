"""How tenants share the workers: what is sent of each, and what becomes of units that wait for headroom.

Waiting jobs stand in a list of their tenant, and whoever dispatches takes one of each tenant in turn. So that one
tenant's thousands do not stand in the broker before another's ten, it holds only so many of one tenant's jobs and calls
at a time. And so that a tenant whose limits are used up does not fill the workers with units that wait for
them, only a few may wait in a worker's place: the others are parked, and nothing more of the tenant is sent meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from orchestrator.jobs import tenants
from orchestrator.jobs.store import JobStore
from posology.errors import HeadroomReserved
from posology.store import keys
from posology.types import Scope
from workers.engine.claims import WorkStore
from workers.engine.units import ClaimedUnit, Unit

#: Jobs of one tenant that the broker holds unclaimed, and calls; as many as it has under way where that is
#: more. Enough that no worker waits for the next look at the queue.
LEAD = 16
#: units of one tenant that may wait for headroom in a worker's place; a quarter of what it has under way
#: where that is more
WAITERS = 2
#: seconds after which a parked unit may be sent again: where the tenant's calls hold what it waits for, where
#: those of its own job do, and at most, for a limit may have been raised
_PAUSE, _OWN_PAUSE, _LONGEST = 0.2, 1.0, 15.0
#: Seconds a parked unit by which jobs that are not decided yet wait longer: they hold no ticket, and to look again
#: takes a retrieval and prices. So a tenant's hundred take no more of the workers than ten.
_TURN = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """What a tenant has for the broker."""

    #: to be sent; ``None``: nothing now
    unit: Unit | None = None
    #: whether there is something that is not to be sent yet
    later: bool = False


async def take(store: JobStore, tenant: str) -> Offer:
    """Take a tenant's next unit, as long as the workers do not have enough of the tenant's.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    prefix = keys.prefix(tenant)
    while True:
        said = cast("str | None", await store.run("take", prefix, LEAD, WAITERS))
        match said:
            case None:
                await tenants.emptied(store, tenant)
                return Offer()
            case "later":
                return Offer(later=True)
            case "more":
                continue
            case member:
                return Offer(unit=Unit.of(tenant, member))


async def park(
    work: WorkStore, claimed: ClaimedUnit, error: HeadroomReserved, *, undecided: bool = False
) -> None:
    """Hand back a unit that waits for headroom, so that others' work may go on in its place.

    Args:
        work: the job records.
        claimed: the unit.
        error: what it waits for.
        undecided: whether it takes a retrieval and prices to look again.

    Raises:
        StoreUnavailable: Redis is out of reach; the sweep finds the unit when its lease has ended.
    """
    unit = claimed.unit
    if error.retry_after is not None:
        pause = min(error.retry_after, _LONGEST)
    else:
        pause = _OWN_PAUSE if error.scope == Scope.JOB else _PAUSE
    everybody = error.retry_after is not None and error.scope in (Scope.REQUESTS, Scope.TOKENS)
    await work.store.run(
        "park",
        keys.prefix(unit.tenant),
        unit.job,
        unit.name,
        claimed.token,
        int(pause * 1000),
        int(everybody),
        int(undecided * _TURN * 1000),
        int(_LONGEST * 1000),
    )
    await tenants.wake(work.store, unit.tenant)
