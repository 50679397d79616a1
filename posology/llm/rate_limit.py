"""Takes each attempt's share of the tenant's minute before it is sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from uuid import uuid4

import anyio

from posology.errors import CallTooLarge, HeadroomReserved, StoreUnavailable
from posology.llm import series
from posology.llm.memo import call_key
from posology.seams import Bound, Complete, Meter
from posology.types import Call, Completion, Limits, Scope

#: seconds for which a grant holds: the minute that it was taken from
GRANTED = 60.0


class RateLimit:
    """Lets an attempt pass when the tenant's minute has room for it: one request, and the tokens that it may take.

    It stands within headroom, which waits, and outside the limiter. What was granted is kept with the call
    while it waits for money, for a minute at most, and taken anew for the next attempt. What costs nothing counts, too.

    Args:
        inner: gets the call.
        meter: of the tenant.
        bound: the tokens that a call's input can have at most.
        owner: whose calls these are: with a call's content it is the ticket. A unit of a job gives
            ``job|unit``, so that whoever parks it can take its tickets out; ``None``: a new name.
        clock: seconds, from any origin.
    """

    def __init__(
        self,
        inner: Complete,
        *,
        meter: Meter,
        bound: Bound,
        owner: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._meter = meter
        self._bound = bound
        self._owner = owner or uuid4().hex
        self._clock = clock

    async def __call__(self, call: Call) -> Completion:
        """Send one call when the tenant's minute has room for it.

        Raises:
            HeadroomReserved: it has none yet, or the call waits for money with its share granted.
            CallTooLarge: it never will.
            StoreUnavailable: it is not known; nothing was sent.
        """
        limits = await self._meter.limits()
        wanted = self._wanted(call, limits)
        if not wanted:
            return await self._inner(call)
        run, ticket = series.current(), f"{self._owner}|{call_key(call)}"
        await self._take(ticket, wanted, limits, run)
        try:
            completion = await self._inner(call)
        except HeadroomReserved:
            # it was not sent: it waits for money, and its share waits with it, also where another worker goes on
            if not run.kept:
                left = min(run.granted.values()) + GRANTED - self._clock()
                await self._meter.keep([Scope(one) for one in run.granted], left, ticket=ticket)
                run.kept = True
            raise
        except BaseException:
            await self._used(ticket, run)
            raise
        await self._used(ticket, run)
        return completion

    async def _used(self, ticket: str, run: series.Series) -> None:
        """The attempt was made, so the next one takes anew."""
        run.granted, kept, run.kept = {}, run.kept, False
        if kept:
            # what is not taken back holds for a minute, and is one attempt's
            with suppress(StoreUnavailable):
                await self._meter.keep((), 0.0, ticket=ticket)

    async def _take(
        self, ticket: str, wanted: Mapping[Scope, int], limits: Limits, run: series.Series
    ) -> None:
        now = self._clock()
        run.granted = {scope: at for scope, at in run.granted.items() if now - at < GRANTED}
        missing = {scope: cost for scope, cost in wanted.items() if scope not in run.granted}
        if not missing:
            return
        if run.kept:
            # it was of a minute that is over
            await self._meter.keep((), 0.0, ticket=ticket)
            run.kept = False
        taken = await self._meter.take(missing, limits, ticket=ticket)
        run.granted = {**run.granted, **dict.fromkeys(taken.granted, now)}
        if taken.refused is not None:
            raise HeadroomReserved(
                _MESSAGES[taken.refused].format(limits=limits),
                scope=taken.refused,
                asked=None,
                place=taken.place,
                retry_after=taken.retry_after,
            )

    def _wanted(self, call: Call, limits: Limits) -> dict[Scope, int]:
        wanted = {}
        if limits.requests_per_minute is not None:
            wanted[Scope.REQUESTS] = 1
        most = limits.tokens_per_minute
        if most is not None:
            tokens = wanted[Scope.TOKENS] = self._bound(call) + call.max_tokens
            if tokens > most:
                raise CallTooLarge(
                    f"the call may take {tokens:,} tokens, and the tenant has {most:,} in a minute: ask for "
                    "fewer passages or a lower max_tokens, or raise the limit",
                    model=call.model,
                    tokens=tokens,
                    limit=most,
                )
        return wanted


_AGAIN = "it may be tried again when the minute has room"
_MESSAGES: Mapping[str, str] = {
    Scope.REQUESTS: f"the tenant's {{limits.requests_per_minute:,}} requests a minute are used up: {_AGAIN}",
    Scope.TOKENS: f"the tenant's {{limits.tokens_per_minute:,}} tokens a minute are used up: {_AGAIN}",
    "turn": f"others of the tenant wait who came first: {_AGAIN}",
}


class Limiter:
    """Waits for a place before each attempt, and gives it back after.

    It stands within retry, so that a call that waits for its next attempt holds no place.

    Args:
        inner: gets the call.
        places: shared by all calls to one provider in this process.
    """

    def __init__(self, inner: Complete, *, places: anyio.CapacityLimiter) -> None:
        self._inner = inner
        self._places = places

    async def __call__(self, call: Call) -> Completion:
        """Send one call when there is a place."""
        async with self._places:
            return await self._inner(call)
