"""Batches: upload, progress with the cost so far and a forecast, rows, cancellation and download."""

from __future__ import annotations

from decimal import Decimal

from starlette.responses import JSONResponse, Response, StreamingResponse

from orchestrator.api.routes.batches import lines, row_defaults, row_pages
from orchestrator.api.uploads import received
from orchestrator.console.access import Asked, redirect
from orchestrator.console.jobs import EXPORTS
from orchestrator.console.pages import HEADERS, HOME, whole_number
from orchestrator.jobs.store import MAX_PAGE
from orchestrator.rendering.exports import export_pages
from orchestrator.rendering.forms.columns import facts, table
from orchestrator.rendering.forms.jobs import BATCHES, ROWS, state
from orchestrator.rendering.kinds import MEDIA
from posology.errors import InvalidQuery
from posology.published.jobs import BatchOutput
from posology.store import keys

#: batches, and rows of one, on a page
_PAGE, _ROWS = 20, 30
#: more than a batch may have
_MOST_ROWS = 10**9
#: rows that a download reads at once
_AT_ONCE = min(100, MAX_PAGE)
#: columns of the list
_LISTED = "batch, state, created, rows, rejected, cost so far"
#: name of the download of all rows with everything
_LINES = "jsonl"


async def listed(asked: Asked) -> Response:
    """Show a page of batches, newest first, and the form that uploads one."""
    cursor = asked.request.query_params.get("cursor") or None
    found = await asked.api.batches().page(tenant=asked.own, cursor=cursor, limit=_PAGE)
    return asked.page(
        "batches.html",
        batches=table(BATCHES, found.batches, _LISTED),
        next=found.next,
        model=asked.api.settings.model,
        key=keys.new_id("form"),
    )


async def uploaded(asked: Asked) -> Response:
    """Submit a file as a batch, and return the address of its page as JSON."""
    query = asked.request.query_params
    given = {name: query[name] for name in ("model", "max_cost_usd") if query.get(name)}
    api, tenant = asked.api, asked.own
    async with api.uploads.of(tenant), received(asked.request, api.limits) as upload:
        made = await api.batches().submit(
            upload, tenant=tenant, key=query.get("key") or None, defaults=row_defaults(**given)
        )
    return JSONResponse({"page": f"{HOME}/batches/{made.id}"}, headers=dict(HEADERS))


async def shown(asked: Asked) -> Response:
    """Show a batch with a page of its rows."""
    batch = asked.request.path_params["batch"]
    given = asked.request.query_params.get("after") or "-1"
    after = whole_number(given, "after", least=-1, most=_MOST_ROWS)
    found = await asked.api.batches().get(batch, tenant=asked.own)
    rows = await asked.api.batches().rows(batch, tenant=asked.own, after=after, limit=_ROWS)
    return asked.page(
        "batch.html",
        batch=found,
        state=state(found.state),
        cost=facts(BATCHES, found, "cost so far"),
        ended=_ended(found),
        forecast=_forecast(found),
        rows=table(ROWS, rows),
        next=rows[-1].row if len(rows) == _ROWS else None,
        exports=(_LINES, *(form.value for form in EXPORTS)),
    )


async def cancelled(asked: Asked) -> Response:
    """Cancel the rows of a batch that have not ended; a large batch may take several requests."""
    batch, seconds = asked.request.path_params["batch"], asked.api.limits.cancellation
    await asked.api.batches().cancel(batch, tenant=asked.own, seconds=seconds)
    return redirect(f"{HOME}/batches/{batch}")


async def downloaded(asked: Asked) -> Response:
    """Return all rows as JSON lines, citations or a table."""
    batch, named = asked.request.path_params["batch"], asked.request.path_params["form"]
    form = next((form for form in EXPORTS if form == named), None)
    if form is None and named != _LINES:
        raise InvalidQuery(f"unknown format {named!r}: use {_LINES}, {', '.join(EXPORTS)}", field="format")  # fmt: skip
    batches, tenant = asked.api.batches(), asked.own
    first = await batches.rows(batch, tenant=tenant, limit=_AT_ONCE)
    ending = _LINES if form is None else EXPORTS[form]
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{batch}.{ending}"'}
    if form is None:
        found = lines(batches, tenant, batch, first, _AT_ONCE)
        return StreamingResponse(found, headers=headers, media_type="application/x-ndjson")
    every = row_pages(batches, tenant, batch, first, _AT_ONCE)
    return StreamingResponse(export_pages(every, form), headers=headers, media_type=MEDIA[form])


def _ended(batch: BatchOutput) -> int:
    return sum(count for state, count in batch.states.items() if state.over)


def _forecast(batch: BatchOutput) -> Decimal | None:
    """Return the dollars of the whole batch at the mean known cost of ended rows; ``None``: none has ended, or all."""
    ended, jobs = _ended(batch), batch.total - batch.rejected
    if not ended or batch.over:
        return None
    return batch.known_cost_usd / ended * jobs
