"""Puts the wrappers around an adapter, in the one order that is right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import anyio

from posology.llm.accounting import Accounting, Price
from posology.llm.limiter import Limiter
from posology.llm.retry import Retry, RetryPolicy
from posology.llm.structured import Structured, verdict
from posology.seams import Complete, Journal


def build(
    adapter: Complete,
    *,
    journal: Journal,
    price: Price,
    retry: RetryPolicy | None = None,
    limit: anyio.CapacityLimiter | None = None,
    calls: Iterator[int] | None = None,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> Complete:
    """Structured → retry → limit → accounting → adapter, outermost first.

    A repair is a call of its own, so it is retried and accounted for like any other; a wait between
    attempts holds no place in the limiter; and every attempt passes the account.

    Args:
        adapter: talks to a provider; shared by all stacks of a process, as are its connections.
        journal: takes the entry of every attempt.
        price: see :func:`posology.budget.prices.price`.
        retry: ``None``: the default policy.
        limit: shared by all stacks of one provider; ``None``: no limit.
        calls: numbers of calls; stacks that write to one journal share it, e.g. one
            ``itertools.count(1)`` a run.
        sleep: waits between attempts.
    """
    accounted = Accounting(adapter, journal=journal, price=price, calls=calls, verdict=verdict)
    limited = accounted if limit is None else Limiter(accounted, places=limit)
    return Structured(Retry(limited, policy=retry, sleep=sleep))
