"""What a tenant's calls took in the last days, as the ledger's figures say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from redis.asyncio import Redis

from orchestrator.question.estimates.typical import Figures, Label
from posology.budget.spending.figures import figures
from posology.budget.spending.periods import period


async def read_history(redis: Redis, url: str, tenant: str) -> Mapping[Label, Figures]:
    """Sums of all calls by stage, strategy and model, of as many days as a report has where nobody says.

    Args:
        redis: the connection.
        url: for messages.
        tenant: whose calls.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    days = period(None, None, today=datetime.now(UTC).date())
    sums: dict[Label, Counter[str]] = {}
    async for one in figures(redis, url, tenant, days):
        label = Label(stage=one.stage, strategy=one.strategy, model=one.model)
        sums.setdefault(label, Counter())[one.what] += one.n
    return {label: _figures(sum_) for label, sum_ in sums.items()}


def _figures(sums: Mapping[str, int]) -> Figures:
    # an attempt of unknown usage counts no tokens, and so must not count itself
    known = max(0, sums.get("attempts", 0) - sums.get("unknown", 0))
    if not known:
        return Figures(attempts=0, input=0, output=0)
    return Figures(attempts=known, input=sums.get("input", 0), output=sums.get("output", 0))
