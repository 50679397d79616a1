"""The ledger: nothing is sent before its worst case is reserved, and nothing that was sent is forgotten."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import Decimal

from posology.types import Attempt, Balance, Reservation

#: nano-dollars in a dollar: what counters count
NANO = 1_000_000_000
#: the highest limit, dollars: above it a Lua number does not hold every nano-dollar
MAX_CAP = Decimal(9_000_000)
#: seconds for which a reservation holds without being extended
LEASE = 120.0


class Ledger(ABC):
    """The money of one tenant.

    At every instant and in every scope (day, month, total, job) ``spent + reserved <= cap``, as long
    as no call costs more than its bound.
    """

    @abstractmethod
    async def reserve(self, asked: Reservation) -> None:
        """Set the bound of an attempt aside in all scopes, or in none.

        The windows of day and month are those of the time of the reservation, whenever it is settled.
        To repeat it with the same id changes nothing.

        Raises:
            BudgetExhausted: what is spent leaves too little in some scope.
            HeadroomReserved: there would be room if what is under way cost nothing; ask again with the
                same ticket within five seconds to keep the place in the queue.
            ModelNotAllowed: the tenant may not use the model.
            TenantDisabled: nothing is spent for the tenant.
            StoreUnavailable: it is not known; nothing may be sent.
        """

    @abstractmethod
    async def settle(self, attempt: Attempt) -> None:
        """Charge what an attempt came to, and free the rest; its bound where the cost is unknown.

        What was taken for lost meanwhile is put right. To repeat it changes nothing.

        Raises:
            StoreUnavailable: it is not known whether it was written down.
        """

    @abstractmethod
    async def release(self, attempt: str) -> None:
        """Free a reservation of which nothing was sent.

        Args:
            attempt: its id.
        """

    @abstractmethod
    async def leave(self, ticket: str, job: str) -> None:
        """Give up waiting for headroom."""

    @abstractmethod
    async def extend(self, attempts: Sequence[str]) -> int:
        """Hold reservations for another lease; returns how many are open still."""

    @abstractmethod
    async def sweep(self) -> list[str]:
        """Charge the bounds of reservations whose leases are over: billed or not, nobody knows.

        Returns:
            The ids of the attempts.
        """

    @abstractmethod
    async def job_limit(self) -> Decimal | None:
        """Dollars that the tenant allows one job or run, at most; ``None``: no limit."""

    @abstractmethod
    async def balances(self, job: str | None = None) -> tuple[Balance, ...]:
        """How day, month, total and, where asked for, a job stand."""


def nano(dollars: Decimal) -> int:
    """Nano-dollars, rounded up: a counter may say too much by less than one, never too little."""
    # exact: a Decimal's own arithmetic rounds to 28 digits first
    numerator, denominator = dollars.as_integer_ratio()
    return -(-numerator * NANO // denominator)


def dollars(nano_dollars: int | str) -> Decimal:
    """Dollars as a counter's nano-dollars stand for."""
    return Decimal(int(nano_dollars)) / NANO
