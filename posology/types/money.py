"""What may be spent, what is set aside for a call, and what a call came to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from posology.types.calls import Opening


class Scope(StrEnum):
    """What a limit is a limit of."""

    #: a tenant's dollars on one day, UTC
    DAY = "day"
    #: a tenant's dollars in one month, UTC
    MONTH = "month"
    #: a tenant's dollars, ever
    TOTAL = "total"
    #: the dollars of one job, or of one run that is none
    JOB = "job"
    #: a tenant's calls under way at once
    CALLS = "calls"
    #: a tenant's requests a minute
    REQUESTS = "requests"
    #: a tenant's tokens a minute, counted by their bounds
    TOKENS = "tokens"


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a tenant may do. ``None``: no limit."""

    #: dollars on one day, UTC
    day: Decimal | None = None
    #: dollars in one month, UTC
    month: Decimal | None = None
    #: dollars, ever
    total: Decimal | None = None
    #: dollars for one job, at most; a job may ask for less
    job: Decimal | None = None
    #: ``provider:name``, or ``provider:*``; ``None``: all
    models: tuple[str, ...] | None = None
    #: calls under way at once
    calls: int | None = None
    requests_per_minute: int | None = None
    #: by the bounds of the calls
    tokens_per_minute: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Balance:
    """How one scope of money stands. ``spent + reserved`` never exceeds ``cap``."""

    scope: Scope
    #: dollars; ``None``: no limit
    cap: Decimal | None
    #: dollars, with calls of unknown cost at their bounds
    spent: Decimal
    #: dollars set aside for calls under way
    reserved: Decimal
    #: when the window is over, UTC; ``None``: never
    resets: datetime | None = None

    @property
    def left(self) -> Decimal | None:
        """Dollars that are neither spent nor set aside; ``None``: no limit."""
        return None if self.cap is None else max(Decimal(0), self.cap - self.spent - self.reserved)


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """What a tenant's minute gave."""

    #: the scopes that were granted; where one refused, others may have been granted still
    granted: frozenset[Scope]
    #: the scope that is full, or ``turn`` where others who came first wait; ``None``: all were granted
    refused: str | None = None
    #: calls that wait and are served before
    place: int = 0
    #: seconds until there is room, as far as it is known now; ``None``: it is not
    retry_after: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    """What one attempt sets aside before it is sent."""

    opening: Opening
    #: the call's number in its run
    call: int
    #: whose money it is, within the tenant: a job, or a run that is none
    job: str
    #: stays the same while the same call waits for headroom: its place in the queue
    ticket: str
    #: dollars for the run as a whole, ``None``: the tenant's limits alone
    cap: Decimal | None = None
