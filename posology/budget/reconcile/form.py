"""Published form of a reconciliation, the output of ``posology reconcile``."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from posology.budget.reconcile.measures import Kind
from posology.budget.reconcile.names import Naming
from posology.budget.reconcile.report import Group, Requests
from posology.budget.reconcile.rows import File
from posology.published.base import Dollars, Published


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
