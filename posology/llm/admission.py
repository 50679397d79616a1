"""Admission of attempts: wait for budget, take from the tenant's minute, wait for a connection."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from uuid import uuid4

import anyio

from posology.errors import CallTooLarge, HeadroomReserved, RateLimited, StoreUnavailable
from posology.llm.calls import Attempting, CallState
from posology.llm.memo import call_key
from posology.llm.providers.places import Places
from posology.seams import Bound, Meter
from posology.types import Call, Completion, Limits, Scope

#: seconds between two tries of the call that is next, and how much longer for each call before it
STEP = 0.02
#: seconds; a call that asks less often than the ledger remembers would lose its place in the queue
LONGEST = 1.0
#: seconds for which a grant holds: the minute that it was taken from
GRANTED = 60.0


class Headroom:
    """Retries while in-flight calls have reserved the rest of a limit.

    It stands within retry, so that its waits count against the call's deadline, and outside the limiter,
    so that a call that waits for budget occupies no connection.

    Args:
        inner: gets the attempt.
        wait_timeout: seconds in all, after which the refusal is raised; it is raised at once where it says
            that there will be no room in time.
        max_waiters: maximum number of waiting calls; with as many before it a call is refused at once.
            ``None``: no maximum.
        sleep: waits; it may return early when there is nothing left to wait for.
    """

    def __init__(
        self,
        inner: Attempting,
        *,
        wait_timeout: float,
        max_waiters: int | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._inner = inner
        self._wait_timeout = wait_timeout
        self._max_waiters = max_waiters
        self._sleep = sleep

    async def __call__(self, call: Call, state: CallState) -> Completion:
        """Make an attempt when there is room for it.

        Raises:
            HeadroomReserved: there was no room in time, or too many calls wait.
        """
        give_up = anyio.current_time() + self._wait_timeout
        while True:
            try:
                return await self._inner(call, state)
            except HeadroomReserved as error:
                pause = pause_after(error, random.random())  # noqa: S311 - so that not all ask at once
                if anyio.current_time() + max(pause, error.retry_after or 0.0) > give_up:
                    raise
                if self._max_waiters is not None and error.place >= self._max_waiters:
                    raise
            await self._sleep(pause)


def pause_after(error: HeadroomReserved, draw: float) -> float:
    """Return the seconds until the next try: the more calls are before this one, the longer.

    Args:
        error: of the last try.
        draw: uniform in [0, 1).
    """
    if error.retry_after is not None:
        return min(LONGEST, error.retry_after + STEP * draw)
    return min(LONGEST, STEP * (1 + error.place) * (0.5 + draw))


class RateLimit:
    """Takes one request, and the tokens that an attempt may need, from the tenant's minute.

    It stands within headroom, which waits, and outside the limiter. The call keeps its grant while it waits
    for budget, for a minute at most; the next attempt takes a new one. Free calls count as well.

    Args:
        inner: gets the attempt.
        meter: of the tenant.
        bound: bound on the tokens of a call's input.
        owner: with a call's content it is the ticket in the queue. A unit of a job gives ``job|unit``, so
            that its tickets can be removed when it is parked; ``None``: a new name.
        clock: seconds, from any origin.
    """

    def __init__(
        self,
        inner: Attempting,
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

    async def __call__(self, call: Call, state: CallState) -> Completion:
        """Make an attempt when the tenant's minute has room for it.

        Raises:
            HeadroomReserved: there is no room yet, or the call waits for budget with its grant.
            CallTooLarge: there never will be room.
            StoreUnavailable: the store did not answer; nothing was sent.
        """
        limits = await self._meter.limits()
        wanted = self._wanted(call, limits, state)
        if not wanted:
            return await self._inner(call, state)
        ticket = f"{self._owner}|{call_key(call)}"
        try:
            await self._take(ticket, wanted, limits, state)
            completion = await self._inner(call, state)
        except HeadroomReserved:
            # not sent: it waits and keeps its grants, of which one may be missing, also when another worker takes it over
            if state.granted and not state.kept:
                left = min(state.granted.values()) + GRANTED - self._clock()
                await self._meter.keep([Scope(one) for one in state.granted], left, ticket=ticket)
                state.kept = True
            raise
        except BaseException:
            await self._used(ticket, state)
            raise
        await self._used(ticket, state)
        return completion

    async def _used(self, ticket: str, state: CallState) -> None:
        """Drop the grant: the attempt was made, and the next one takes its own."""
        state.granted, kept, state.kept = {}, state.kept, False
        if kept:
            # a grant that is not taken back holds for a minute, and for one attempt
            with suppress(StoreUnavailable):
                await self._meter.keep((), 0.0, ticket=ticket)

    async def _take(
        self, ticket: str, wanted: Mapping[Scope, int], limits: Limits, state: CallState
    ) -> None:
        now = self._clock()
        state.granted = {scope: at for scope, at in state.granted.items() if now - at < GRANTED}
        missing = {scope: cost for scope, cost in wanted.items() if scope not in state.granted}
        if not missing:
            return
        if state.kept:
            # it was of a minute that is over
            await self._meter.keep((), 0.0, ticket=ticket)
            state.kept = False
        taken = await self._meter.take(missing, limits, ticket=ticket)
        state.granted = {**state.granted, **dict.fromkeys(taken.granted, now)}
        if taken.refused is not None:
            raise HeadroomReserved(
                _MESSAGES[taken.refused].format(limits=limits),
                scope=taken.refused,
                asked=None,
                place=taken.place,
                retry_after=taken.retry_after,
            )

    def _wanted(self, call: Call, limits: Limits, state: CallState) -> dict[Scope, int]:
        wanted = {}
        if limits.requests_per_minute is not None:
            wanted[Scope.REQUESTS] = 1
        most = limits.tokens_per_minute
        if most is not None:
            tokens = state.input_tokens(call, self._bound) + call.max_tokens
            wanted[Scope.TOKENS] = tokens
            if tokens > most:
                raise CallTooLarge(
                    f"the call needs up to {tokens:,} tokens, more than the tenant's {most:,} per minute: "
                    "use fewer passages or a lower max_tokens, or raise the limit",
                    model=call.model,
                    tokens=tokens,
                    limit=most,
                )
        return wanted


_MESSAGES: Mapping[str, str] = {
    Scope.REQUESTS: "the tenant's limit of {limits.requests_per_minute:,} requests per minute is reached: retry later",
    Scope.TOKENS: "the tenant's limit of {limits.tokens_per_minute:,} tokens per minute is reached: retry later",
    "turn": "earlier calls of the tenant are waiting: retry later",
}


class Limiter:
    """Bounds the attempts in flight: waits for a place before each, frees it after, and reports how it ended.

    It stands within retry, so that a call that waits for its next attempt occupies no place. Its wait does not count
    against the call's deadline: the length of our own queue says nothing about the provider.

    Args:
        inner: gets the attempt.
        places: shared by all calls to one provider in this process.
    """

    def __init__(self, inner: Attempting, *, places: Places) -> None:
        self._inner = inner
        self._places = places

    async def __call__(self, call: Call, state: CallState) -> Completion:
        """Make an attempt when there is a place."""
        with state.pause():
            await self._places.acquire()
        try:
            completion = await self._inner(call, state)
        except RateLimited as error:
            self._places.refused(error.retry_after)
            raise
        else:
            self._places.answered(completion.usage)
            return completion
        finally:
            self._places.release()
