"""Makes the calls of a run through a tenant's budget, several at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

import anyio

from orchestrator.question.pipeline import Completes
from orchestrator.training.paid.rows import Failed
from posology.budget.ledger.base import Ledger
from posology.budget.ledger.journal import LedgerJournal
from posology.errors import ContextTooLong, PosologyError, RequestRejected, UnusableReply
from posology.llm.accounting import Account
from posology.llm.memo import call_key
from posology.store import keys
from posology.types import Call, Completion

#: what is the matter with one call, and not with those that come after it
OWN_FAULT = (UnusableReply, ContextTooLong, RequestRejected)

_Thing = TypeVar("_Thing")


@dataclass(frozen=True, kw_only=True, slots=True)
class Purchase:
    """How calls are made and paid for."""

    completes: Completes
    ledger: Ledger
    #: dollars for all of the run's calls, those before it was interrupted included; ``None``: the tenant's
    #: limits alone
    cap: Decimal | None
    #: calls under way at once
    at_once: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Bought:
    """A reply, and what it cost."""

    completion: Completion
    #: dollars that count against limits
    cost: Decimal


class Buyer:
    """Makes one call at a time, and says what became of it.

    Args:
        purchase: how calls are paid for.
        spent: dollars that the run cost before.
        failed: is told of each call that was sent and that no reply came of.
    """

    def __init__(
        self, purchase: Purchase, *, spent: Decimal, failed: Callable[[Failed], None]
    ) -> None:
        self._purchase = purchase
        self._failed = failed
        self._name = keys.new_id("run")
        cap = purchase.cap
        #: dollars for what this makes; the ledger adds up what it spends
        self._left = None if cap is None else max(Decimal(0), cap - spent)

    async def __call__(self, call: Call) -> Bought:
        """Pay for a call.

        Raises:
            PosologyError: it failed. What was sent is paid for, and was told.
        """
        account = Account()
        journal = LedgerJournal(self._purchase.ledger, account, cap=self._left, run=self._name)
        try:
            completion = await self._purchase.completes(call.model, journal)(call)
        except BaseException as error:
            # of what is interrupted, too: what was sent is paid for
            if account.attempts:
                self._failed(
                    Failed(
                        call=call_key(call),
                        error=type(error).__name__,
                        message=str(error),
                        cost=account.charged,
                    )
                )
            raise
        return Bought(completion=completion, cost=account.charged)


async def buy_all(
    work: Callable[[_Thing], Awaitable[None]], things: Iterable[_Thing], *, at_once: int
) -> None:
    """Do what is paid for with each of many things. What one call alone is refused for stops no other.

    Args:
        work: done with each.
        things: taken up in their order.
        at_once: how many are under way at once.

    Raises:
        Exception: what ``work`` raised that would stop every call, such as a budget that is spent; a defect goes
            before it. Nothing more was taken up, and what was under way has ended.
    """
    waiting = iter(things)
    raised: list[Exception] = []

    async def take_up() -> None:
        for thing in waiting:
            if raised:
                return
            try:
                await work(thing)
            except OWN_FAULT:
                pass
            except Exception as error:  # noqa: BLE001 - raised again below, out of the group's wrapping
                raised.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(at_once):
            group.start_soon(take_up)
    for error in sorted(raised, key=lambda one: isinstance(one, PosologyError)):
        raise error
