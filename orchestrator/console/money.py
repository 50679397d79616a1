"""Money: windows against their caps, spending by day, model and stage, and the ledger page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from starlette.responses import Response

from orchestrator.console.access import Asked
from orchestrator.jobs.events import check_event
from orchestrator.spending import spend_output, today
from posology.budget.books.reader import Entry, Reader
from posology.budget.ledger.base import dollars
from posology.budget.spending.periods import period
from posology.published.money import BalanceOutput, SpendOutput
from posology.store.keys import at
from posology.types import Grouping

#: entries of the ledger on a page
_PAGE = 40
#: groups that a page shows
_GROUPS = 30
_WHOLE = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Meter:
    """A window of a limit, in percent of its cap."""

    balance: BalanceOutput
    #: ``None``: there is no cap
    spent: float | None
    reserved: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """A group of a report, in percent of the largest."""

    name: str
    charged: Decimal
    attempts: int
    width: float


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
    """Show balances now and the spending of 30 days."""
    store, tenant, days = asked.api.jobs(), asked.own, period(None, None, today=today())
    reports = {
        by: await spend_output(store.redis, store.url, [tenant], days, by, one=True)
        for by in (Grouping.DAY, Grouping.MODEL, Grouping.STAGE)
    }
    by_day = reports[Grouping.DAY]
    return asked.page(
        "money.html",
        days=days,
        total=by_day.total,
        meters=meters(by_day.balances),
        reports={by.value: _shares(report) for by, report in reports.items()},
    )


async def ledger(asked: Asked) -> Response:
    """Show a page of the ledger, newest entries first."""
    before = asked.request.query_params.get("before") or None
    if before is not None:
        check_event(before)
    store = asked.api.jobs()
    found = await Reader(store.redis, store.url, asked.own, size=_PAGE).back(before)
    lines = tuple(_line(entry) for entry in found)
    following = found[-1].place if len(found) == _PAGE else None
    return asked.page("ledger.html", lines=lines, next=following)


def meters(balances: Sequence[BalanceOutput]) -> tuple[Meter, ...]:
    """Return balances as bars."""
    return tuple(map(_meter, balances))


def _meter(balance: BalanceOutput) -> Meter:
    cap = balance.cap_usd
    if cap is None:
        return Meter(balance=balance, spent=None, reserved=0.0)
    spent = _percent(balance.spent_usd, cap)
    return Meter(
        balance=balance,
        spent=spent,
        reserved=min(_percent(balance.reserved_usd, cap), _WHOLE - spent),
    )


def _percent(part: Decimal, whole: Decimal) -> float:
    if whole <= 0:
        return float(_WHOLE)
    return round(min(float(part / whole) * _WHOLE, _WHOLE), 2)


def _shares(report: SpendOutput) -> tuple[Share, ...]:
    # days are in order, and the newest are of interest
    some = report.groups[-_GROUPS:] if report.by.of_time else report.groups[:_GROUPS]
    most = max((one.charged_usd for one in some), default=Decimal(0))
    return tuple(
        Share(
            name=one.name,
            charged=one.charged_usd,
            attempts=one.attempts,
            width=_percent(one.charged_usd, most) if most else 0.0,
        )
        for one in some
    )


def _line(entry: Entry) -> Line:
    milliseconds = entry.place.partition("-")[0]
    return Line(
        at=at(milliseconds),
        entry=entry,
        reserved=dollars(entry.reserved),
        spent=dollars(entry.spent),
        charged=None if entry.charged is None else dollars(entry.charged),
    )
