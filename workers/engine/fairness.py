"""Fair sharing of workers among tenants, and units that wait for budget.

Waiting jobs stand in a list of their tenant, and each dispatcher takes one of every tenant in turn. The broker holds
only so many jobs and calls of one tenant at a time, so that one tenant's thousands do not delay another's ten. Only a
few units of a tenant may wait for budget in a worker's place, so that a tenant without budget does not fill the workers:
the others are parked, and meanwhile no more of the tenant's units are sent.
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

#: Most unclaimed jobs, and calls, of one tenant in the broker, or as many as it has in flight if that is more:
#: enough that no worker waits for the next dispatch.
LEAD = 16
#: most units of one tenant that wait for budget in a worker's place, or a quarter of its units in flight if that is
#: more
WAITERS = 2
#: seconds after which a parked unit may be sent again: if the tenant's calls have reserved the budget, if those of
#: its own job have, and at most, since a limit may have been raised
_PAUSE, _OWN_PAUSE, _LONGEST = 0.2, 1.0, 15.0
#: seconds until a unit is sent again whose tenant does long work, and until one whose tenant has its share of a process
_LONG_PAUSE, _CROWDED_PAUSE = 2.0, 0.25
#: least units of one tenant that compute in a process at a time: one computes, the other is prepared
_AT_WORK = 2
#: Additional seconds for each parked unit that jobs without a decision wait: they have no ticket, and a retry takes a
#: retrieval and prices. So a tenant's hundred jobs do not use more of the workers than ten.
_TURN = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """Next unit of a tenant for the broker."""

    #: unit to send; ``None``: none now
    unit: Unit | None = None
    #: whether there are units that must not be sent yet
    later: bool = False


async def take(store: JobStore, tenant: str) -> Offer:
    """Take a tenant's next unit, unless the workers have enough of the tenant's units.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    prefix = keys.prefix(tenant)
    while True:
        reply = cast("str | None", await store.run("take", prefix, LEAD, WAITERS))
        match reply:
            case None:
                await tenants.emptied(store, tenant)
                return Offer()
            case "later":
                return Offer(later=True)
            case "more":
                continue
            case member:
                return Offer(unit=Unit.of(tenant, member))


def share(threads: int) -> int:
    """Return the number of units of one tenant that may compute in a process at a time, of all that it works on.

    A call of a provider waits, and another unit goes on meanwhile; the offline reader computes. So it has at most half of
    the threads for each tenant, whether others wait or not: what they send finds a free one at once.
    """
    return max(_AT_WORK, threads // 2)


async def park_crowded(work: WorkStore, claimed: ClaimedUnit) -> None:
    """Park a unit that would compute in this process, of which its tenant has its share already.

    Raises:
        StoreUnavailable: Redis is unreachable; the sweep finds the unit when its lease has ended.
    """
    # nothing else of the tenant is sent meanwhile: it would come to the same place
    await _park(work, claimed, pause=_CROWDED_PAUSE, turn=_TURN, all_units=True)


async def park_long(work: WorkStore, claimed: ClaimedUnit) -> None:
    """Park a unit whose tenant does long work in this process already; see :mod:`posology.turns`.

    Raises:
        StoreUnavailable: Redis is unreachable; the sweep finds the unit when its lease has ended.
    """
    await _park(work, claimed, pause=_LONG_PAUSE, turn=_TURN)


async def park(
    work: WorkStore, claimed: ClaimedUnit, error: HeadroomReserved, *, undecided: bool = False
) -> None:
    """Park a unit that waits for budget, so that another unit may use its place.

    Args:
        work: the job records.
        claimed: the unit.
        error: scope that it waits for, and how long.
        undecided: whether a retry takes a retrieval and prices.

    Raises:
        StoreUnavailable: Redis is unreachable; the sweep finds the unit when its lease has ended.
    """
    if error.retry_after is not None:
        pause = min(error.retry_after, _LONGEST)
    else:
        pause = _OWN_PAUSE if error.scope == Scope.JOB else _PAUSE
    all_units = error.retry_after is not None and error.scope in (Scope.REQUESTS, Scope.TOKENS)
    await _park(work, claimed, pause=pause, turn=undecided * _TURN, all_units=all_units)


async def _park(
    work: WorkStore, claimed: ClaimedUnit, *, pause: float, turn: float, all_units: bool = False
) -> None:
    """Park a unit for some seconds, and for some more with each unit of its tenant that is parked."""
    unit = claimed.unit
    await work.store.run(
        "park",
        keys.prefix(unit.tenant),
        unit.job,
        unit.name,
        claimed.token,
        int(pause * 1000),
        int(all_units),
        int(turn * 1000),
        int(_LONGEST * 1000),
    )
    await tenants.wake(work.store, unit.tenant)
