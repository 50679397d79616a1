"""Windows of limits against their caps, and spending by day, model and stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from starlette.responses import Response

from orchestrator.console.access import Asked
from orchestrator.rendering.forms.money import spending
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
        reports={
            by.value: spending(_first(report), f"{by}, share, charged, attempts")
            for by, report in reports.items()
        },
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


def _first(report: SpendOutput) -> SpendOutput:
    """Return a report with the groups that a page shows: days are in order, and the newest are of interest."""
    some = report.groups[-_GROUPS:] if report.by.of_time else report.groups[:_GROUPS]
    return report.model_copy(update={"groups": some})
