"""The report: the figures of both sides, their differences, and its published form."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from posology.budget.reconcile.names import Naming
from posology.errors import DriftFound
from posology.published.base import Dollars, Published

#: tokens and requests are whole, dollars are not
Number = int | Decimal


def size(number: Number) -> Number:
    """Return the absolute value."""
    return number if number >= 0 else -number


class Measure(StrEnum):
    """One figure of both sides. Tokens are whole numbers, ``COST`` is dollars."""

    REQUESTS = "requests"
    #: all input tokens, cached or not
    INPUT = "input"
    #: of these, neither read from nor written to a cache
    UNCACHED = "input_uncached"
    CACHE_READ = "cache_read"
    #: written to a cache of any lifetime
    CACHE_WRITE = "cache_write"
    #: of these, to one that lives five minutes
    CACHE_WRITE_5M = "cache_write_5m"
    #: of these, to one that lives an hour
    CACHE_WRITE_1H = "cache_write_1h"
    #: all output tokens, visible or not
    OUTPUT = "output"
    COST = "cost"


class Kind(StrEnum):
    """The content of an export."""

    #: requests and tokens
    USAGE = "usage"
    #: dollars
    COST = "cost"
    #: one row for each request
    REQUESTS = "requests"


class Verdict(StrEnum):
    """The judgement of a difference."""

    EQUAL = "equal"
    #: explained in full by attempts with unknown usage, by midnight or by rounding
    EXPLAINED = "explained"
    #: within the threshold
    WITHIN = "within"
    DRIFT = "drift"


class Side(StrEnum):
    """The side that has a request."""

    BOTH = "both"
    OURS = "ours"
    THEIRS = "theirs"


class Flaw(StrEnum):
    """The kind of mismatch of a request."""

    #: in the export, not in the ledger
    ONLY_THEIRS = "only_theirs"
    #: in the ledger, not in the export
    ONLY_OURS = "only_ours"
    #: twice in the export
    TWICE = "twice"
    #: in both, with different figures
    DIFFERS = "differs"


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """One figure on both sides."""

    measure: Measure
    #: known value of our ledger
    ours: Number
    #: minimum and maximum of our value
    least: Number
    most: Number
    theirs: Number
    #: theirs minus ours
    drift: Number
    #: part of the drift outside our range; negative if theirs is too small
    unexplained: Number
    #: unexplained part, relative to the larger side; ``None``: both are 0
    relative: Decimal | None
    verdict: Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """A day and a model."""

    provider: str
    #: UTC; ``None``: the whole time
    day: str | None
    #: ``None``: all models together; for a day, because the export is not grouped by model
    model: str | None
    side: Side
    compared: tuple[Compared, ...]
    #: number of our attempts with unknown usage or cost
    unknown: int
    #: number of our attempts that may belong to the adjacent day or period
    edge: int
    verdict: Verdict
    #: likely cause; empty: none
    hint: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One figure of one request that differs."""

    measure: Measure
    ours: Number
    theirs: Number
    #: part of it outside our range
    unexplained: Number


@dataclass(frozen=True, kw_only=True, slots=True)
class Mismatch:
    """A request on which the two sides disagree."""

    flaw: Flaw
    #: the provider's id; ``None``: unknown
    request_id: str | None
    #: our attempt; ``None``: there is none
    attempt: str | None
    model: str | None
    #: file and line; empty: not in the export
    where: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Requests:
    """The result for an export with one row for each request."""

    matched: int
    only_ours: int
    only_theirs: int
    twice: int
    differing: int
    #: rows that our attempts without a provider's id explain
    explained: int
    #: attempts with unknown usage that are not in the export: not billed
    unbilled: int
    #: totals; ``unexplained`` is a sum of absolute values
    totals: tuple[Compared, ...]
    #: the first of them
    mismatches: tuple[Mismatch, ...]
    verdict: Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A file of an export."""

    path: str
    #: e.g. ``OpenAI usage, JSON``
    format: str
    provider: str
    kind: Kind
    #: number of rows with figures
    rows: int = 0


class ComparedPeriod(Published):
    """A compared period."""

    provider: str
    kind: Kind
    start: datetime
    end: datetime
    """End, exclusive."""


class ReconcileOutput(Published):
    """Output of ``posology reconcile --json``. Amounts are dollars, as strings; tokens are numbers."""

    agrees: bool
    """Whether no difference exceeds the threshold."""
    providers: tuple[str, ...]
    tenants: tuple[str, ...]
    """Tenants whose attempts were compared."""
    attempts: int
    """Number of our attempts."""
    periods: tuple[ComparedPeriod, ...]
    threshold: Decimal
    """Tolerated unexplained difference, relative to the larger side."""
    tolerance_seconds: float
    """Tolerated difference of the clocks in seconds."""
    unexplained_usd: Dollars | None
    """Largest unexplained difference of all totals in dollars, theirs minus ours; null: dollars were not compared."""
    drifting: int
    """Number of model-days, models and requests that drift."""
    totals: tuple[Group, ...]
    """Totals of the period: of each model, and of each provider."""
    groups: tuple[Group, ...]
    """Groups by day and model."""
    requests: Requests | None
    """Null: no export has one row per request."""
    names: tuple[Naming, ...]
    """Model names that were combined."""
    files: tuple[File, ...]
    notes: tuple[str, ...]
    """Parts that could not be compared, with reasons."""

    def drift(self) -> DriftFound | None:
        """Return the error of the difference; ``None``: both sides agree."""
        if self.agrees:
            return None
        usd = self.unexplained_usd
        amount = "" if not usd else f"${abs(usd):f} {'more' if usd > 0 else 'less'} and "
        where = f"{self.drifting} days or requests" if self.drifting else "the sums"
        return DriftFound(
            f"the provider's account does not agree with the ledger: {amount}{where} drift by more "
            f"than {self.threshold:%}. docs/how-to/reconciliation.md lists possible causes.",
            drift=usd,
            drifting=self.drifting,
        )
