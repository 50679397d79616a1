"""Workers by their last heartbeat, the queues, and how the newest attempts at each model ended."""

from __future__ import annotations

from starlette.responses import Response

from orchestrator.console.access import Asked
from orchestrator.jobs import metrics, tenants
from posology.budget.books.recent import recent

#: workers on a page
_WORKERS = 200
#: tenants whose newest attempts are counted, and ledger entries of each
_TENANTS, _ENTRIES = 20, 100


async def shown(asked: Asked) -> Response:
    """Show heartbeats, queues and the error rates of providers."""
    store = asked.api.jobs()
    return asked.page(
        "workers.html",
        workers=await metrics.heartbeats(store, limit=_WORKERS),
        alive=await metrics.live_workers(store),
        queues=await metrics.queue_lengths(store),
        models=await recent(
            store.redis, store.url, await tenants.newest(store, limit=_TENANTS), each=_ENTRIES
        ),
        tenants=_TENANTS,
        entries=_ENTRIES,
    )
