"""Spending, balances and ledgers as JSON."""

from __future__ import annotations

from datetime import date, datetime

from posology.budget.spending.periods import Grouping
from posology.published.base import Dollars, Published
from posology.types.money import Scope


class Amounts(Published):
    """What some attempts at model calls came to."""

    attempts: int
    charged_usd: Dollars
    """what counts against limits: costs, and bounds where nobody knows the cost"""
    at_bounds_usd: Dollars
    """of this, what was charged at bounds"""
    unknown_costs: int
    """attempts whose cost is unknown"""
    input_tokens: int
    output_tokens: int


class SpendGroup(Amounts):
    """What one day, stage, strategy, model or tenant came to."""

    name: str


class BalanceOutput(Published):
    """How one scope of a tenant's money stands; spent and reserved never exceed the cap."""

    tenant: str
    scope: Scope
    cap_usd: Dollars | None
    """null: no limit"""
    spent_usd: Dollars
    """with attempts of unknown cost at their bounds"""
    reserved_usd: Dollars
    """set aside for calls under way"""
    left_usd: Dollars | None
    """null: no limit"""
    resets: datetime | None
    """when the window is over; null: never"""


class SpendOutput(Published):
    """What was spent in some days."""

    tenant: str | None
    """null: all tenants"""
    by: Grouping
    since: date
    until: date
    """inclusive; days are those in which a call was reserved, UTC"""
    groups: tuple[SpendGroup, ...]
    """days in their order, all others with the dearest first"""
    total: Amounts
    balances: tuple[BalanceOutput, ...]
    """as they are now, whatever days were asked for"""


class CounterDifference(Published):
    """A counter that is not the sum of the entries."""

    key: str
    """below the tenant's prefix"""
    field: str
    counted: int | None
    """what stands there; null: no whole number"""
    summed: int
    """what the entries add up to"""


class OverBound(Published):
    """An attempt that cost more than was reserved for it."""

    attempt: str
    job: str
    model: str
    bound_usd: Dollars
    charged_usd: Dollars


class LedgerAudit(Published):
    """How a tenant's counters stand against its entries."""

    tenant: str
    right: bool
    """whether nothing is wrong"""
    entries: int
    """in the ledger"""
    archived: int
    """entries that were moved to the archive"""
    counters: int
    """that were compared"""
    differences: tuple[CounterDifference, ...]
    open: int
    """attempts under way"""
    open_usd: Dollars
    """set aside for them"""
    unknown_costs: int
    """attempts that were or were not billed: nobody knows"""
    unknown_usd: Dollars
    """their bounds, which are charged"""
    over: int
    """attempts that cost more than was reserved for them"""
    over_bound: tuple[OverBound, ...]
    """some of them"""
    orphans: tuple[str, ...]
    """attempts that were reserved and never closed, and are not under way"""
    strangers: tuple[str, ...]
    """attempts that are under way and were never reserved"""


class LedgerRebuilt(LedgerAudit):
    """How they stand after they were put right."""

    changed: tuple[CounterDifference, ...]


class LedgerOutput(Published):
    """What ``posology ledger verify --json`` prints."""

    right: bool
    tenants: tuple[LedgerAudit, ...]


class RebuiltOutput(Published):
    """What ``posology ledger rebuild --json`` prints."""

    right: bool
    tenants: tuple[LedgerRebuilt, ...]


class ExportOutput(Published):
    """What ``posology ledger export --json`` prints."""

    path: str
    tenants: tuple[str, ...]
    attempts: int


class ArchivedFile(Published):
    """A file of entries that are no longer in the ledger."""

    tenant: str
    path: str
    entries: int
    removed: int
    """entries that this run took out; fewer where an earlier run had begun"""


class ArchiveOutput(Published):
    """What ``posology ledger archive --json`` prints."""

    files: tuple[ArchivedFile, ...]
