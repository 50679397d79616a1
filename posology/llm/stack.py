"""Puts the wrappers around an adapter, in the one order that is right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from posology.llm.accounting import Accounting
from posology.llm.headroom import Headroom
from posology.llm.memo import Memo
from posology.llm.rate_limit import Limiter, RateLimit
from posology.llm.retry import Retry, RetryPolicy
from posology.llm.series import Counted
from posology.llm.structured import Structured, verdict
from posology.seams import Bound, Complete, Journal, Meter, Prices, Recall

#: seconds: longer than a call takes, after which what it held is free
PATIENCE = 90.0


def build(
    adapter: Complete,
    *,
    journal: Journal,
    prices: Prices,
    bound: Bound,
    retry: RetryPolicy | None = None,
    limit: anyio.CapacityLimiter | None = None,
    recall: Recall | None = None,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    patience: float = PATIENCE,
    crowd: int | None = None,
    meter: Meter | None = None,
    owner: str | None = None,
) -> Complete:
    """Structured → memo → retry → headroom → rate limit → limiter → accounting → adapter, outermost first.

    A repair is a call of its own, so it is retried and accounted for like any other; a wait, be it
    between attempts or for money, holds no place in the limiter; and every attempt passes the account.

    Args:
        adapter: talks to a provider; shared by all stacks of a process, as are its connections.
        journal: takes the entry of every attempt.
        prices: see :class:`posology.budget.prices.book.PriceBook`.
        bound: see :mod:`posology.budget.bounds.calls`.
        retry: ``None``: the default policy.
        limit: shared by all stacks of one provider; ``None``: no limit.
        recall: gives the replies that the same work was given before; ``None``: nothing is replayed.
        sleep: waits between attempts, and for money.
        patience: seconds that an attempt waits while calls under way hold what is left of a limit.
        crowd: how many attempts may wait so; ``None``: any number.
        meter: of the tenant's requests and tokens a minute; ``None``: they are not limited.
        owner: whose calls these are, see :class:`~posology.llm.rate_limit.RateLimit`.
    """
    counted = Counted(bound)
    accounted = Accounting(adapter, journal=journal, prices=prices, bound=counted, verdict=verdict)
    limited = accounted if limit is None else Limiter(accounted, places=limit)
    metered = (
        limited if meter is None else RateLimit(limited, meter=meter, bound=counted, owner=owner)
    )
    waiting = Headroom(metered, patience=patience, crowd=crowd, sleep=sleep)
    retried = Retry(waiting, policy=retry, sleep=sleep)
    return Structured(retried if recall is None else Memo(retried, recall=recall))
