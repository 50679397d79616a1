"""Spending, balances and ledgers as JSON."""

from __future__ import annotations

from datetime import date, datetime

from posology.published.base import Dollars, Published
from posology.types import Grouping
from posology.types.money import Scope


class Amounts(Published):
    """Totals of some attempts."""

    attempts: int
    """Number of attempts."""
    charged_usd: Dollars
    """Dollars that count against limits: costs, and bounds of unknown costs."""
    at_bounds_usd: Dollars
    """Dollars of these that were charged at bounds."""
    unknown_costs: int
    """Number of attempts with unknown cost."""
    input_tokens: int
    """Input tokens."""
    output_tokens: int
    """Output tokens."""


class SpendGroup(Amounts):
    """Totals of one day, stage, strategy, model or tenant."""

    name: str
    """Name of the group."""


class BalanceOutput(Published):
    """Balance of one scope of a tenant; spent and reserved dollars never exceed the cap."""

    tenant: str
    """Name of the tenant."""
    scope: Scope
    """The scope."""
    cap_usd: Dollars | None
    """Limit in dollars; null: none."""
    spent_usd: Dollars
    """Dollars spent, with unknown costs at their bounds."""
    reserved_usd: Dollars
    """Dollars reserved for calls in flight."""
    left_usd: Dollars | None
    """Remaining budget in dollars; null: no limit."""
    resets: datetime | None
    """End of the window; null: it never ends."""


class SpendOutput(Published):
    """Spending in a range of days."""

    tenant: str | None
    """Name of the tenant; null: all tenants."""
    by: Grouping
    """What the groups are grouped by."""
    since: date
    """First day, UTC."""
    until: date
    """Last day, UTC, inclusive; a call belongs to the day of its reservation."""
    groups: tuple[SpendGroup, ...]
    """Groups: days in order, all others with the largest amount first."""
    total: Amounts
    """Totals of all groups."""
    balances: tuple[BalanceOutput, ...]
    """Balances now, regardless of the days asked for."""


class CounterDifference(Published):
    """A counter that is not the sum of the ledger's entries."""

    key: str
    """Redis key, below the tenant's prefix."""
    field: str
    """Field of the key."""
    counted: int | None
    """Value of the counter; null: not a whole number."""
    summed: int
    """Sum of the entries."""


class OverBound(Published):
    """An attempt that cost more than was reserved for it."""

    attempt: str
    """Id of the attempt."""
    job: str
    """Id of the job."""
    model: str
    """Model, as `provider:name`."""
    bound_usd: Dollars
    """Dollars that were reserved."""
    charged_usd: Dollars
    """Dollars that were charged."""


class LedgerAudit(Published):
    """Comparison of a tenant's counters with its ledger."""

    tenant: str
    """Name of the tenant."""
    right: bool
    """Whether nothing is wrong."""
    entries: int
    """Number of entries in the ledger."""
    archived: int
    """Number of entries moved to the archive."""
    counters: int
    """Number of counters compared."""
    differences: tuple[CounterDifference, ...]
    """Counters that differ."""
    open: int
    """Number of attempts in flight."""
    open_usd: Dollars
    """Dollars reserved for them."""
    unknown_costs: int
    """Number of attempts with unknown billing status."""
    unknown_usd: Dollars
    """Dollars of their bounds, which are charged."""
    over: int
    """Number of attempts that cost more than was reserved."""
    over_bound: tuple[OverBound, ...]
    """Some of these attempts."""
    orphans: tuple[str, ...]
    """Orphaned reservations: attempts that were never settled and are not in flight."""
    strangers: tuple[str, ...]
    """Attempts in flight without a reservation."""


class LedgerRebuilt(LedgerAudit):
    """Comparison after the counters were rebuilt."""

    changed: tuple[CounterDifference, ...]
    """Counters that were changed."""


class LedgerOutput(Published):
    """The output of `posology ledger verify --json`."""

    right: bool
    """Whether nothing is wrong."""
    tenants: tuple[LedgerAudit, ...]
    """Audit of each tenant."""


class RebuiltOutput(Published):
    """The output of `posology ledger rebuild --json`."""

    right: bool
    """Whether nothing is wrong now."""
    tenants: tuple[LedgerRebuilt, ...]
    """Result for each tenant."""


class ExportOutput(Published):
    """The output of `posology ledger export --json`."""

    path: str
    """File that was written."""
    tenants: tuple[str, ...]
    """Tenants in the file."""
    attempts: int
    """Number of attempts in the file."""


class ArchivedFile(Published):
    """A file of entries that were moved out of the ledger."""

    tenant: str
    """Name of the tenant."""
    path: str
    """The file."""
    entries: int
    """Number of entries in the file."""
    removed: int
    """Number of entries that this run removed; fewer if an earlier run had begun."""


class ArchiveOutput(Published):
    """The output of `posology ledger archive --json`."""

    files: tuple[ArchivedFile, ...]
    """Files that were written."""
