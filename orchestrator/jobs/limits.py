"""Budgets that are nearly spent: each is reported once, in the log and to the tenant's webhooks."""

from __future__ import annotations

import hashlib
import json

from orchestrator.jobs.tenants import Store
from posology.budget.ledger.base import nano
from posology.budget.tenants.alerts import NearLimit
from posology.store import keys

#: seconds for which a warning is remembered; longer than any day or month
_KEPT = 40 * 86_400


async def is_first_warning(store: Store, near: NearLimit) -> bool:
    """Return whether this is the first warning of a limit in its window, remember it, and queue its webhooks.

    A changed limit is another one.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    mark = hashlib.sha256(f"{near.window} {near.cap}".encode()).hexdigest()[:16]
    told = {
        "scope": near.scope,
        "window": near.window,
        "cap_nano": str(nano(near.cap)),
        "spent_nano": str(nano(near.spent)),
    }
    said = await store.run("warn", keys.prefix(near.tenant), mark, _KEPT, json.dumps(told))
    return bool(said == "warned")
