"""Calls of a run: made through a tenant's budget, several concurrently."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypeVar

from orchestrator.question.pipeline import Completes
from orchestrator.training.paid.rows import Failed
from posology.budget.ledger.base import Ledger
from posology.budget.ledger.journal import LedgerJournal
from posology.concurrency import map_concurrently
from posology.errors import ContextTooLong, RequestRejected, UnusableReply
from posology.llm.accounting import Account
from posology.llm.memo import call_key
from posology.store import keys
from posology.types import Call, Completion


class RowFailed(Exception):
    """A row of a provider's batch failed for good; its cause is the provider's error."""


#: a provider's errors that concern one call and not those after it
REFUSED = (UnusableReply, ContextTooLong, RequestRejected)
#: the same, in either lane
OWN_FAULT = (*REFUSED, RowFailed)

_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class Purchase:
    """How calls are made and paid for."""

    completes: Completes
    ledger: Ledger
    #: dollars for all calls of the run, earlier parts of an interrupted run included; ``None``: only the tenant's
    #: limits apply
    cap: Decimal | None
    #: concurrent calls
    at_once: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Bought:
    """A reply and its cost."""

    completion: Completion
    #: dollars counted against limits
    cost: Decimal


class Buys(Protocol):
    """Pays for one call, the only way of a run to spend."""

    async def __call__(self, call: Call) -> Bought:
        """Make and pay for a call.

        Raises:
            PosologyError: the call failed. Sent attempts are paid for and recorded.
        """
        ...


class Buyer:
    """Makes single calls and records their cost.

    Args:
        purchase: how calls are paid for.
        spent: dollars that the run has spent before.
        failed: called for each call that was sent and failed.
    """

    def __init__(
        self, purchase: Purchase, *, spent: Decimal, failed: Callable[[Failed], Awaitable[None]]
    ) -> None:
        self._purchase = purchase
        self._failed = failed
        self._name = keys.new_id("run")
        cap = purchase.cap
        #: dollars for the calls of this object; the ledger adds up what they cost
        self._cap = None if cap is None else max(Decimal(0), cap - spent)

    async def __call__(self, call: Call) -> Bought:
        """Make and pay for a call.

        Raises:
            PosologyError: the call failed. Sent attempts are paid for and reported to ``failed``.
        """
        account = Account()
        journal = LedgerJournal(self._purchase.ledger, account, cap=self._cap, run=self._name)
        try:
            completion = await self._purchase.completes(call.model, journal)(call)
        except BaseException as error:
            # includes interruptions: sent attempts are paid for
            if account.attempts:
                await self._failed(
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
    work: Callable[[_Item], Awaitable[None]],
    items: Iterable[_Item],
    *,
    at_once: int,
    tick: Callable[[int], None] = lambda _: None,
) -> None:
    """Work on all items, several concurrently. An error of :data:`OWN_FAULT` stops only its own item.

    Args:
        work: pays for one item.
        items: worked on in this order.
        at_once: concurrent items.
        tick: called with 1 for each item that has ended.

    Raises:
        Exception: an error that concerns all calls, such as a spent budget; defects take precedence. No further
            item was begun, and items in progress have ended.
    """

    async def buy(item: _Item) -> None:
        with suppress(*OWN_FAULT):
            await work(item)
        tick(1)

    await map_concurrently(buy, items, limit=at_once, finish=True)
