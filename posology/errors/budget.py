"""Errors of budgets, tenants and ledgers."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from posology.errors.base import InputError, PosologyError


class BudgetError(PosologyError):
    """The tenant's limits refuse the call: nothing was sent."""

    exit_code = 11


class BudgetExhausted(BudgetError):
    """The remaining budget is below the call's maximum cost, whatever in-flight calls will cost."""

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
    #: dollars reserved for in-flight calls
    reserved: Decimal
    #: maximum cost of the call, dollars
    asked: Decimal
    #: end of the window, UTC; ``None``: never
    resets: datetime | None


class NothingAffordable(BudgetError):
    """The remaining budget pays for no strategy, or for none of the partitions."""

    def __init__(
        self,
        message: str,
        *,
        partitions: int | None = None,
        remaining: Decimal | None = None,
        cheapest: Decimal | None = None,
    ) -> None:
        super().__init__(message, partitions=partitions, remaining=remaining, cheapest=cheapest)

    #: number of partitions, of which none is affordable; ``None``: nothing was begun
    partitions: int | None
    #: remaining budget at the decision, dollars; ``None``: refused after the decision
    remaining: Decimal | None
    #: maximum cost of the cheapest dose, dollars; ``None``: not computed
    cheapest: Decimal | None


class HeadroomReserved(BudgetError):
    """In-flight calls have reserved the rest of a limit: the call may be made when they have ended."""

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

    #: a :class:`~posology.types.Scope`, ``turn`` if earlier calls wait, or ``capacity`` of the provider
    scope: str
    #: maximum cost of the call, dollars; ``None``: the limit is not one of dollars
    asked: Decimal | None
    #: number of waiting calls that are served first
    place: int
    #: seconds until there is room; ``None``: when other calls end
    retry_after: float | None


class CallTooLarge(BudgetError):
    """The call may need more tokens than the tenant's limit per minute: waiting does not help."""

    def __init__(self, message: str, *, model: str, tokens: int, limit: int) -> None:
        super().__init__(message, model=model, tokens=tokens, limit=limit)

    model: str
    #: maximum input and output tokens of the call
    tokens: int
    #: tokens per minute
    limit: int


class ModelNotAllowed(BudgetError):
    """The tenant may not use the model."""

    def __init__(self, message: str, *, model: str) -> None:
        super().__init__(message, model=model)

    model: str


class TenantDisabled(BudgetError):
    """The tenant is disabled: nothing is spent for it."""

    def __init__(self, message: str, *, tenant: str) -> None:
        super().__init__(message, tenant=tenant)

    tenant: str


class QueueFull(BudgetError):
    """The tenant has no room for more jobs: too many wait, or their records occupy too much of Redis."""

    def __init__(
        self,
        message: str,
        *,
        limit: str,
        allowed: int,
        used: int,
        asked: int,
        retry_after: float,
    ) -> None:
        super().__init__(
            message, limit=limit, allowed=allowed, used=used, asked=asked, retry_after=retry_after
        )

    #: ``queued`` (jobs) or ``stored`` (MiB)
    limit: str
    allowed: int
    #: present use
    used: int
    #: what the submission needs
    asked: int
    #: seconds until there may be room
    retry_after: float


class InvalidLimit(InputError):
    """A limit that no tenant can have."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, field=field)

    #: name of the wrong field, e.g. of :class:`~posology.types.Limits`
    field: str


class TenantError(PosologyError):
    """An operation on a tenant failed."""

    exit_code = 12

    def __init__(self, message: str, *, tenant: str) -> None:
        super().__init__(message, tenant=tenant)

    tenant: str


class TenantNotFound(TenantError):
    """No tenant has that name."""


class TenantExists(TenantError):
    """A tenant has that name already."""


class IngestNotAllowed(TenantError):
    """The tenant may not add literature to the index."""


class LedgerBusy(TenantError):
    """The ledger is being archived or rebuilt."""


class MirrorFailed(PosologyError):
    """The database of a ledger's mirror is unreachable, or refuses."""

    exit_code = 16

    def __init__(self, message: str, *, address: str) -> None:
        super().__init__(message, address=address)

    #: host and database, without user and password
    address: str


class MirrorMismatch(MirrorFailed):
    """The database has tables of another layout."""


class KeyRefused(PosologyError):
    """The API key or access token is unknown, invalid or revoked."""

    exit_code = 13


class DriftFound(PosologyError):
    """A provider's own account of usage disagrees with the ledger."""

    exit_code = 14

    def __init__(self, message: str, *, drift: Decimal | None, drifting: int) -> None:
        super().__init__(message, drift=drift, drifting=drifting)

    #: unexplained dollars, provider minus ledger; ``None``: dollars were not compared
    drift: Decimal | None
    #: number of model days and requests that disagree
    drifting: int
