"""Accounting of attempts: reserve the maximum cost, send, settle; an entry for every attempt."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count
from uuid import uuid4

import anyio
import anyio.lowlevel

from posology.errors import PosologyError, ProviderError, UnusableReply
from posology.llm.calls import CallState
from posology.llm.memo import call_key
from posology.seams import Bound, Journal, Prices, Send
from posology.types import Attempt, Call, Completion, Opening, Outcome, Served, Tier, Usage

logger = logging.getLogger(__name__)

#: the name of the error that makes a reply unusable; ``None``: it is usable
Verdict = Callable[[Call, Completion], str | None]


def accept(_call: Call, _completion: Completion) -> None:
    """Return the verdict that a reply is usable, for every reply."""


def open_attempt(
    call: Call,
    *,
    number: int | None,
    attempt: int,
    bound: int,
    prices: Prices,
    tier: Tier,
    started: float,
) -> Opening:
    """Return the opening of an attempt at a call, with its maximum cost.

    Args:
        call: the call.
        number: the call's number; ``None`` at its first attempt.
        attempt: number of the attempt, from 1.
        bound: maximum input tokens.
        prices: of models.
        tier: service tier that the attempt is sent to.
        started: POSIX seconds.

    Raises:
        UnpricedModel: no price is known.
    """
    opening = replace(
        planned(call, bound=bound, tier=tier), call=number, attempt=attempt, started=started
    )
    return priced(opening, prices, caches=bool(call.cached))


def planned(call: Call, *, bound: int, tier: Tier) -> Opening:
    """Return the opening of a first attempt at a call, which nothing is reserved for yet.

    Args:
        call: the call.
        bound: maximum input tokens.
        tier: service tier that it is sent to.
    """
    return Opening(
        id=uuid4().hex,
        call=None,
        attempt=1,
        stage=call.stage,
        model=call.model,
        prompt=call.prompt,
        key=call_key(call),
        started=0.0,
        strategy=call.strategy,
        input_bound=bound,
        max_tokens=call.max_tokens,
        tier=tier,
        effort=call.effort,
    )


def priced(opening: Opening, prices: Prices, *, caches: bool) -> Opening:
    """Return an opening with its maximum cost at the prices of now: what every lane reserves.

    Args:
        opening: of an attempt.
        prices: of models.
        caches: whether the call asks the provider to cache a part of its prompt.

    Raises:
        UnpricedModel: no price is known.
    """
    return replace(
        opening,
        reserved=prices.worst(
            opening.model,
            input_tokens=opening.input_bound,
            output_tokens=opening.max_tokens,
            tier=opening.tier,
            caches=caches,
        ),
        prices=prices.version,
    )


class Accounting:
    """Records every attempt in the journal: before it is sent, and when it has ended.

    The first entry has the attempt's maximum cost, and the journal may refuse it. The second entry cannot be
    cancelled: a cancelled attempt is recorded before the cancellation continues. An attempt whose process ends
    in between stays open in the journal.

    Args:
        inner: makes the attempt.
        journal: takes the entries.
        prices: cost and maximum cost of a call.
        bound: maximum input tokens of a call.
        verdict: whether a reply can be used.
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
            UnpricedModel: no price is known, so it is not sent.
            PosologyError: the journal refuses the attempt, or the attempt failed.
        """
        bound = state.input_tokens(call, self._bound)
        opening = open_attempt(
            call,
            number=state.call,
            attempt=state.attempts + 1,
            bound=bound,
            prices=self._prices,
            tier=call.tier,
            started=self._now(),
        )
        # shielded, so that the entry is either made or refused; it takes no longer than the store's timeout
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
            cost=self._cost(opening, ended),
            latency=latency,
            request_id=ended.request_id,
            served=ended.served,
        )
        if attempt.served in ("priority", "unknown"):
            logger.error(
                "attempt served in a tier that was not asked for attempt=%s model=%s asked=%s served=%s cost_usd=%s "
                "bound_usd=%s: check the service tier of the provider's project",
                attempt.id,
                attempt.model,
                attempt.tier,
                attempt.served,
                attempt.cost,
                attempt.reserved,
            )
        elif attempt.over_bound:
            logger.error(
                "attempt exceeded its bound attempt=%s model=%s cost_usd=%s bound_usd=%s: add the model to "
                "bounds.strict in the price file",
                attempt.id,
                attempt.model,
                attempt.cost,
                attempt.reserved,
            )
        with anyio.CancelScope(shield=True):
            await self._journal.close(attempt, ended.completion)

    def _cost(self, opening: Opening, ended: _Ended) -> Decimal | None:
        # a refused request costs nothing, whatever the price
        if ended.usage == Usage():
            return Decimal(0)
        # without a name in the reply, the tier whose price was reserved
        reserved: Served = "batch" if opening.tier == "batch" else "standard"
        return self._prices.cost(opening.model, ended.usage, ended.served or reserved)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ended:
    """The end of an attempt: a reply or an error."""

    outcome: Outcome
    error: str | None
    usage: Usage | None
    request_id: str | None
    completion: Completion | None = None
    served: Served | None = None

    @classmethod
    def with_reply(cls, completion: Completion, flaw: str | None) -> _Ended:
        return cls(
            outcome=Outcome.OK if flaw is None else Outcome.UNUSABLE,
            error=flaw,
            usage=completion.usage,
            request_id=completion.request_id,
            completion=completion,
            served=completion.served,
        )

    @classmethod
    def by(cls, error: BaseException, usage: Usage | None) -> _Ended:
        return cls(
            outcome=_outcome(error),
            error=type(error).__name__,
            usage=usage,
            request_id=_request_id(error),
            served=error.served if isinstance(error, ProviderError) else None,
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
    """A :class:`~posology.seams.Journal` in memory: one run's attempts and their totals."""

    def __init__(self, attempts: Iterable[Attempt] = ()) -> None:
        self._attempts = list(attempts)
        self._calls = count(1)

    async def open(self, opening: Opening) -> int:
        """Return the call's number; open attempts are not kept."""
        return next(self._calls) if opening.call is None else opening.call

    async def close(self, attempt: Attempt, _completion: Completion | None) -> None:
        """Record an attempt."""
        self._attempts.append(attempt)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts, in the order in which they ended."""
        return tuple(self._attempts)

    @property
    def usage(self) -> Usage:
        """All known usage."""
        return sum((a.usage for a in self._attempts if a.usage is not None), Usage())

    @property
    def known_cost(self) -> Decimal:
        """Known dollars: a lower bound of the run's cost."""
        return sum((a.cost for a in self._attempts if a.cost is not None), Decimal(0))

    @property
    def cost(self) -> Decimal | None:
        """Cost in dollars; ``None``: the cost of an attempt is unknown."""
        return None if self.unknown else self.known_cost

    @property
    def charged(self) -> Decimal:
        """Dollars that count against limits, with unknown costs at their bounds."""
        return sum((a.charged for a in self._attempts), Decimal(0))

    @property
    def unknown(self) -> int:
        """Number of attempts with an unknown cost."""
        return sum(a.cost is None for a in self._attempts)

    @property
    def outcomes(self) -> Mapping[Outcome, int]:
        """Number of attempts by outcome."""
        found = Counter(a.outcome for a in self._attempts)
        return {outcome: found[outcome] for outcome in Outcome}
