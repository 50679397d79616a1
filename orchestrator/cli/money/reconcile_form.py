"""How the ledger and a provider's own account agree, as JSON."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from posology.budget.reconcile.measures import Kind
from posology.budget.reconcile.names import Naming
from posology.budget.reconcile.report import Group, Requests
from posology.budget.reconcile.rows import File
from posology.published.base import Published


class ComparedPeriod(Published):
    """The time for which something was compared."""

    provider: str
    kind: Kind
    start: datetime
    end: datetime
    """exclusive"""


class ReconcileOutput(Published):
    """What ``posology reconcile --json`` prints. Amounts are dollars, as strings; tokens are numbers."""

    agrees: bool
    """whether nothing drifts by more than the threshold"""
    providers: tuple[str, ...]
    tenants: tuple[str, ...]
    """whose attempts were compared"""
    attempts: int
    """attempts of ours that were looked at"""
    periods: tuple[ComparedPeriod, ...]
    threshold: Decimal
    """the share of the larger side up to which a drift passes that nothing explains"""
    tolerance_seconds: float
    """by which the two sides may put an attempt to another time"""
    unexplained_usd: Decimal | None
    """of all totals the most, theirs less ours; null when dollars were not compared"""
    drifting: int
    """days of a model, models as a whole, and requests that drift"""
    totals: tuple[Group, ...]
    """over the whole time: of each model, and of all of a provider"""
    groups: tuple[Group, ...]
    """by day and model"""
    requests: Requests | None
    """null without an export that has one row a request"""
    names: tuple[Naming, ...]
    """names of models that were compared as one"""
    files: tuple[File, ...]
    notes: tuple[str, ...]
    """what could not be compared, and why"""
