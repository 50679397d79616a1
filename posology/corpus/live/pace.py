"""The pace of requests: one after the other, at least an interval apart, as a service's rate limit asks."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio

#: how much longer than the limit the interval is: requests may come closer together than they were sent
MARGIN = 1.05


class Pace(Protocol):
    """Waits until the next request may be sent."""

    async def __call__(self) -> None: ...


def interval(per_second: float) -> float:
    """Return the seconds between two requests, for a limit of requests a second."""
    return MARGIN / per_second


class ProcessPace:
    """The pace of one process: a token bucket of size one, so that no second has more requests than the limit.

    Args:
        per_second: the limit.
        clock: seconds, growing.
        sleep: waits.
    """

    def __init__(
        self,
        per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._interval = interval(per_second)
        self._clock = clock
        self._sleep = sleep
        self._next = float("-inf")

    async def __call__(self) -> None:
        """See :class:`Pace`. A caller that is cancelled leaves its place empty."""
        now = self._clock()
        at = max(now, self._next)
        self._next = at + self._interval
        if at > now:
            await self._sleep(at - now)
