"""The ledger page by page, and its audit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from starlette.responses import Response

from orchestrator.console.access import Asked, redirect
from orchestrator.console.money.audits import Audits, begin
from orchestrator.console.pages import HOME
from orchestrator.jobs.events import check_event
from posology.budget.books.reader import Entry, Reader
from posology.budget.ledger.base import dollars
from posology.store.keys import at

#: entries on a page
_PAGE = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """An entry of the ledger."""

    at: datetime
    entry: Entry
    reserved: Decimal
    spent: Decimal
    #: ``None``: the attempt is open
    charged: Decimal | None


async def shown(asked: Asked) -> Response:
    """Show a page of the ledger, newest entries first, below its last audit."""
    before = asked.request.query_params.get("before") or None
    if before is not None:
        check_event(before)
    store = asked.api.jobs()
    found = await Reader(store.redis, store.url, asked.own, size=_PAGE).back(before)
    return asked.page(
        "ledger.html",
        lines=tuple(map(_line, found)),
        next=found[-1].place if len(found) == _PAGE else None,
        audited=await Audits(store.redis, store.url, asked.own).last(),
    )


async def audited(asked: Asked) -> Response:
    """Begin an audit of the tenant's own ledger."""
    return await begin(asked, asked.own, redirect(f"{HOME}/money/ledger"))


def _line(entry: Entry) -> Line:
    milliseconds = entry.place.partition("-")[0]
    return Line(
        at=at(milliseconds),
        entry=entry,
        reserved=dollars(entry.reserved),
        spent=dollars(entry.spent),
        charged=None if entry.charged is None else dollars(entry.charged),
    )
