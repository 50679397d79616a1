"""Waits where money is merely reserved, and not where it is spent."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import anyio

from posology.errors import HeadroomReserved
from posology.seams import Complete
from posology.types import Call, Completion

#: seconds between two tries of whoever is served next, and how much longer for each that waits before
STEP = 0.02
#: seconds; whoever asks more seldom than the ledger remembers would lose the place in the queue
LONGEST = 1.0


class Headroom:
    """Asks again while calls under way hold what is left of a limit.

    It stands within retry, so that its waits count against the call's deadline, and outside the
    limiter, so that whoever waits for money holds no place at the provider.

    Args:
        inner: gets the call.
        patience: seconds in all; the refusal is raised then, or at once where it says that there is no room
            in time.
        crowd: how many calls may wait; with as many before it a call is refused at once. ``None``: any number.
        sleep: waits; it may return early when there is nothing to wait for any more.
        clock: seconds, from any origin; goes with ``sleep``.
    """

    def __init__(
        self,
        inner: Complete,
        *,
        patience: float,
        crowd: int | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._inner = inner
        self._patience = patience
        self._crowd = crowd
        self._sleep = sleep
        self._clock = clock

    async def __call__(self, call: Call) -> Completion:
        """Send one call when there is room for it.

        Raises:
            HeadroomReserved: there was none in time, or too many wait.
        """
        give_up = self._clock() + self._patience
        while True:
            try:
                return await self._inner(call)
            except HeadroomReserved as error:
                pause = wait(error, random.random())  # noqa: S311 - so that not all ask at once
                if self._clock() + max(pause, error.retry_after or 0.0) > give_up:
                    raise
                if self._crowd is not None and error.place >= self._crowd:
                    raise
            await self._sleep(pause)


def wait(error: HeadroomReserved, draw: float) -> float:
    """Seconds until the next try: the longer, the more others are served before.

    Args:
        error: of the last try.
        draw: uniform in [0, 1).
    """
    if error.retry_after is not None:
        return min(LONGEST, error.retry_after + STEP * draw)
    return min(LONGEST, STEP * (1 + error.place) * (0.5 + draw))
