"""Calls of a run by way of the provider's batches: half the price, and a day for each step (decision 56)."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal

import anyio

from orchestrator.lane.collector import Collector, LaneOptions
from orchestrator.lane.records import plan_of
from orchestrator.training.paid.calls import Bought, Purchase, RowFailed
from orchestrator.training.paid.journal import JournalFile
from orchestrator.training.paid.records import Reply, RunRecords
from orchestrator.training.paid.rows import Failed
from posology.errors import AuthenticationFailed, ConfigurationError
from posology.llm.memo import call_key
from posology.llm.second import SecondCalls
from posology.llm.structured import Structured
from posology.seams import Bound, Prices
from posology.seams.batches import BatchEndpoint
from posology.types import Call, Completion

#: seconds between two extensions of reservations
_EXTEND = 30.0
#: seconds that ending the last batches may take
_ENDING = 30.0
#: maximum seconds between two looks at what is due
_TICK = 1.0
#: errors that no wait mends: another process with the key does not take a run over
_FINAL = (AuthenticationFailed, ConfigurationError)


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneTerms:
    """How calls become batches."""

    endpoint: BatchEndpoint
    prices: Prices
    #: bound of a call's input tokens
    bound: Bound
    options: LaneOptions


class BatchBuyer:
    """Buys calls as :class:`~orchestrator.training.paid.calls.Buyer` does, in the provider's batches.

    Args:
        purchase: how calls are paid for.
        terms: how they become batches.
        journal: of the run's batches.
        spent: dollars that the run has spent before.
        failed: called for each call that was sent and failed.
        kept: whether the run's file has the reply to a call, by its digest.
    """

    def __init__(
        self,
        purchase: Purchase,
        terms: LaneTerms,
        journal: JournalFile,
        *,
        spent: Decimal,
        failed: Callable[[Failed], Awaitable[None]],
        kept: Callable[[str], bool],
    ) -> None:
        # earlier reservations may be charged in full
        before = spent + journal.content.reserved
        cap = None if purchase.cap is None else max(Decimal(0), purchase.cap - before)
        self._records = RunRecords(purchase.ledger, journal, cap=cap, is_kept=kept)
        self._lane = Collector(
            self._records, lambda _: terms.endpoint, terms.prices, terms.options, raises=_FINAL
        )
        self._terms = terms
        self._failed = failed
        #: why no call can be made any more
        self._broken: Exception | None = None

    async def __call__(self, call: Call) -> Bought:
        """Wait for the reply to a call, and to its repair if it needs one.

        Raises:
            RowFailed: its row failed for good. Its cost is reported to ``failed``.
            PosologyError: it cannot be sent, or its reply cannot be used.
        """
        asked: list[Reply] = []

        async def one(call: Call) -> Completion:
            reply = self._want(call)
            asked.append(reply)
            await reply.over.wait()
            if reply.failed is not None:
                raise RowFailed from reply.failed
            if reply.error is not None:
                raise reply.error
            assert reply.completion is not None
            return reply.completion

        terms = self._terms
        try:
            structured = Structured(one, SecondCalls(prices=terms.prices, bound=terms.bound))
            completion = await structured(replace(call, tier="batch"))
        except Exception as error:
            cost = sum((reply.cost for reply in asked), Decimal(0))
            if cost or any(reply.tries for reply in asked):
                await self._failed(_failure(call, error, cost))
                _keep(asked)
            raise
        # the caller keeps the reply before anything else runs
        _keep(asked)
        return Bought(completion=completion, cost=sum((reply.cost for reply in asked), Decimal(0)))

    def _want(self, call: Call) -> Reply:
        key, terms = call_key(call), self._terms
        plan = plan_of(key, call, line=terms.endpoint.line(call), bound=terms.bound(call))
        reply = self._records.want(key, plan)
        if self._broken is not None and not reply.over.is_set():
            reply.end(self._broken)
        return reply

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Send calls and collect their replies meanwhile."""
        raised: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._work)
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised below, outside the group
                raised = error
            group.cancel_scope.cancel()
        if raised is not None:
            raise raised
        # all is answered: what is left is asked for no more
        self._records.keep_all()
        with suppress(*_FINAL), anyio.move_on_after(_ENDING, shield=True):
            await self._lane.step()

    async def _work(self) -> None:
        extended = time.monotonic()
        try:
            while True:
                if time.monotonic() - extended >= _EXTEND:
                    extended = time.monotonic()
                    await self._records.extend()
                await self._lane.step()
                await anyio.sleep(min(_TICK, self._terms.options.poll))
        except Exception as error:  # noqa: BLE001 - raised where the reply is waited for
            self._broken = error
            for reply in self._records.replies.values():
                if reply.plan is not None and not reply.over.is_set():
                    reply.end(error)


def _keep(asked: list[Reply]) -> None:
    for reply in asked:
        reply.kept = True


def _failure(call: Call, error: Exception, cost: Decimal) -> Failed:
    """Return the row of a call that has failed, with the provider's error where a row had one."""
    why = error.__cause__ or error if isinstance(error, RowFailed) else error
    return Failed(call=call_key(call), error=type(why).__name__, message=str(why), cost=cost)
