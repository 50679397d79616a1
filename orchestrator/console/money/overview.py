"""Windows of limits against their caps, and spending by day, model and stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from starlette.responses import Response

from orchestrator.console.access import Asked
from orchestrator.spending import spend_output, today
from posology.budget.spending.periods import period
from posology.published.money import BalanceOutput, SpendOutput
from posology.types import Grouping

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


async def shown(asked: Asked) -> Response:
    """Show balances now and the spending of 30 days."""
    store, tenant, days = asked.api.jobs(), asked.own, period(None, None, today=today())
    reports = {
        by: await spend_output(store.redis, store.url, [tenant], days, by, single=True)
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
