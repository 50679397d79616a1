"""How many calls may be in flight to a provider at once, learned from its replies.

A provider says in every reply how many requests and tokens its limits still allow, and refuses more with status 429.
Calls at once grow while they are all in use and hardly any is refused, and shrink by the share that is refused, as a sender
does for marked packets (Alizadeh et al., *Data Center TCP*, SIGCOMM 2010, equation 2): a few stray refusals cost little.
A server that states no limits, such as most local ones, queues what it is sent instead of refusing it, so there the
number does not grow unless a bound is configured.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from posology.types import Usage

#: calls at once until something is learned, and the most to a server that states no limits
START = 16
#: most calls at once to a provider that states its limits
MOST = 512
#: share of refused attempts that is taken for chance
TOLERATED = 0.05
#: growth of calls at once in a window without refusals: until the first shrinking, and after it
_FAST, _SLOW = 2.0, 1.1
#: seconds; a longer wait that a provider asks for does not hold other calls, which learn of it by their own refusals
LONGEST_HOLD = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Allowance:
    """Remaining allowance of a provider's limits, as its reply says."""

    #: ``None``: not stated
    requests: int | None = None
    #: ``None``: not stated
    tokens: int | None = None


class Places:
    """Bounds the calls in flight to one provider. For one event loop.

    Args:
        most: configured bound, which also applies from the start; ``None``: ``start`` to begin with, and
            :data:`MOST` at a provider that states its limits.
        start: calls at once where no bound is configured.
        slots: asks, before the first call, how many the server serves at once; ``None``: nothing to ask.
        clock: seconds, from any origin.
        sleep: waits.
    """

    def __init__(
        self,
        most: int | None = None,
        *,
        start: int = START,
        slots: Callable[[], Awaitable[int | None]] | None = None,
        clock: Callable[[], float] = anyio.current_time,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._most = most
        self._start = start
        self._slots = slots
        self._asking = anyio.Lock()
        self._clock = clock
        self._sleep = sleep
        self._learned = float(start if most is None else most)
        self._limiter = anyio.CapacityLimiter(int(self._learned))
        #: whether the provider states its limits
        self._stated = False
        #: calls at once that the last stated allowance has room for
        self._room: int | None = None
        #: tokens of a call, a moving mean; ``None``: no reply yet
        self._tokens: float | None = None
        self._growth = _FAST
        #: no attempt begins before
        self._until = -math.inf
        #: attempts of this window that ended, and of these the refused ones; whether all places were in use
        self._ended, self._refused, self._full = 0, 0, False
        #: refused attempts since the last one that was answered: a window of one or two places counts no more than these
        self._row = 0

    @property
    def total(self) -> int:
        """Return the calls that may be in flight now."""
        return int(self._limiter.total_tokens)

    @property
    def in_use(self) -> int:
        """Return the calls in flight."""
        return int(self._limiter.borrowed_tokens)

    @property
    def waiting(self) -> int:
        """Return the number of calls that wait for a place."""
        return self._limiter.statistics().tasks_waiting

    async def acquire(self) -> None:
        """Wait for a place, and until the provider's wait for all is over."""
        if self._slots is not None:
            await self._ask()
        await self._limiter.acquire()
        try:
            while (left := self._until - self._clock()) > 0:
                await self._sleep(left)
        except BaseException:
            self._limiter.release()
            raise
        self._full = self._full or self._limiter.available_tokens <= 0

    async def _ask(self) -> None:
        """Take the number of slots as the bound, unless a lower one is configured."""
        async with self._asking:
            if self._slots is None:
                return
            slots, self._slots = await self._slots(), None
            if slots is not None:
                self._most = slots if self._most is None else min(self._most, slots)
                self._learned = float(self._most)
                self._set()

    def release(self) -> None:
        """Free the place of an attempt that ended."""
        self._limiter.release()

    def told(self, allowance: Allowance) -> None:
        """Take the allowance of a reply, while its call holds its place."""
        self._stated = True
        rooms = [allowance.requests]
        if allowance.tokens is not None and self._tokens:
            rooms.append(int(allowance.tokens / self._tokens))
        stated = [room for room in rooms if room is not None]
        # the others in flight are counted by the provider already
        others = max(0, int(self._limiter.borrowed_tokens) - 1)
        self._room = others + min(stated) if stated else None
        self._set()

    def answered(self, usage: Usage | None) -> None:
        """Count an attempt that was not refused."""
        if usage is not None:
            tokens = usage.total_input + usage.total_output
            self._tokens = tokens if self._tokens is None else 0.9 * self._tokens + 0.1 * tokens
        self._row = 0
        self._end(refused=False)

    def refused(self, retry_after: float | None) -> None:
        """Count an attempt that exceeded the provider's limits.

        Args:
            retry_after: seconds that the provider asks to wait; ``None``: it does not say.
        """
        self._row += 1
        # before the window ends, which begins the count anew
        several = max(self._refused + 1, self._row) > max(1.0, TOLERATED * self._learned)
        self._end(refused=True)
        if several and retry_after is not None and retry_after <= LONGEST_HOLD:
            # all others would be refused as well
            self._until = max(self._until, self._clock() + retry_after)

    def _end(self, *, refused: bool) -> None:
        self._ended += 1
        self._refused += refused
        if self._ended < self._learned:
            return
        share = self._refused / self._ended
        if share > TOLERATED:
            self._learned *= 1 - share / 2
            self._growth = _SLOW
        elif self._full:
            self._learned = max(self._learned * self._growth, self._learned + 1)
        self._ended, self._refused, self._full = 0, 0, False
        self._set()

    def _set(self) -> None:
        most = self._most or (MOST if self._stated else self._start)
        self._learned = min(max(self._learned, 1.0), float(most))
        room = most if self._room is None else max(1, self._room)
        total = min(int(self._learned), room)
        if total != self._limiter.total_tokens:
            self._limiter.total_tokens = total
