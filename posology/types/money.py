"""Limits, balances and reservations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from posology.types.calls import Opening


class Scope(StrEnum):
    """The quantity that a limit bounds."""

    #: a tenant's dollars on one day, UTC
    DAY = "day"
    #: a tenant's dollars in one month, UTC
    MONTH = "month"
    #: a tenant's dollars in total
    TOTAL = "total"
    #: the dollars of one job, or of one run in process
    JOB = "job"
    #: a tenant's concurrent calls
    CALLS = "calls"
    #: a tenant's requests per minute
    REQUESTS = "requests"
    #: a tenant's tokens per minute, counted at the calls' bounds
    TOKENS = "tokens"


class Grouping(StrEnum):
    """Groupings of a spending report."""

    DAY = "day"
    MONTH = "month"
    STAGE = "stage"
    STRATEGY = "strategy"
    MODEL = "model"
    TIER = "tier"
    TENANT = "tenant"

    @property
    def of_time(self) -> bool:
        """Whether the groups are periods, which have an order of their own."""
        return self in (Grouping.DAY, Grouping.MONTH)


#: form of collections' names
COLLECTION = r"^[a-z0-9][a-z0-9_-]{0,63}$"


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """A tenant's limits. ``None``: no limit."""

    #: dollars on one day, UTC
    day: Decimal | None = None
    #: dollars in one month, UTC
    month: Decimal | None = None
    #: dollars in total
    total: Decimal | None = None
    #: maximum dollars of one job; a job may ask for less
    job: Decimal | None = None
    #: ``provider:name``, or ``provider:*``; ``None``: all
    models: tuple[str, ...] | None = None
    #: concurrent calls
    calls: int | None = None
    requests_per_minute: int | None = None
    #: counted at the calls' bounds
    tokens_per_minute: int | None = None
    #: waiting jobs; ``None``: the installation's limit
    queued: int | None = None
    #: MiB of Redis that jobs occupy until their records expire; ``None``: the installation's limit
    stored: int | None = None
    #: whether the tenant may upload files that are added to the index, which all tenants share
    may_ingest: bool = False
    #: collections that the tenant may read besides the default index
    collections: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Balance:
    """The balance of one scope of dollars. ``spent + reserved`` never exceeds ``cap``."""

    scope: Scope
    #: dollars; ``None``: no limit
    cap: Decimal | None
    #: dollars, with calls of unknown cost at their bounds
    spent: Decimal
    #: dollars reserved for in-flight calls
    reserved: Decimal
    #: end of the window, UTC; ``None``: never
    resets: datetime | None = None

    @property
    def left(self) -> Decimal | None:
        """Remaining dollars: neither spent nor reserved; ``None``: no limit."""
        return None if self.cap is None else max(Decimal(0), self.cap - self.spent - self.reserved)


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """The result of a request to a tenant's rate limits."""

    #: granted scopes; some may be granted although another refused
    granted: frozenset[Scope]
    #: the full scope, or ``turn`` if earlier calls wait; ``None``: all were granted
    refused: str | None = None
    #: number of waiting calls that are served first
    place: int = 0
    #: seconds until there is room; ``None``: unknown
    retry_after: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    """The dollars that one attempt sets aside before it is sent."""

    opening: Opening
    #: the call's number in its run
    call: int
    #: id of the job, or of the run in process
    job: str
    #: the call's place in the queue, constant while it waits
    ticket: str
    #: dollars for the whole run; ``None``: the tenant's limits alone
    cap: Decimal | None = None
    #: whether it goes into a provider's batch, and so is no concurrent call
    batch: bool = False
