"""The values and protocols of the stack: for whom calls are made, and from one call to its attempts.

The signatures give the order. Outside retry a wrapper is a :class:`~posology.seams.Complete` and sees
calls; within it an :class:`Attempting` and sees attempts at one call; an adapter is a
:class:`~posology.seams.Send` and sees one request.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from posology.seams import Bound, Meter, Recall
from posology.types import Call, Completion, Lane

#: seconds that an attempt waits for budget: longer than most calls take, after which their reservations are settled
WAIT_TIMEOUT = 90.0
#: seconds for which a caller without a deadline waits for capacity: the default deadline of a job
CAPACITY_TIMEOUT = 900.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyProgress:
    """How far a reply is that is being streamed."""

    #: tokens of the prompt; ``None``: the server does not say
    prompt: int | None = None
    #: tokens of the prompt that the server has read; ``None``: it does not say
    read: int | None = None
    #: tokens written, reasoning included, about
    written: int = 0


#: takes the progress of a call's reply, often
Told = Callable[[Call, ReplyProgress], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """For whom calls are made: what may be replayed, what is metered, and how long they wait."""

    #: gives the replies that the same work was given before; ``None``: nothing is replayed
    recall: Recall | None = None
    #: of the tenant's requests and tokens per minute; ``None``: they are not limited
    meter: Meter | None = None
    #: the unit of work, ``job|unit``, see :class:`~posology.llm.admission.RateLimit`; ``None``: a new name
    owner: str | None = None
    #: seconds that an attempt waits while in-flight calls have reserved the rest of a limit
    wait_timeout: float = WAIT_TIMEOUT
    #: maximum number of calls that wait so; ``None``: no maximum
    max_waiters: int | None = None
    #: waits between attempts, and for budget
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    #: service tier of the calls
    lane: Lane = "standard"
    #: returns the seconds for which a call that begins now may wait for capacity in the tier flex
    capacity_timeout: Callable[[], float] = lambda: CAPACITY_TIMEOUT
    #: whether a call that waits longer than :attr:`wait_timeout` for capacity raises
    #: :class:`~posology.errors.HeadroomReserved`, for its unit to be requeued
    requeued: bool = False
    #: takes the progress of replies; ``None``: nothing does
    told: Told | None = None


@dataclass(kw_only=True, slots=True)
class CallState:
    """The attempts at one call so far: the one value here that changes, within one task."""

    #: the call's number in the account; ``None`` until its first attempt is opened
    call: int | None = None
    #: attempts so far
    attempts: int = 0
    #: see :meth:`input_tokens`
    bound: int | None = None
    #: grants of the tenant's minute to the next attempt: scope to the time when it was granted, in
    #: seconds; kept while the attempt waits for budget
    granted: Mapping[str, float] = field(default_factory=dict)
    #: whether the store keeps the grants for a unit that is requeued
    kept: bool = False
    #: ends the call at its deadline; ``None``: it has none
    scope: anyio.CancelScope | None = None
    #: seconds for which the deadline was paused
    paused: float = 0.0
    #: whether the tier flex had no capacity, so that the call is sent in the standard tier
    standard: bool = False

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the clock of the call's deadline: the call waits for others of this process."""
        scope = self.scope
        if scope is None:
            yield
            return
        began, deadline = anyio.current_time(), scope.deadline
        scope.deadline = math.inf
        try:
            yield
        finally:
            waited = anyio.current_time() - began
            self.paused += waited
            scope.deadline = deadline + waited

    def input_tokens(self, call: Call, bound: Bound) -> int:
        """Return the bound on the call's input tokens, computed once for all attempts."""
        if self.bound is None:
            self.bound = bound(call)
        return self.bound


class Attempting(Protocol):
    """Makes one attempt at a call, or waits until one may be made.

    Args:
        call: the call.
        state: its attempts so far; the same value for all of them.
    """

    async def __call__(self, call: Call, state: CallState) -> Completion: ...
