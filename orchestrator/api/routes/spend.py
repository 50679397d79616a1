"""Spending over HTTP: a tenant's own."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BeforeValidator

from orchestrator.api.context import Posology, Tenant
from orchestrator.api.documents import fails, shows
from orchestrator.api.routes.jobs import answered
from orchestrator.spending import spend_output, today
from posology import errors
from posology.budget.spending.periods import DAYS, MAX_DAYS, period, read_date
from posology.published.money import SpendOutput
from posology.types import Grouping

router = APIRouter(prefix="/v1/spend", tags=["spend"])


class By(StrEnum):
    """What a tenant's spending is told apart by."""

    DAY = "day"
    STAGE = "stage"
    STRATEGY = "strategy"
    MODEL = "model"


def _day(text: Any) -> Any:
    # pydantic takes seconds since 1970 for a day, too
    try:
        return read_date(text, "day") if isinstance(text, str) else text
    except errors.InvalidQuery:
        raise ValueError("it is no day, such as 2026-01-15") from None


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
    "groups": [{**_AMOUNTS, "name": "openai:gpt-4o-mini"}],
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
    summary="What was spent, and how the limits stand",
    response_model=SpendOutput,
    responses={
        200: shows("Amounts are dollars. Calls of unknown cost count at their bounds.", _EXAMPLE),
        **fails(
            errors.InvalidQuery(
                f"since: a report has {MAX_DAYS} days at most: ask for several", field="since"
            )
        ),
    },
)
async def spend(
    api: Posology,
    tenant: Tenant,
    *,
    by: Annotated[By, Query(description="What is told apart.")] = By.DAY,
    since: Annotated[
        Day | None,
        Query(
            description=f"The first day, UTC; where it is not given, the last {DAYS} days are meant."
        ),
    ] = None,
    until: Annotated[
        Day | None, Query(description="The last day, UTC; today where it is not given.")
    ] = None,
) -> Response:
    """The days are those on which a call was reserved; the balances are as they are now."""
    days = period(since, until, today=today())
    store = api.jobs()
    out = await spend_output(store.redis, store.url, [tenant], days, Grouping(by.value), one=True)
    return answered(out)
