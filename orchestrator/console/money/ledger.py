"""The ledger page by page, and its audit."""

from __future__ import annotations

from starlette.responses import Response

from orchestrator.console.access import Asked, redirect
from orchestrator.console.money.audits import Audits, begin
from orchestrator.console.pages import HOME
from orchestrator.jobs.events import check_event
from orchestrator.rendering.forms.columns import Cell, Column, Kind, Tone, table
from orchestrator.rendering.forms.jobs import job_cell
from orchestrator.rendering.words import money
from posology.budget.books.reader import Entry, Reader
from posology.budget.ledger.base import dollars
from posology.store.keys import at

#: entries on a page
_PAGE = 40


def _charged(entry: Entry) -> Cell | None:
    """Return the charge of an attempt; ``None``: it is open."""
    if entry.charged is None:
        return None
    return Cell(text=money(dollars(entry.charged)), note="" if entry.known else "bound")


_COLUMNS: tuple[Column[Entry], ...] = (
    Column("time", lambda one: at(one.place.partition("-")[0]), Kind.TIME),
    Column("entry", lambda one: one.kind),
    Column("job or run", lambda one: job_cell(one.job)),
    Column("model", lambda one: one.fields.get("model")),
    Column("stage", lambda one: one.fields.get("stage")),
    Column("reserved", lambda one: dollars(one.reserved), Kind.NUMBER),
    Column("spent", lambda one: dollars(one.spent), Kind.NUMBER),
    Column("charged", _charged, Kind.NUMBER),
)


async def shown(asked: Asked) -> Response:
    """Show a page of the ledger, newest entries first, below its last audit."""
    before = asked.request.query_params.get("before") or None
    if before is not None:
        check_event(before)
    store = asked.api.jobs()
    found = await Reader(store.redis, store.url, asked.own, size=_PAGE).back(before)
    return asked.page(
        "ledger.html",
        entries=table(_COLUMNS, found, tone=lambda one: Tone.BAD if one.kind == "lose" else None),
        next=found[-1].place if len(found) == _PAGE else None,
        audited=await Audits(store.redis, store.url, asked.own).last(),
    )


async def audited(asked: Asked) -> Response:
    """Begin an audit of the tenant's own ledger."""
    return await begin(asked, asked.own, redirect(f"{HOME}/money/ledger"))
