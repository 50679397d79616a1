"""Records of batches in Redis, and the ids that they have."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Mapping
from typing import Final, cast

from orchestrator.jobs.records import due
from orchestrator.jobs.store import MAX_KEY, JobStore
from posology.budget.ledger.base import dollars
from posology.errors import BatchNotFound, InvalidQuery
from posology.published.jobs import BatchOutput
from posology.store import keys
from posology.store.connection import translated
from posology.store.keys import at
from posology.types.jobs import OVER, BatchState, JobState

_ID = re.compile(r"batch_[0-9a-f]{28}")
_STATE: Final = "state:"


def batch_id(tenant: str, key: str) -> str:
    """The id of the batch that a key stands for.

    Raises:
        InvalidQuery: no key can be that.
    """
    if not (0 < len(key) <= MAX_KEY and key.isprintable()):
        raise InvalidQuery(
            f"an idempotency key must have 1 to {MAX_KEY} printable characters (got {len(key)})",
            field="key",
        )
    return f"batch_{hashlib.sha256(f'{tenant} {key}'.encode()).hexdigest()[:28]}"


async def find(store: JobStore, batch: str, tenant: str) -> dict[str, str]:
    """Return the record of a batch.

    Raises:
        BatchNotFound: the tenant has no such batch, or its record has expired.
        StoreUnavailable: Redis is unreachable.
    """
    prefix = keys.prefix(tenant)
    if _ID.fullmatch(batch):
        with translated(store.url):
            record = await cast(
                "Awaitable[dict[str, str]]", store.redis.hgetall(f"{prefix}batch:{batch}")
            )
        if "digest" in record:
            return record
    raise BatchNotFound(f"there is no batch {batch}, or it has expired", batch=batch)


def output(batch: str, tenant: str, record: Mapping[str, str]) -> BatchOutput:
    """Return the published form of a batch's record."""
    states = {
        JobState(name.removeprefix(_STATE)): int(count)
        for name, count in record.items()
        if name.startswith(_STATE) and count != "0"
    }
    total, rejected = int(record["total"]), int(record["rejected"])
    cancelled = "cancelled" in record
    # no further row of a cancelled batch becomes a job
    rows = rejected + sum(states.values()) if cancelled else total
    ended = rejected + sum(count for state, count in states.items() if state in OVER)
    over = ended == rows
    return BatchOutput(
        id=batch,
        tenant=tenant,
        created=at(record["created"]),
        state=BatchState.CANCELLED
        if cancelled
        else BatchState.ENDED
        if over
        else BatchState.RUNNING,
        cancelled=at(record["cancelled"]) if cancelled else None,
        total=total,
        rejected=rejected,
        states=states,
        known_cost_usd=dollars(record["known_nano"]),
        unknown_costs=int(record["unknown_costs"]),
        calls_wanted=int(record.get("lane_wanted", 0)),
        calls_sent=int(record.get("lane_sent", 0)),
        due=due(record["lane_last"]) if int(record.get("lane_sent", 0)) else None,
        over=over,
    )
