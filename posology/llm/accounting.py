"""An entry for every attempt, however it ends."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import count

import anyio

from posology.errors import PosologyError, ProviderError, UnusableReply
from posology.llm import series
from posology.seams import Complete, Journal
from posology.types import Attempt, Call, Completion, Outcome, Usage

#: ``provider:name`` and usage, ``None`` where it is unknown, to dollars; ``None``: unknown
Price = Callable[[str, Usage | None], Decimal | None]
#: the name of the error that makes a reply unusable; ``None``: it is usable
Verdict = Callable[[Call, Completion], str | None]


def accept(_call: Call, _completion: Completion) -> None:
    """The verdict that every reply is usable."""


class Accounting:
    """Writes one :class:`~posology.types.Attempt` to the journal for each attempt.

    The journal is a plain function, not a coroutine: nothing can cancel the entry once the attempt
    has ended, and a cancelled attempt is entered before the cancellation goes on.

    Args:
        inner: makes the attempt.
        journal: takes the entries.
        price: ``provider:name`` and usage to dollars; asked for unknown usage too, which some
            models are free at.
        calls: where the numbers of calls come from; stacks that write to one journal share it.
        verdict: whether a reply that was paid for can be used.
        clock: seconds, from any origin.
    """

    def __init__(
        self,
        inner: Complete,
        *,
        journal: Journal,
        price: Price,
        calls: Iterator[int] | None = None,
        verdict: Verdict = accept,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._inner = inner
        self._journal = journal
        self._price = price
        self._calls = count(1) if calls is None else calls
        self._verdict = verdict
        self._clock = clock

    async def __call__(self, call: Call) -> Completion:
        """Make one attempt and account for it."""
        number, attempt = series.current().start_attempt(self._calls)
        started = self._clock()

        def enter(
            outcome: Outcome, error: str | None, usage: Usage | None, request_id: str | None
        ) -> None:
            self._journal(
                Attempt(
                    call=number,
                    attempt=attempt,
                    stage=call.stage,
                    model=call.model,
                    prompt=call.prompt,
                    outcome=outcome,
                    error=error,
                    usage=usage,
                    cost=self._cost(call.model, usage),
                    latency=self._clock() - started,
                    request_id=request_id,
                )
            )

        try:
            completion = await self._inner(call)
        except BaseException as error:
            enter(_outcome(error), type(error).__name__, _usage(error), _request_id(error))
            raise
        flaw = self._verdict(call, completion)
        outcome = Outcome.OK if flaw is None else Outcome.UNUSABLE
        enter(outcome, flaw, completion.usage, completion.request_id)
        return completion

    def _cost(self, model: str, usage: Usage | None) -> Decimal | None:
        # what was turned away costs nothing at any price, known or not
        return Decimal(0) if usage == Usage() else self._price(model, usage)


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

    def __init__(self) -> None:
        self._attempts: list[Attempt] = []

    def __call__(self, attempt: Attempt) -> None:
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
    def unknown(self) -> int:
        """Attempts whose cost is unknown."""
        return sum(a.cost is None for a in self._attempts)

    @property
    def outcomes(self) -> Mapping[Outcome, int]:
        """How many attempts ended in each way."""
        found = Counter(a.outcome for a in self._attempts)
        return {outcome: found[outcome] for outcome in Outcome}
