"""The flex tier: wait while the provider has no capacity, then take the standard tier if the job allows it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio

from posology.errors import HeadroomReserved, NoCapacity
from posology.llm.calls import Attempting, CallState
from posology.seams import Complete
from posology.types import Call, Completion, Tier

#: maximum of the first wait, and of all waits, seconds
_BASE, _CAP = 1.0, 15.0


class InTier:
    """Sends calls in a service tier. It stands outside retry, whose deadline depends on the tier.

    Args:
        inner: sends the call.
        tier: service tier.
    """

    def __init__(self, inner: Complete, *, tier: Tier) -> None:
        self._inner = inner
        self._tier: Tier = tier

    async def __call__(self, call: Call) -> Completion:
        """Send one call in the tier."""
        return await self._inner(replace(call, tier=self._tier))


class Capacity:
    """Retries a flex call while the provider has no capacity for it; nothing is billed meanwhile.

    It stands within retry, so that all attempts belong to one call, and stops the clock of the call's deadline
    while it waits. It holds no place of the limiter and no budget.

    Args:
        inner: gets the attempt.
        timeout: returns the seconds in all for a call that begins now.
        place_timeout: seconds after which the unit of work is to give its place to others; ``None``: it keeps it.
        standard: whether the call is sent in the standard tier after ``timeout``.
        sleep: waits; it may return early when there is nothing left to wait for.
        clock: seconds, from any origin; goes with ``sleep``.
    """

    def __init__(
        self,
        inner: Attempting,
        *,
        timeout: Callable[[], float],
        place_timeout: float | None,
        standard: bool,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._inner = inner
        self._timeout = timeout
        self._place_timeout = place_timeout
        self._standard = standard
        self._sleep = sleep
        self._clock = clock

    async def __call__(self, call: Call, state: CallState) -> Completion:
        """Make an attempt when there is capacity.

        Raises:
            NoCapacity: there was none in time, and the standard tier is not allowed.
            HeadroomReserved: there was none in ``place_timeout``; the work is to be requeued.
        """
        began, waits, timeout = self._clock(), 0, self._timeout()
        while not state.standard:
            try:
                return await self._inner(call, state)
            except NoCapacity as error:
                pause = pause_after(waits, error.retry_after, random.random())  # noqa: S311 - so that not all ask at once
                waited = self._clock() - began + pause
                if waited > timeout:
                    if not self._standard:
                        raise
                    state.standard = True
                    break
                if self._place_timeout is not None and waited > self._place_timeout:
                    raise HeadroomReserved(
                        f"{call.model} has no capacity in the tier {call.tier}: the job is tried again later",
                        scope="capacity",
                        asked=None,
                        place=0,
                        retry_after=pause,
                    ) from error
            waits += 1
            with state.pause():
                await self._sleep(pause)
        return await self._inner(replace(call, tier="standard"), state)


def pause_after(waits: int, retry_after: float | None, draw: float) -> float:
    """Return the seconds until the next try: exponential backoff, at least as long as the provider asks for.

    Args:
        waits: number of waits before.
        retry_after: wait that the provider asks for, seconds.
        draw: uniform in [0, 1).
    """
    most = min(_CAP, _BASE * 2.0 ** min(waits, 10))
    return max(most * (0.5 + draw / 2), retry_after or 0.0)
