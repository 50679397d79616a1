"""Published forms of spending, balances and audits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from posology.budget.books.archive.inspection import Inspection
from posology.budget.books.audit import Audit, Rebuilt
from posology.budget.books.form import (
    ArchiveInspection,
    KeptOrphan,
    LedgerAudit,
    LedgerRebuilt,
    LedgerSettled,
    MirroredLedger,
    MirrorTotals,
    OverBound,
    SettledOrphan,
)
from posology.budget.books.mirror import Mirrored, Totals
from posology.budget.books.orphans import Ended
from posology.budget.ledger.base import dollars
from posology.budget.ledger.redis import RedisLedger
from posology.budget.spending.figures import Spent, ranked, spent, total
from posology.budget.spending.periods import Period
from posology.published.money import Amounts, BalanceOutput, SpendGroup, SpendOutput
from posology.types import Balance, Grouping

if TYPE_CHECKING:
    from datetime import date

    from redis.asyncio import Redis


def today() -> date:
    """Return the current day, UTC."""
    return datetime.now(UTC).date()


async def spend_output(
    redis: Redis, url: str, tenants: Sequence[str], days: Period, by: Grouping, *, single: bool
) -> SpendOutput:
    """Return the spending of tenants together, and their balances.

    Args:
        redis: the connection.
        url: address of Redis, for messages.
        tenants: names of the tenants.
        days: period of the report.
        by: groups of the report.
        single: whether it is the report of one tenant.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    groups: dict[str, Spent] = {}
    balances: list[BalanceOutput] = []
    for tenant in tenants:
        for name, found in (await spent(redis, url, tenant, days, by)).items():
            groups[name] = groups.get(name, Spent()) + found
        standing = await RedisLedger(redis, url, tenant=tenant).balances()
        balances += balance_outputs(tenant, standing)
    ordered = dict(sorted(groups.items())) if by.of_time else ranked(groups)
    return SpendOutput(
        tenant=tenants[0] if single else None,
        by=by,
        since=days.since,
        until=days.until,
        groups=tuple(SpendGroup(name=name, **_amounts(one)) for name, one in ordered.items()),
        total=Amounts(**_amounts(total(list(ordered.values())))),
        balances=tuple(balances),
    )


def balance_outputs(tenant: str, found: Sequence[Balance]) -> tuple[BalanceOutput, ...]:
    """Return the published form of a tenant's balances."""
    return tuple(BalanceOutput(**balance_fields(tenant, one)) for one in found)


def balance_fields(tenant: str, balance: Balance) -> dict[str, Any]:
    """Return the published fields of one balance."""
    return {
        "tenant": tenant,
        "scope": balance.scope,
        "cap_usd": balance.cap,
        "spent_usd": balance.spent,
        "reserved_usd": balance.reserved,
        "left_usd": balance.left,
        "resets": balance.resets,
    }


def _amounts(found: Spent) -> dict[str, Any]:
    return {
        "attempts": found.attempts,
        "charged_usd": found.charged,
        "at_bounds_usd": found.at_bounds,
        "unknown_costs": found.unknown,
        "input_tokens": found.input,
        "output_tokens": found.output,
    }


def audit_output(audit: Audit, archive: Inspection | None = None) -> LedgerAudit:
    """Return the published form of an audit, and of an inspection of the archive."""
    fields = _audit(audit)
    if archive is not None:
        fields["right"] = audit.right and not archive.problems
        fields["archive"] = _inspection(archive)
    return LedgerAudit(**fields)


def _inspection(found: Inspection) -> ArchiveInspection:
    return ArchiveInspection(
        folder=str(found.folder),
        files=found.files,
        entries=found.entries,
        unchained=found.unchained,
        pending=found.pending,
        head=None if found.head is None else str(found.head),
        problems=found.problems,
    )


def mirror_output(found: Mirrored) -> MirroredLedger:
    """Return the published form of a mirror."""
    return MirroredLedger(
        tenant=found.tenant,
        right=found.right,
        written=found.written,
        mirror=_totals(found.mirror),
        ledger=_totals(found.ledger),
    )


def _totals(found: Totals) -> MirrorTotals:
    return MirrorTotals(entries=found.entries, spent_usd=found.spent, reserved_usd=found.reserved)


def rebuilt_output(rebuilt: Rebuilt) -> LedgerRebuilt:
    """Return the published form of a rebuilt ledger."""
    return LedgerRebuilt(**_audit(rebuilt.audit), changed=rebuilt.changed)


def settled_output(ended: Ended, *, billed: bool) -> LedgerSettled:
    """Return the published form of a settlement of orphaned reservations."""
    return LedgerSettled(
        **_audit(ended.audit),
        settled=tuple(
            SettledOrphan(
                attempt=one.attempt,
                job=one.job,
                day=one.day,
                reserved_usd=dollars(one.nano),
                charged_usd=dollars(one.nano if billed else 0),
            )
            for one in ended.closed
        ),
        kept=tuple(KeptOrphan(attempt=one, reason=why) for one, why in ended.kept.items()),
    )


def _audit(audit: Audit) -> dict[str, Any]:
    return {
        "tenant": audit.tenant,
        "right": audit.right,
        "entries": audit.entries,
        "archived": audit.archived,
        "counters": audit.counters,
        "differences": audit.differences,
        "open": audit.open,
        "open_usd": dollars(audit.open_nano),
        "unknown_costs": audit.unknown,
        "unknown_usd": dollars(audit.unknown_nano),
        "over": audit.over,
        "over_bound": tuple(
            OverBound(
                attempt=entry.attempt,
                job=entry.job,
                model=entry.fields["model"],
                bound_usd=dollars(entry.fields["bound"]),
                charged_usd=dollars(entry.fields["charged"]),
            )
            for entry in audit.over_entries
        ),
        "orphans": audit.orphans,
        "strangers": audit.strangers,
    }
