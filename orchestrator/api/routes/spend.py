"""Spending of a tenant over HTTP."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BeforeValidator

from orchestrator.api.context import Posology, Tenant
from orchestrator.api.examples import fails, shows
from orchestrator.api.routes.jobs import answered
from orchestrator.spending import spend_output, today
from posology import errors
from posology.budget.spending.periods import DAYS, MAX_DAYS, period, read_date
from posology.published.money import SpendOutput
from posology.types import Grouping

router = APIRouter(prefix="/v1/spend", tags=["spend"])


class By(StrEnum):
    """Groupings of a tenant's own spending."""

    DAY = "day"
    MONTH = "month"
    STAGE = "stage"
    STRATEGY = "strategy"
    MODEL = "model"
    TIER = "tier"


def _day(text: Any) -> Any:
    # pydantic would accept seconds since 1970 as a day
    try:
        return read_date(text, "day") if isinstance(text, str) else text
    except errors.InvalidQuery:
        raise ValueError("not a day; write e.g. 2026-01-15") from None


Day = Annotated[date, BeforeValidator(_day)]
_AMOUNTS = {
    "attempts": 12,
    "charged_usd": "0.0213",
    "at_bounds_usd": "0.0021",
    "unknown_costs": 1,
    "input_tokens": 48210,
    "output_tokens": 3104,
}
_EXAMPLE: dict[str, Any] = {
    "tenant": "acme",
    "by": "model",
    "since": "2026-01-01",
    "until": "2026-01-15",
    "groups": [{**_AMOUNTS, "name": "openai:gpt-6-luna"}],
    "total": _AMOUNTS,
    "balances": [
        {
            "tenant": "acme",
            "scope": "day",
            "cap_usd": "5",
            "spent_usd": "0.0213",
            "reserved_usd": "0.0021",
            "left_usd": "4.9766",
            "resets": "2026-01-16T00:00:00Z",
        }
    ],
}


@router.get(
    "",
    operation_id="getSpend",
    summary="Get spending and balances",
    response_model=SpendOutput,
    responses={
        200: shows("Spending in dollars; calls of unknown cost count at their bounds.", _EXAMPLE),
        **fails(
            errors.InvalidQuery(
                f"since: a report has at most {MAX_DAYS} days: ask for several", field="since"
            )
        ),
    },
)
async def spend(
    api: Posology,
    tenant: Tenant,
    *,
    by: Annotated[
        By, Query(description="Grouping: day, month, stage, strategy, model or tier. Default: day.")
    ] = By.DAY,
    since: Annotated[
        Day | None,
        Query(description=f"First day, UTC. Default: {DAYS - 1} days before the last day."),
    ] = None,
    until: Annotated[
        Day | None, Query(description="Last day, UTC, inclusive. Default: today.")
    ] = None,
) -> Response:
    """Return spending in a range of days, and the balances now. A call belongs to the day of its reservation."""
    days = period(since, until, today=today())
    store = api.jobs()
    out = await spend_output(
        store.redis, store.url, [tenant], days, Grouping(by.value), single=True
    )
    return answered(out)
