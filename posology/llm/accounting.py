"""The one place where money is spent: reserve the worst case, call, settle. An entry for every attempt."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from uuid import uuid4

import anyio
import anyio.lowlevel

from posology.errors import PosologyError, ProviderError, UnusableReply
from posology.llm.calls import CallState
from posology.llm.memo import call_key
from posology.seams import Bound, Journal, Prices, Send
from posology.types import Attempt, Call, Completion, Opening, Outcome, Usage

logger = logging.getLogger(__name__)

#: the name of the error that makes a reply unusable; ``None``: it is usable
Verdict = Callable[[Call, Completion], str | None]


def accept(_call: Call, _completion: Completion) -> None:
    """The verdict that every reply is usable."""


class Accounting:
    """Enters every attempt in the journal: before it is sent, and when it has ended.

    Before it is sent the journal is told what it can cost at most, and may refuse. Nothing can cancel the second entry, and a cancelled attempt is entered before the cancellation
    goes on. An attempt whose process ends in between stays open in the journal.

    Args:
        inner: makes the attempt.
        journal: takes the entries.
        prices: what a call costs, and what it can cost at most.
        bound: the tokens that a call's input can have at most.
        verdict: whether a reply that was paid for can be used.
        clock: seconds, from any origin.
        now: POSIX seconds.
    """

    def __init__(
        self,
        inner: Send,
        *,
        journal: Journal,
        prices: Prices,
        bound: Bound,
        verdict: Verdict = accept,
        clock: Callable[[], float] = time.perf_counter,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._inner = inner
        self._journal = journal
        self._prices = prices
        self._bound = bound
        self._verdict = verdict
        self._clock = clock
        self._now = now

    async def __call__(self, call: Call, state: CallState) -> Completion:
        """Make one attempt and account for it.

        Raises:
            UnpricedModel: nobody knows what it would cost, so it is not sent.
            PosologyError: the journal does not let the attempt be made, or the attempt failed.
        """
        bound = state.input_tokens(call, self._bound)
        opening = Opening(
            id=uuid4().hex,
            call=state.call,
            attempt=state.attempts + 1,
            stage=call.stage,
            model=call.model,
            prompt=call.prompt,
            key=call_key(call),
            started=self._now(),
            strategy=call.strategy,
            input_bound=bound,
            max_tokens=call.max_tokens,
            reserved=self._prices.worst(
                call.model, input_tokens=bound, output_tokens=call.max_tokens
            ),
            prices=self._prices.version,
        )
        # shielded, so that it is known whether the entry was made; it takes no longer than a store
        # takes to answer or to be given up
        with anyio.CancelScope(shield=True):
            number = state.call = await self._journal.open(opening)
        state.attempts = opening.attempt
        started, sent = self._clock(), False
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
            sent = True
            completion = await self._inner(call, attempt_id=opening.id)
        except BaseException as error:
            usage = _usage(error) if sent else Usage()
            await self._close(opening, number, _Ended.by(error, usage), self._clock() - started)
            raise
        latency = self._clock() - started
        flaw = self._verdict(call, completion)
        await self._close(opening, number, _Ended.with_reply(completion, flaw), latency)
        return completion

    async def _close(self, opening: Opening, call: int, ended: _Ended, latency: float) -> None:
        attempt = Attempt.of(
            opening,
            call=call,
            outcome=ended.outcome,
            error=ended.error,
            usage=ended.usage,
            cost=self._cost(opening.model, ended.usage),
            latency=latency,
            request_id=ended.request_id,
        )
        if attempt.over_bound:
            logger.error(
                "a call to %s cost $%s, and $%s was its bound: have its input bounded strictly",
                attempt.model,
                attempt.cost,
                attempt.reserved,
            )
        with anyio.CancelScope(shield=True):
            await self._journal.close(attempt, ended.completion)

    def _cost(self, model: str, usage: Usage | None) -> Decimal | None:
        # what was turned away costs nothing at any price, known or not
        return Decimal(0) if usage == Usage() else self._prices.cost(model, usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ended:
    """How an attempt ended, by a reply or by an error."""

    outcome: Outcome
    error: str | None
    usage: Usage | None
    request_id: str | None
    completion: Completion | None = None

    @classmethod
    def with_reply(cls, completion: Completion, flaw: str | None) -> _Ended:
        return cls(
            outcome=Outcome.OK if flaw is None else Outcome.UNUSABLE,
            error=flaw,
            usage=completion.usage,
            request_id=completion.request_id,
            completion=completion,
        )

    @classmethod
    def by(cls, error: BaseException, usage: Usage | None) -> _Ended:
        return cls(
            outcome=_outcome(error),
            error=type(error).__name__,
            usage=usage,
            request_id=_request_id(error),
        )


def _outcome(error: BaseException) -> Outcome:
    if isinstance(error, UnusableReply):
        return Outcome.UNUSABLE
    if isinstance(error, anyio.get_cancelled_exc_class()):
        return Outcome.CANCELLED
    return Outcome.FAILED


def _usage(error: BaseException) -> Usage | None:
    if isinstance(error, ProviderError):
        return error.usage
    # our own refusals come before anything is sent
    return Usage() if isinstance(error, PosologyError) else None


def _request_id(error: BaseException) -> str | None:
    return error.request_id if isinstance(error, ProviderError) else None


class Account:
    """A :class:`~posology.seams.Journal` in memory: one run's attempts and what they add up to."""

    def __init__(self, attempts: Iterable[Attempt] = ()) -> None:
        self._attempts = list(attempts)
        self._calls = count(1)

    async def open(self, opening: Opening) -> int:
        """Number the call; what this process does not live to close, nobody asks of its memory."""
        return next(self._calls) if opening.call is None else opening.call

    async def close(self, attempt: Attempt, _completion: Completion | None) -> None:
        """Take an entry."""
        self._attempts.append(attempt)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """All entries, in the order in which the attempts ended."""
        return tuple(self._attempts)

    @property
    def usage(self) -> Usage:
        """All tokens that are known of."""
        return sum((a.usage for a in self._attempts if a.usage is not None), Usage())

    @property
    def known_cost(self) -> Decimal:
        """Dollars that are known of: a lower bound of what the run cost."""
        return sum((a.cost for a in self._attempts if a.cost is not None), Decimal(0))

    @property
    def cost(self) -> Decimal | None:
        """Dollars; ``None`` when any attempt's cost is unknown."""
        return None if self.unknown else self.known_cost

    @property
    def charged(self) -> Decimal:
        """Dollars that count against limits: unknown costs at their bounds."""
        return sum((a.charged for a in self._attempts), Decimal(0))

    @property
    def unknown(self) -> int:
        """Attempts whose cost is unknown."""
        return sum(a.cost is None for a in self._attempts)

    @property
    def outcomes(self) -> Mapping[Outcome, int]:
        """How many attempts ended in each way."""
        found = Counter(a.outcome for a in self._attempts)
        return {outcome: found[outcome] for outcome in Outcome}
