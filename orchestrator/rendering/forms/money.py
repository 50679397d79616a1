"""Spending, budgets, tenants, audits and estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.rendering.forms.columns import (
    Cell,
    Column,
    Table,
    Tone,
    Value,
    bar,
    number,
    table,
    text,
    time,
)
from orchestrator.rendering.words import money, plural
from posology.budget.books.form import CounterDifference, LedgerAudit
from posology.budget.ledger.base import dollars
from posology.budget.ledger.refusals import plain
from posology.published.estimates import ScopeEstimate, StrategyEstimate
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
    }
)
_UNSET = {"models": "all", "queued": "the installation's", "stored": "the installation's"}
#: beginnings of the fields in nano-dollars
_NANO = ("spent", "reserved", "nano", "bound")


def spending(out: SpendOutput, *, only: Sequence[str] = ()) -> Table:
    """Return the groups of a report; with all columns, also their total."""
    most = max((one.charged_usd for one in out.groups), default=Decimal(0))
    columns: tuple[Column[SpendGroup], ...] = (
        text(str(out.by), lambda one: one.name),
        number("attempts", lambda one: one.attempts),
        number("charged", lambda one: one.charged_usd),
        number("at bounds", lambda one: one.at_bounds_usd),
        number("unknown", lambda one: one.unknown_costs),
        number("tokens in", lambda one: one.input_tokens),
        number("tokens out", lambda one: one.output_tokens),
    )
    if only:
        columns += (bar("share", lambda one: float(one.charged_usd / most) if most else 0.0),)
    total = SpendGroup.model_construct(name="total", **dict(out.total))
    return table(
        columns,
        out.groups,
        only=only,
        total=total if not only and len(out.groups) != 1 else None,
        title=f"{out.tenant or 'all tenants'}, {out.since} to {out.until}",
    )


def balances(found: Sequence[BalanceOutput]) -> Table:
    """Return the budgets of tenants as they are now."""
    several = len({one.tenant for one in found}) > 1
    columns: tuple[Column[BalanceOutput], ...] = (
        text("budget", lambda one: f"{one.tenant} {one.scope}" if several else str(one.scope)),
        number("limit", lambda one: one.cap_usd, UNLIMITED),
        number("spent", lambda one: one.spent_usd),
        number("reserved", lambda one: one.reserved_usd),
        number("remaining", lambda one: one.left_usd, UNLIMITED),
        time("resets", lambda one: one.resets, "never"),
    )
    return table(columns, found, title="now")


def enabled(*, disabled: bool) -> Cell:
    """Return whether something is in use."""
    if disabled:
        return Cell(text="disabled", tone=Tone.BAD, state=True)
    return Cell(text="enabled", tone=Tone.GOOD, state=True)


def cap(value: Decimal | None) -> Cell | None:
    """Return a limit in dollars with all of its digits, as it was set."""
    return None if value is None else Cell(text=f"${plain(value)}")


TENANTS: tuple[Column[Tenant], ...] = (
    text("tenant", lambda one: Cell(text=one.name, page=f"/tenants/{one.name}")),
    text("state", lambda one: enabled(disabled=one.disabled)),
    number("day", lambda one: cap(one.limits.day), UNLIMITED),
    number("month", lambda one: cap(one.limits.month), UNLIMITED),
    number("total", lambda one: cap(one.limits.total), UNLIMITED),
    number("job", lambda one: cap(one.limits.job), UNLIMITED),
    number("keys", lambda one: len(one.keys)),
    time("created", lambda one: one.created),
)


def limits(found: Limits) -> Iterator[tuple[str, str, Value]]:
    """Yield field, name and value of each limit of a tenant."""
    for field, name in LIMITS.items():
        value = getattr(found, field)
        if value is None:
            value = Cell(text=_UNSET.get(field, UNLIMITED), tone=Tone.SOFT)
        elif isinstance(value, Decimal):
            value = cap(value)
        elif isinstance(value, tuple):
            value = ", ".join(value)
        yield field, name, value


def audit_lines(found: LedgerAudit, *, most: int) -> Iterator[Cell]:
    """Yield the faults that an audit found, up to ``most`` of each kind, and what is open or unknown."""
    for one in found.differences[:most]:
        yield Cell(text=f"differs: {difference(one)}", tone=Tone.BAD)
    for name, attempts in (
        ("orphaned reservation", found.orphans),
        ("in flight without a reservation", found.strangers),
    ):
        yield from (Cell(text=f"{name}: {one}", tone=Tone.BAD) for one in attempts[:most])
    yield Cell(text=f"in flight: {plural(found.open, 'attempt')}, {money(found.open_usd)} reserved")
    unknown = f"{plural(found.unknown_costs, 'attempt')}, {money(found.unknown_usd)} charged"
    yield Cell(text=f"billing status unknown: {unknown}")
    yield Cell(text=f"charged above their bounds: {plural(found.over, 'attempt')}")
    for over in found.over_bound[:most]:
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


ESTIMATES: tuple[Column[StrategyEstimate], ...] = (
    text("strategy", lambda one: one.strategy),
    number("calls", lambda one: one.calls),
    number("in", lambda one: one.input_tokens),
    number("out", lambda one: one.output_tokens),
    number("minimum", lambda one: one.low_usd),
    number("expected", lambda one: one.expected_usd),
    number("maximum", lambda one: one.worst_usd),
)


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
