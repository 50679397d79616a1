"""Published forms of audits, exports and archives of ledgers."""

from __future__ import annotations

from dataclasses import dataclass

from posology.described import published
from posology.published.base import Dollars, Published


@published("CounterDifference")
@dataclass(frozen=True, kw_only=True, slots=True)
class CounterDifference:
    """A counter that is not the sum of the ledger's entries."""

    key: str
    """Redis key, below the tenant's prefix."""
    field: str
    """Field of the key."""
    counted: int | None
    """Value of the counter; null: not a whole number."""
    summed: int
    """Sum of the entries."""

    @property
    def right(self) -> bool:
        """Whether the counter is their sum after all."""
        return self.counted == self.summed


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


@published("ArchiveProblem")
@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something wrong with an archive."""

    file: str | None
    """Name of the file; null: the archive as a whole."""
    line: int | None
    """Number of the line; null: the file as a whole."""
    message: str
    """The problem."""


class ArchiveInspection(Published):
    """A tenant's archive, compared with itself and with Redis."""

    folder: str
    """Folder of the files."""
    files: int
    """Number of files."""
    entries: int
    """Number of entries in the files."""
    unchained: int
    """Number of entries that a version before the chain archived."""
    pending: int
    """Number of entries that are still in the ledger, too: run `posology ledger archive` again."""
    head: str | None
    """Place, number and SHA-256 of the last record of the chain; null: none is chained."""
    problems: tuple[Problem, ...]
    """Changed, dropped, moved and cut records."""


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
    archive: ArchiveInspection | None = None
    """The archive's files; null: not inspected."""


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


class SettledOrphan(Published):
    """An orphaned reservation that was charged or freed."""

    attempt: str
    """Id of the attempt."""
    job: str
    """Id of the job, or of a run without one."""
    day: str
    """Day that the money counts on, UTC."""
    reserved_usd: Dollars
    """Dollars that were reserved."""
    charged_usd: Dollars
    """Dollars that were charged: the reserved amount, or 0."""


class KeptOrphan(Published):
    """A reservation that was not settled."""

    attempt: str
    """Id of the attempt."""
    reason: str
    """`young`: younger than `--hours`; `archived`: its entry is in the archive, and in none of the given files;
    `fine`: it was asked for, and is not orphaned."""


class LedgerSettled(LedgerAudit):
    """Comparison after orphaned reservations were settled."""

    settled: tuple[SettledOrphan, ...]
    """Reservations that were settled."""
    kept: tuple[KeptOrphan, ...]
    """Reservations that were not."""


class SettledOutput(Published):
    """The output of `posology ledger settle-orphans --json`."""

    right: bool
    """Whether nothing is wrong now."""
    tenants: tuple[LedgerSettled, ...]
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


class MirrorTotals(Published):
    """Sums of all entries of a tenant."""

    entries: int
    """Number of entries."""
    spent_usd: Dollars
    """Dollars spent."""
    reserved_usd: Dollars
    """Dollars reserved."""


class MirroredLedger(Published):
    """The mirror of one tenant."""

    tenant: str
    """Name of the tenant."""
    right: bool
    """Whether mirror and ledger agree."""
    written: int
    """Number of entries that this run wrote."""
    mirror: MirrorTotals
    """Sums of the rows."""
    ledger: MirrorTotals
    """The ledger's number of entries, archived ones included, and its counters, when the run began."""


class MirrorOutput(Published):
    """The output of `posology ledger mirror --json`."""

    right: bool
    """Whether all mirrors agree with their ledgers."""
    tenants: tuple[MirroredLedger, ...]
    """Mirror of each tenant."""
