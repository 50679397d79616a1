"""Retries of calls, in one place: the SDKs and the task queue do not retry."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from posology.errors import (
    DeadlineExceeded,
    MalformedReply,
    NoCapacity,
    ProviderError,
    ProviderOverloaded,
    ProviderTimeout,
    ProviderUnreachable,
    RateLimited,
)
from posology.llm.calls import Attempting, CallState
from posology.llm.pace import allowed, generation
from posology.types import Call, Completion


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """Number of attempts, and the waits between them."""

    #: maximum attempts, the first included
    attempts: int = 4
    #: maximum of the first wait in seconds; each later maximum is twice the one before
    base: float = 0.5
    #: maximum of all waits in seconds, unless the provider asks for a longer one
    cap: float = 20.0
    #: seconds for all attempts and waits together, without those for a place in the limiter; ``None``: no limit
    deadline: float | None = 120.0
    #: fewest tokens a second that a reply is written at, see :func:`~posology.llm.pace.generation`
    min_tokens_per_second: float | None = None
    #: errors that are retried
    retryable: tuple[type[ProviderError], ...] = (
        RateLimited,
        ProviderOverloaded,
        ProviderUnreachable,
        ProviderTimeout,
        MalformedReply,
    )

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts must be >= 1 (got {self.attempts})")

    def deadline_of(self, call: Call) -> float | None:
        """Return the seconds for all attempts at a call: the deadline, and one reply at the slowest pace."""
        if self.deadline is None:
            return None
        return allowed(call.tier, self.deadline) + generation(
            call.max_tokens, self.min_tokens_per_second
        )

    def wait(self, *, attempt: int, retry_after: float | None, draw: float) -> float:
        """Return the seconds to wait after a failed attempt.

        Exponential backoff with full jitter (Brooker, *Exponential Backoff And Jitter*, 2015), and
        at least as long as the provider asks for.

        Args:
            attempt: number of the failed attempt, from 1.
            retry_after: wait that the provider asks for, seconds.
            draw: uniform in [0, 1).
        """
        # the exponent is bounded because a power of two outgrows a float
        backoff = draw * min(self.cap, self.base * 2.0 ** min(attempt - 1, 60))
        return max(backoff, retry_after or 0.0)


class Retry:
    """Retries a call after a retryable error.

    A wait that would pass the deadline is not started: the last attempt's error is raised at once.

    Args:
        inner: gets every attempt.
        policy: attempts and waits.
        sleep: waits.
        clock: seconds, from any origin; goes with ``sleep``.
        draw: uniform in [0, 1).

    Raises:
        DeadlineExceeded: the deadline passed during an attempt, which was cancelled; its cause is
            the error of the attempt before, if there was one.
    """

    def __init__(
        self,
        inner: Attempting,
        *,
        policy: RetryPolicy | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        clock: Callable[[], float] = anyio.current_time,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._inner = inner
        self._policy = policy or RetryPolicy()
        self._sleep = sleep
        self._clock = clock
        self._draw = draw

    async def __call__(self, call: Call) -> Completion:
        """Send one call, with retries."""
        policy = self._policy
        deadline = policy.deadline_of(call)
        state = CallState()
        started = self._clock()
        last: ProviderError | None = None

        def wait(retry: RetryCallState) -> float:
            nonlocal last
            last = _error(retry)
            return policy.wait(
                attempt=retry.attempt_number,
                retry_after=None if last is None else last.retry_after,
                draw=self._draw(),
            )

        def too_late(retry: RetryCallState) -> bool:
            if deadline is None:
                return False
            taken = self._clock() - started - state.paused
            return taken + retry.upcoming_sleep >= deadline

        def again(error: BaseException) -> bool:
            if isinstance(error, NoCapacity):
                # that of the tier flex was waited for within, see :mod:`posology.llm.capacity`
                return call.tier != "flex" or state.standard
            if isinstance(error, MalformedReply) and error.billed:
                return False
            return isinstance(error, policy.retryable)

        # one object for each call: tenacity keeps its state by thread, which concurrent calls share
        retrying = AsyncRetrying(
            retry=retry_if_exception(again),
            wait=wait,
            stop=lambda retry: stop_after_attempt(policy.attempts)(retry) or too_late(retry),
            sleep=self._sleep,
            reraise=True,
        )
        with anyio.move_on_after(deadline) as state.scope:
            async for attempt in retrying:
                with attempt:
                    return await self._inner(call, state)
        assert deadline is not None
        raise DeadlineExceeded(
            f"no reply for {call.model} within {deadline:g} s, retries included",
            seconds=deadline,
        ) from last


def _error(retry: RetryCallState) -> ProviderError | None:
    error = None if retry.outcome is None else retry.outcome.exception()
    return error if isinstance(error, ProviderError) else None
