"""The stack of wrappers around an adapter, in the one order that is right."""

from __future__ import annotations

from posology.llm.accounting import Accounting
from posology.llm.admission import Headroom, Limiter, RateLimit
from posology.llm.calls import Attempting, Caller
from posology.llm.capacity import Capacity, InTier
from posology.llm.memo import Memo
from posology.llm.models.families import tier_of
from posology.llm.providers.places import Places
from posology.llm.retry import Retry, RetryPolicy
from posology.llm.second import SecondCalls
from posology.llm.structured import Structured, verdict
from posology.seams import Bound, Complete, Journal, Prices, Send


def build(
    adapter: Send,
    *,
    journal: Journal,
    prices: Prices,
    bound: Bound,
    retry: RetryPolicy | None = None,
    limit: Places | None = None,
    caller: Caller = Caller(),  # noqa: B008 - a frozen value
) -> Complete:
    """Build structured → memo → tier → retry → capacity → headroom → rate limit → limiter → accounting → adapter.

    The outermost is first; tier and capacity stand there only in another lane than the standard one. A repair is a call of its own, so it is retried and accounted for like any other;
    a wait, between attempts or for budget, occupies no place in the limiter; and every attempt is entered in
    the account.

    Args:
        adapter: talks to a provider; shared by all stacks of a process, with its connections.
        journal: takes the entry of every attempt.
        prices: see :class:`posology.budget.prices.book.PriceBook`.
        bound: see :mod:`posology.budget.bounds.calls`.
        retry: ``None``: the default policy.
        limit: shared by all stacks of one provider; ``None``: no limit.
        caller: for whom the calls are made.
    """
    attempt: Attempting = Accounting(
        adapter, journal=journal, prices=prices, bound=bound, verdict=verdict
    )
    if limit is not None:
        attempt = Limiter(attempt, places=limit)
    if caller.meter is not None:
        attempt = RateLimit(attempt, meter=caller.meter, bound=bound, owner=caller.owner)
    attempt = Headroom(
        attempt,
        wait_timeout=caller.wait_timeout,
        max_waiters=caller.max_waiters,
        sleep=caller.sleep,
    )
    tier = tier_of(caller.lane)
    if tier == "flex":
        attempt = Capacity(
            attempt,
            timeout=caller.capacity_timeout,
            place_timeout=caller.wait_timeout if caller.requeued else None,
            standard=caller.lane == "flex-then-standard",
            sleep=caller.sleep,
        )
    complete: Complete = Retry(attempt, policy=retry, sleep=caller.sleep)
    if tier != "standard":
        complete = InTier(complete, tier=tier)
    if caller.recall is not None:
        complete = Memo(complete, recall=caller.recall)
    return Structured(complete, SecondCalls(prices=prices, bound=bound))
