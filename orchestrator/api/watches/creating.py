"""Watches that requests create, by HTTP and by tools of assistants."""

from __future__ import annotations

from fastapi import Request

from orchestrator.api.adding.files import allowed
from orchestrator.api.context import Context
from orchestrator.watches.request import WatchRequest
from orchestrator.watches.store import WatchStore
from posology.published.watches.forms import WatchOutput


async def create_watch(
    request: Request, api: Context, tenant: str, asked: WatchRequest
) -> tuple[WatchOutput, bool]:
    """Create a watch, unless the tenant has the same one; return it, and whether it is new.

    Raises:
        InvalidQuery: the question cannot be watched.
        IngestNotAllowed: it is live, and the tenant may not add literature.
    """
    settled = asked.settled(api.settings)
    if settled.live is not None:
        await allowed(request, api, tenant)
    return await WatchStore(api.jobs()).create(
        settled, settled.seconds, tenant=tenant, live=settled.live
    )
