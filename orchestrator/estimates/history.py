"""What a tenant's calls took in the last days, as the ledger's figures say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from redis.asyncio import Redis

from orchestrator.estimates.typical import Figures, Label
from posology.budget.windows import day_of
from posology.store import keys
from posology.store.connection import translated

#: days; what was usual a year ago may be so no more
DAYS = 30


async def read_history(
    redis: Redis, url: str, tenant: str, *, now: datetime | None = None
) -> Mapping[Label, Figures]:
    """Sums of all calls by stage, strategy and model.

    Args:
        redis: the connection.
        url: for messages.
        tenant: whose calls.
        now: the time; ``None``: this machine's, as a day more or less makes no difference.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    today = now or datetime.now(UTC)
    with translated(url):
        async with redis.pipeline(transaction=False) as pipe:
            for back in range(DAYS):
                day = day_of(today - timedelta(days=back))
                pipe.hgetall(f"{keys.prefix(tenant)}money:by:{day}")
            days: list[dict[str, str]] = await pipe.execute()
    sums: dict[Label, Counter[str]] = {}
    for day_figures in days:
        for name, value in day_figures.items():
            what, stage, strategy, model = name.split("|", 3)
            label = Label(stage=stage, strategy=strategy, model=model)
            sums.setdefault(label, Counter())[what] += int(value)
    return {label: _figures(sum_) for label, sum_ in sums.items()}


def _figures(sums: Mapping[str, int]) -> Figures:
    # an attempt of unknown usage counts no tokens, and so must not count itself
    known = max(0, sums.get("attempts", 0) - sums.get("unknown", 0))
    if not known:
        return Figures(attempts=0, input=0, output=0)
    return Figures(attempts=known, input=sums.get("input", 0), output=sums.get("output", 0))
