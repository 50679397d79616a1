"""Estimates and spending at a service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from posology.client.wire import LOADING, Base, read
from posology.published.estimates import EstimateOutput
from posology.published.money import SpendOutput
from posology.types import Grouping


class Money(Base):
    """Asks what questions will cost, and what was spent."""

    async def estimate(
        self, questions: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]]
    ) -> EstimateOutput:
        """Estimate the cost of questions by each strategy; no model is called, and nothing is reserved.

        Args:
            questions: a question or request, or several.

        Raises:
            InvalidQuery: the only question cannot be asked; of several, it stands in ``bad``.
            UnpricedModel: the price of the only question's model is unknown.
        """
        body = (
            _request(questions)
            if isinstance(questions, str | Mapping)
            else [_request(one) for one in questions]
        )
        reply = await self._wire.request(
            "POST", "/v1/estimate", repeatable=True, json=body, **self._patient(LOADING)
        )
        return read(EstimateOutput, reply.content)

    async def spend(
        self,
        *,
        by: Grouping | str = Grouping.DAY,
        since: date | str | None = None,
        until: date | str | None = None,
    ) -> SpendOutput:
        """Return the tenant's spending in a range of days, and its balances now.

        Args:
            by: grouping: ``day``, ``stage``, ``strategy`` or ``model``.
            since: first day, UTC, a date or ``YYYY-MM-DD``; ``None``: 29 days before the last day.
            until: last day, UTC, inclusive, written likewise; ``None``: today.

        Raises:
            InvalidQuery: there is no such grouping or day, or there are too many days.
        """
        # the text of a date is its ISO form, and that of a grouping its word
        query = {"by": str(by)}
        query |= {
            name: str(day) for name, day in (("since", since), ("until", until)) if day is not None
        }
        reply = await self._wire.request("GET", "/v1/spend", repeatable=True, params=query)
        return read(SpendOutput, reply.content)


def _request(question: str | Mapping[str, Any]) -> dict[str, Any]:
    return {"question": question} if isinstance(question, str) else dict(question)
