"""What can go wrong with money."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from posology.errors.base import InputError, PosologyError


class BudgetError(PosologyError):
    """The tenant's limits do not allow it: nothing was sent."""

    exit_code = 11


class BudgetExhausted(BudgetError):
    """What is left does not pay for the call at its worst, and nothing that is under way can change that."""

    def __init__(
        self,
        message: str,
        *,
        scope: str,
        cap: Decimal,
        spent: Decimal,
        reserved: Decimal,
        asked: Decimal,
        resets: datetime | None,
    ) -> None:
        super().__init__(
            message,
            scope=scope,
            cap=cap,
            spent=spent,
            reserved=reserved,
            asked=asked,
            resets=resets,
        )

    #: ``day``, ``month``, ``total`` or ``job``
    scope: str
    #: dollars
    cap: Decimal
    #: dollars
    spent: Decimal
    #: dollars set aside for calls under way
    reserved: Decimal
    #: dollars that the call may cost
    asked: Decimal
    #: when the window is over, UTC; ``None``: never
    resets: datetime | None


class NothingAffordable(BudgetError):
    """The budget pays for no way to answer a question, or for none of its partitions."""

    def __init__(
        self,
        message: str,
        *,
        partitions: int | None = None,
        remaining: Decimal | None = None,
        cheapest: Decimal | None = None,
    ) -> None:
        super().__init__(message, partitions=partitions, remaining=remaining, cheapest=cheapest)

    #: of which none could be paid for; ``None``: nothing was begun
    partitions: int | None
    #: dollars that were left when it was decided; ``None``: it was found out later
    remaining: Decimal | None
    #: dollars that the cheapest way to answer costs at worst; ``None``: nobody looked
    cheapest: Decimal | None


class HeadroomReserved(BudgetError):
    """A limit has room, but calls under way hold it: the call may be made when they have ended."""

    def __init__(
        self,
        message: str,
        *,
        scope: str,
        asked: Decimal | None,
        place: int,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, scope=scope, asked=asked, place=place, retry_after=retry_after)

    #: a :class:`~posology.types.Scope`, or ``turn`` where others who came first wait
    scope: str
    #: dollars that the call may cost; ``None``: it is not money that is short
    asked: Decimal | None
    #: calls that wait and are served before this one
    place: int
    #: seconds after which there is room again; ``None``: when others end
    retry_after: float | None


class CallTooLarge(BudgetError):
    """The call may take more tokens than the tenant has in a whole minute: no waiting helps."""

    def __init__(self, message: str, *, model: str, tokens: int, limit: int) -> None:
        super().__init__(message, model=model, tokens=tokens, limit=limit)

    model: str
    #: input and output that the call may take, at most
    tokens: int
    #: tokens a minute
    limit: int


class ModelNotAllowed(BudgetError):
    """The tenant may not use the model."""

    def __init__(self, message: str, *, model: str) -> None:
        super().__init__(message, model=model)

    model: str


class TenantDisabled(BudgetError):
    """The tenant was disabled: nothing is spent for it."""

    def __init__(self, message: str, *, tenant: str) -> None:
        super().__init__(message, tenant=tenant)

    tenant: str


class InvalidLimit(InputError):
    """A limit that no tenant can have."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, field=field)

    #: of :class:`~posology.types.Limits`, or of what else was asked
    field: str


class TenantError(PosologyError):
    """What was asked about a tenant cannot be done."""

    exit_code = 12

    def __init__(self, message: str, *, tenant: str) -> None:
        super().__init__(message, tenant=tenant)

    tenant: str


class TenantNotFound(TenantError):
    """There is no tenant of that name."""


class TenantExists(TenantError):
    """There is a tenant of that name already."""


class LedgerBusy(TenantError):
    """Its ledger is being archived or rebuilt meanwhile."""


class KeyRefused(PosologyError):
    """The API key is none, or no longer one."""

    exit_code = 13


class DriftFound(PosologyError):
    """A provider's own account of what was used says something else than the ledger."""

    exit_code = 14

    def __init__(self, message: str, *, drift: Decimal | None, drifting: int) -> None:
        super().__init__(message, drift=drift, drifting=drifting)

    #: dollars that nothing of ours explains, theirs less ours; ``None``: dollars were not compared
    drift: Decimal | None
    #: days of a model, and requests, on which the two sides do not agree
    drifting: int
