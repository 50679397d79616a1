"""Which worker process works on a job."""

from __future__ import annotations

import json

from orchestrator.jobs.store import JobStore
from posology.store import keys
from posology.store.keys import DEFAULT_TENANT


async def holder(store: JobStore, job: str) -> int:
    """The process id of the worker that holds the answer of a job of the default tenant."""
    found = await store.redis.hget(f"{keys.prefix(DEFAULT_TENANT)}job:{job}:units", "answer")
    return int(json.loads(str(found))["w"].rpartition(":")[2])
