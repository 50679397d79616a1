"""Pages of operators: tenants with their limits and keys, and workers."""

from __future__ import annotations

from starlette.responses import Response

from orchestrator.console.access import Asked, redirect
from orchestrator.console.money import meters
from orchestrator.console.pages import HOME
from orchestrator.jobs import metrics
from orchestrator.spending import balance_fields
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.store import Issued
from posology.errors import InvalidQuery
from posology.published.money import BalanceOutput

#: tenants, and workers, on a page
_PAGE, _WORKERS = 50, 200
#: time for which replaced keys stay valid, in seconds, and its name
GRACES = {"0": "at once", "3600": "in an hour", "86400": "in a day", "604800": "in a week"}


async def listed(asked: Asked) -> Response:
    """Show some tenants."""
    cursor = asked.request.query_params.get("cursor") or "0"
    if not (cursor.isascii() and cursor.isdecimal() and int(cursor) < 2**64):
        raise InvalidQuery(f"unknown cursor {cursor[:40]!r}", field="cursor")
    found, following = await asked.api.tenants().some(int(cursor), limit=_PAGE)
    return asked.page("tenants.html", tenants=found, next=following)


async def shown(asked: Asked) -> Response:
    """Show a tenant: limits, balances and keys."""
    return await _page(asked)


async def switched(asked: Asked) -> Response:
    """Disable a tenant, or enable it."""
    name, tenants = asked.request.path_params["tenant"], asked.api.tenants()
    match asked.form.get("to"):
        case "disabled":
            await tenants.disable(name)
        case "enabled":
            await tenants.enable(name)
        case other:
            raise InvalidQuery(f"to must be disabled or enabled (got {other!r})", field="to")
    return redirect(f"{HOME}/tenants/{name}")


async def rotated(asked: Asked) -> Response:
    """Make a new key, and show it once."""
    grace = asked.form.get("grace", "0")
    if grace not in GRACES:
        raise InvalidQuery(f"grace must be one of {', '.join(GRACES)}", field="grace")
    issued = await asked.api.tenants().rotate(
        asked.request.path_params["tenant"], grace=float(grace)
    )
    return await _page(asked, issued)


async def workers(asked: Asked) -> Response:
    """Show the workers by their last heartbeat, and the queues."""
    store = asked.api.jobs()
    found = await metrics.heartbeats(store, limit=_WORKERS)
    return asked.page(
        "workers.html",
        workers=found,
        alive=await metrics.live_workers(store),
        queues=await metrics.queue_lengths(store),
    )


async def _page(asked: Asked, issued: Issued | None = None) -> Response:
    name, store = asked.request.path_params["tenant"], asked.api.jobs()
    found = await asked.api.tenants().get(name)
    standing = await RedisLedger(store.redis, store.url, tenant=name).balances()
    balances = [BalanceOutput(**balance_fields(name, one)) for one in standing]
    return asked.page(
        "tenant.html", tenant=found, meters=meters(balances), issued=issued, graces=GRACES
    )
