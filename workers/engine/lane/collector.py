"""Works on all tenants' batch lanes. Any worker does any step."""

from __future__ import annotations

import logging
from collections.abc import Callable

from orchestrator.lane.collector import Collector, LaneOptions
from posology.concurrency import map_concurrently
from posology.errors import StoreUnavailable
from posology.seams import Prices
from posology.seams.batches import BatchEndpoint
from workers.engine.claims import WorkStore
from workers.engine.lane.records import LaneStore, tenants_of

logger = logging.getLogger(__name__)

#: tenants that are worked on at the same time
_AT_ONCE = 4


async def collect(
    work: WorkStore,
    endpoint: Callable[[str], BatchEndpoint],
    prices: Prices,
    options: LaneOptions,
) -> None:
    """Send wanted calls of all tenants, and look at their batches, as far as it is due now.

    Args:
        work: the job records.
        endpoint: returns the batch endpoint of a model.
        prices: costs of calls.
        options: times and sizes.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """

    async def step(tenant: str) -> None:
        try:
            await Collector(LaneStore(work, tenant), endpoint, prices, options).step()
        except StoreUnavailable:
            raise
        except Exception:
            # one tenant's damaged records must not stop the others' batches
            logger.exception("internal error in the batch lane tenant=%s", tenant)

    await map_concurrently(step, await tenants_of(work.store), limit=_AT_ONCE)
