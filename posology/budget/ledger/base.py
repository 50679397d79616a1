"""The interface of ledgers: reserve the maximum cost before sending, settle after."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import Decimal

from posology.llm.pace import allowed, generation
from posology.types import Attempt, Balance, Opening, Reservation

#: nano-dollars per dollar: the unit of counters
NANO = 1_000_000_000
#: maximum limit, dollars: above it a Lua number cannot represent every nano-dollar
MAX_CAP = Decimal(9_000_000)
#: seconds until a reservation expires without an extension
LEASE = 120.0


class Ledger(ABC):
    """The ledger of one tenant.

    Invariant in every scope (day, month, total, job): ``spent + reserved <= cap``, as long as no call
    costs more than its bound.
    """

    #: name of the tenant
    tenant: str

    @abstractmethod
    async def reserve(self, asked: Reservation) -> None:
        """Reserve the bound of an attempt in all scopes, or in none.

        The windows of day and month are those of the time of the reservation, not of the settlement.
        It is idempotent by id.

        Raises:
            BudgetExhausted: the remaining budget of a scope is too small.
            HeadroomReserved: in-flight calls have reserved the rest; retry with the same ticket within five
                seconds to keep the place in the queue.
            ModelNotAllowed: the tenant may not use the model.
            TenantDisabled: the tenant is disabled.
            StoreUnavailable: the store did not answer; nothing may be sent.
        """

    @abstractmethod
    async def settle(self, attempt: Attempt) -> None:
        """Charge the cost of an attempt and free the rest of its reservation; an unknown cost is charged at the bound.

        An attempt that was swept as orphaned is corrected. It is idempotent.

        Raises:
            StoreUnavailable: it is unknown whether it was recorded.
        """

    @abstractmethod
    async def release(self, attempt: str) -> None:
        """Free the reservation of an attempt that was not sent.

        Args:
            attempt: its id.
        """

    @abstractmethod
    async def leave(self, ticket: str, job: str) -> None:
        """Remove a ticket from the queue for headroom."""

    @abstractmethod
    async def extend(self, attempts: Sequence[str]) -> int:
        """Extend reservations to another lease from now, those with a longer one not; return how many are still open."""

    @abstractmethod
    async def sweep(self) -> list[str]:
        """Settle orphaned reservations, whose leases have expired, at their bounds: billing status unknown.

        Returns:
            The ids of the attempts.
        """

    @abstractmethod
    async def job_limit(self) -> Decimal | None:
        """Return the tenant's maximum dollars for one job or run; ``None``: no limit."""

    @abstractmethod
    async def balances(self, job: str | None = None) -> tuple[Balance, ...]:
        """Return the balances of day, month and total, and of a job if one is given."""


def lease_of(opening: Opening, lease: float, floor: float | None) -> float:
    """Return the seconds until a reservation expires: as long as the request that it guards may take.

    Args:
        opening: the attempt.
        lease: of a request of the standard tier, as far as its time does not depend on its tokens.
        floor: fewest tokens a second that a reply is written at, see :func:`~posology.llm.pace.generation`.
    """
    return lease + allowed(opening.tier, 0.0) + generation(opening.max_tokens, floor)


def nano(dollars: Decimal) -> int:
    """Return dollars as nano-dollars, rounded up: a counter is never too low."""
    # exact: a Decimal's own arithmetic rounds to 28 digits first
    numerator, denominator = dollars.as_integer_ratio()
    return -(-numerator * NANO // denominator)


def dollars(nano_dollars: int | str) -> Decimal:
    """Return a counter's nano-dollars as dollars."""
    return Decimal(int(nano_dollars)) / NANO
