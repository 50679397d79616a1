"""JSON output of ``posology reconcile``."""

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
    """end, exclusive"""


class ReconcileOutput(Published):
    """Output of ``posology reconcile --json``. Amounts are dollars, as strings; tokens are numbers."""

    agrees: bool
    """whether no difference exceeds the threshold"""
    providers: tuple[str, ...]
    tenants: tuple[str, ...]
    """tenants whose attempts were compared"""
    attempts: int
    """number of our attempts"""
    periods: tuple[ComparedPeriod, ...]
    threshold: Decimal
    """tolerated unexplained difference, relative to the larger side"""
    tolerance_seconds: float
    """tolerated difference of the clocks in seconds"""
    unexplained_usd: Dollars | None
    """largest unexplained difference of all totals in dollars, theirs minus ours; null: dollars were not compared"""
    drifting: int
    """number of model-days, models and requests that drift"""
    totals: tuple[Group, ...]
    """totals of the period: of each model, and of each provider"""
    groups: tuple[Group, ...]
    """groups by day and model"""
    requests: Requests | None
    """null: no export has one row per request"""
    names: tuple[Naming, ...]
    """model names that were combined"""
    files: tuple[File, ...]
    notes: tuple[str, ...]
    """parts that could not be compared, with reasons"""
