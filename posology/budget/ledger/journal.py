"""The account of a run that is no job: every attempt reserved, settled and listed."""

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

#: seconds for which the end of an attempt is told again and again to a store that is out of reach: what
#: was spent must not be forgotten
PATIENCE = 300.0
_Said = TypeVar("_Said")


class LedgerJournal:
    """A :class:`~posology.seams.Journal` that spends a tenant's money.

    Args:
        ledger: the tenant's money.
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
        """Reserve, then write down.

        Raises:
            BudgetError: the tenant's limits do not allow it, or not yet.
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
        """Settle, and write down how it ended.

        Raises:
            StoreUnavailable: the store was out of reach for :data:`PATIENCE` seconds; the attempt will
                be taken for billed at its bound.
        """
        await self._inner.close(attempt, completion)
        await until_told(lambda: self._ledger.settle(attempt))


async def until_told(tell: Callable[[], Awaitable[_Said]]) -> _Said:
    """Tell the store of what was spent, again and again where it is out of reach.

    Raises:
        StoreUnavailable: it was for :data:`PATIENCE` seconds.
    """
    give_up = anyio.current_time() + PATIENCE
    while True:
        try:
            return await tell()
        except StoreUnavailable:
            if anyio.current_time() >= give_up:
                raise
        await anyio.sleep(1.0)
