"""Spending, budgets, tenants, audits and estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.rendering.forms.columns import (
    Cell,
    Column,
    Kind,
    Table,
    Tone,
    Value,
    enabled,
    share,
    table,
)
from orchestrator.rendering.words import money, plural
from posology.budget.books.form import CounterDifference, LedgerAudit
from posology.budget.ledger.base import dollars
from posology.budget.ledger.refusals import plain
from posology.published.estimates import EstimateOutput, ScopeEstimate, StrategyEstimate
from posology.published.money import BalanceOutput, SpendGroup, SpendOutput

if TYPE_CHECKING:
    from posology.budget.tenants.store import Tenant
    from posology.types import Limits

#: text of a limit that is not set
UNLIMITED = "no limit"
#: names of a tenant's limits
LIMITS: Mapping[str, str] = MappingProxyType(
    {
        "day": "budget per day (UTC)",
        "month": "budget per month (UTC)",
        "total": "total budget",
        "job": "budget per job",
        "models": "models",
        "calls": "concurrent calls",
        "requests_per_minute": "requests per minute",
        "tokens_per_minute": "tokens per minute",
        "queued": "waiting jobs",
        "stored": "MiB of records in Redis",
        "may_ingest": "may add literature",
        "collections": "collections besides the default index",
    }
)
_UNSET = {"models": "all", "queued": "the installation's", "stored": "the installation's"}
#: beginnings of the fields in nano-dollars
_NANO = ("spent", "reserved", "nano", "bound")


def spending(out: SpendOutput, only: str = "") -> Table:
    """Return the groups of a report; with all columns, also their total."""
    most = max((one.charged_usd for one in out.groups), default=Decimal(0))
    whole = not only
    only = only or f"{out.by}, attempts, charged, at bounds, unknown, tokens in, tokens out"
    columns: tuple[Column[SpendGroup], ...] = (
        Column(str(out.by), lambda group: group.name),
        Column("attempts", lambda group: group.attempts, Kind.NUMBER),
        Column("charged", lambda group: group.charged_usd, Kind.NUMBER),
        Column("at bounds", lambda group: group.at_bounds_usd, Kind.NUMBER),
        Column("unknown", lambda group: group.unknown_costs, Kind.NUMBER),
        Column("tokens in", lambda group: group.input_tokens, Kind.NUMBER),
        Column("tokens out", lambda group: group.output_tokens, Kind.NUMBER),
        Column(
            "share", lambda group: share(float(group.charged_usd / most) if most else 0.0), Kind.BAR
        ),
    )
    total = SpendGroup.model_construct(name="total", **dict(out.total))
    last = total if whole and len(out.groups) != 1 else None
    title = f"{out.tenant or 'all tenants'}, {out.since} to {out.until}"
    return table(columns, out.groups, only, total=last, title=title)


def balances(standing: Sequence[BalanceOutput]) -> Table:
    """Return the budgets of tenants as they are now."""
    several = len({balance.tenant for balance in standing}) > 1
    columns: tuple[Column[BalanceOutput], ...] = (
        Column("budget", lambda one: f"{one.tenant} {one.scope}" if several else str(one.scope)),
        Column("limit", lambda balance: balance.cap_usd, Kind.NUMBER, UNLIMITED),
        Column("spent", lambda balance: balance.spent_usd, Kind.NUMBER),
        Column("reserved", lambda balance: balance.reserved_usd, Kind.NUMBER),
        Column("remaining", lambda balance: balance.left_usd, Kind.NUMBER, UNLIMITED),
        Column("resets", lambda balance: balance.resets, Kind.TIME, "never"),
    )
    return table(columns, standing, title="now")


def cap(value: Decimal | None) -> Cell | None:
    """Return a limit in dollars with all of its digits, as it was set."""
    return None if value is None else Cell(text=f"${plain(value)}")


TENANTS: tuple[Column[Tenant], ...] = (
    Column("tenant", lambda tenant: Cell(text=tenant.name, page=f"/tenants/{tenant.name}")),
    Column("state", lambda tenant: enabled(disabled=tenant.disabled)),
    Column("day", lambda tenant: cap(tenant.limits.day), Kind.NUMBER, UNLIMITED),
    Column("month", lambda tenant: cap(tenant.limits.month), Kind.NUMBER, UNLIMITED),
    Column("total", lambda tenant: cap(tenant.limits.total), Kind.NUMBER, UNLIMITED),
    Column("job", lambda tenant: cap(tenant.limits.job), Kind.NUMBER, UNLIMITED),
    Column("keys", lambda tenant: len(tenant.keys), Kind.NUMBER),
    Column("created", lambda tenant: tenant.created, Kind.TIME),
)


def limits(of: Limits) -> Iterator[tuple[str, str, Value]]:
    """Yield field, name and value of each limit of a tenant."""
    for field, name in LIMITS.items():
        value = getattr(of, field)
        if value is None:
            value = Cell(text=_UNSET.get(field, UNLIMITED), tone=Tone.SOFT)
        elif isinstance(value, Decimal):
            value = cap(value)
        elif isinstance(value, tuple):
            value = ", ".join(value) or "none"
        yield field, name, value


def audit_lines(audit: LedgerAudit, *, most: int) -> Iterator[Cell]:
    """Yield the faults that an audit found, up to ``most`` of each kind, and what is open or unknown."""
    for one in audit.differences[:most]:
        yield Cell(text=f"differs: {difference(one)}", tone=Tone.BAD)
    for name, attempts in (
        ("orphaned reservation", audit.orphans),
        ("in flight without a reservation", audit.strangers),
    ):
        yield from (Cell(text=f"{name}: {one}", tone=Tone.BAD) for one in attempts[:most])
    yield Cell(text=f"in flight: {plural(audit.open, 'attempt')}, {money(audit.open_usd)} reserved")
    unknown = f"{plural(audit.unknown_costs, 'attempt')}, {money(audit.unknown_usd)} charged"
    yield Cell(text=f"billing status unknown: {unknown}")
    yield Cell(text=f"charged above their bounds: {plural(audit.over, 'attempt')}")
    for over in audit.over_bound[:most]:
        charged = f"{money(over.charged_usd)}, bound {money(over.bound_usd)}"
        yield Cell(text=f"{over.attempt} of {over.job}, {over.model}: {charged}")


def difference(one: CounterDifference) -> str:
    """Return a counter and the sum of its entries."""

    def amount(n: int | None) -> str:
        if n is None:
            return "not an integer"
        return f"{n:,} ({money(dollars(n))})" if one.field.startswith(_NANO) else f"{n:,}"

    return (
        f"{one.key} {one.field}: counter {amount(one.counted)}, sum of entries {amount(one.summed)}"
    )


_ESTIMATES: tuple[Column[StrategyEstimate], ...] = (
    Column("strategy", lambda total: total.strategy),
    Column("calls", lambda total: total.calls, Kind.NUMBER),
    Column("in", lambda total: total.input_tokens, Kind.NUMBER),
    Column("out", lambda total: total.output_tokens, Kind.NUMBER),
    Column("minimum", lambda total: total.low_usd, Kind.NUMBER),
    Column("expected", lambda total: total.expected_usd, Kind.NUMBER),
    Column("maximum", lambda total: total.worst_usd, Kind.NUMBER),
)


def estimates(out: EstimateOutput, only: str = "") -> Table:
    """Return the totals of each strategy, and of the chosen ones."""
    count = plural(len(out.questions), "question")
    chosen = () if out.decided is None else (out.decided,)
    return table(_ESTIMATES, (*out.totals, *chosen), only, title=count)


def remaining(scope: ScopeEstimate) -> str:
    """Return a remaining budget, and whether it covers an estimate."""
    if scope.left_usd is None:
        return f"{scope.scope}: no limit, {money(scope.spent_usd)} spent"
    fits = cover(expected=scope.expected_fits, maximum=scope.worst_fits)
    return f"{scope.scope}: {money(scope.left_usd)} of {money(scope.cap_usd)} remaining, {fits}"


def cover(*, expected: bool, maximum: bool) -> str:
    """Return in words whether a remaining budget covers the expected cost, and the maximum."""
    if maximum:
        return "covers the maximum"
    if expected:
        return "covers the expected cost but not the maximum"
    return "does not cover the expected cost"
