"""Puts the wrappers around an adapter, in the one order that is right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from posology.llm.accounting import Accounting, Price
from posology.llm.limiter import Limiter
from posology.llm.memo import Memo
from posology.llm.retry import Retry, RetryPolicy
from posology.llm.structured import Structured, verdict
from posology.seams import Complete, Journal, Recall


def build(
    adapter: Complete,
    *,
    journal: Journal,
    price: Price,
    retry: RetryPolicy | None = None,
    limit: anyio.CapacityLimiter | None = None,
    recall: Recall | None = None,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> Complete:
    """Structured → memo → retry → limit → accounting → adapter, outermost first.

    A repair is a call of its own, so it is retried and accounted for like any other; a wait between
    attempts holds no place in the limiter; and every attempt passes the account.

    Args:
        adapter: talks to a provider; shared by all stacks of a process, as are its connections.
        journal: takes the entry of every attempt.
        price: see :func:`posology.budget.prices.price`.
        retry: ``None``: the default policy.
        limit: shared by all stacks of one provider; ``None``: no limit.
        recall: gives the replies that the same work was given before; ``None``: nothing is replayed.
        sleep: waits between attempts.
    """
    accounted = Accounting(adapter, journal=journal, price=price, verdict=verdict)
    limited = accounted if limit is None else Limiter(accounted, places=limit)
    retried = Retry(limited, policy=retry, sleep=sleep)
    return Structured(retried if recall is None else Memo(retried, recall=recall))
