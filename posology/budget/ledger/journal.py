"""The journal of a run in process: it reserves, settles and lists every attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import TypeVar

import anyio

from posology.budget.ledger.base import Ledger
from posology.errors import StoreUnavailable
from posology.seams import Journal
from posology.store import keys
from posology.types import Attempt, Completion, Opening, Reservation

#: seconds for which a settlement is retried while the store is unreachable: no charge may be lost
SETTLE_TIMEOUT = 300.0
_Reply = TypeVar("_Reply")


class LedgerJournal:
    """A :class:`~posology.seams.Journal` that spends a tenant's budget.

    Args:
        ledger: of the tenant.
        inner: lists the attempts, and numbers the calls.
        cap: dollars for the run as a whole; ``None``: the tenant's limits alone.
        run: the run's id; ``None``: a new one.
    """

    def __init__(
        self, ledger: Ledger, inner: Journal, *, cap: Decimal | None = None, run: str | None = None
    ) -> None:
        self._ledger = ledger
        self._inner = inner
        self._cap = cap
        self.run = run or keys.new_id("run")

    async def open(self, opening: Opening) -> int:
        """Reserve, then record.

        Raises:
            BudgetError: the tenant's limits refuse the attempt, for good or for now.
            StoreUnavailable: nothing may be sent.
        """
        ticket = f"{self.run}|{opening.key}"
        await self._ledger.reserve(
            Reservation(
                opening=opening, call=opening.call or 0, job=self.run, ticket=ticket, cap=self._cap
            )
        )
        return await self._inner.open(opening)

    async def close(self, attempt: Attempt, completion: Completion | None) -> None:
        """Record the end of an attempt, and settle it.

        Raises:
            StoreUnavailable: the store was unreachable for :data:`SETTLE_TIMEOUT` seconds; the attempt will
                be charged at its bound.
        """
        await self._inner.close(attempt, completion)
        await until_recorded(lambda: self._ledger.settle(attempt))


async def until_recorded(write: Callable[[], Awaitable[_Reply]]) -> _Reply:
    """Write a charge to the store, with retries while it is unreachable.

    Raises:
        StoreUnavailable: it was unreachable for :data:`SETTLE_TIMEOUT` seconds.
    """
    give_up = anyio.current_time() + SETTLE_TIMEOUT
    while True:
        try:
            return await write()
        except StoreUnavailable:
            if anyio.current_time() >= give_up:
                raise
        await anyio.sleep(1.0)
