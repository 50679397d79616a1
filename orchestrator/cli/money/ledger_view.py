"""Spending and ledgers as a person reads them in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli.terminal import money, safe
from posology.budget.ledger.base import dollars
from posology.published.money import (
    Amounts,
    BalanceOutput,
    CounterDifference,
    LedgerAudit,
    SpendOutput,
)

#: nano-dollars stand in these fields, something else in the others
_MONEY = ("spent", "reserved", "nano", "bound")
#: differences that are shown
_SHOWN = 100


def show_spend(console: Console, out: SpendOutput) -> None:
    """A line a group, their sum, and how the limits stand."""
    whose = "all tenants" if out.tenant is None else out.tenant
    table = _table(f"{whose}, {out.since} to {out.until}", "unknown", "tokens in", "tokens out",
                   first=str(out.by), middle=("attempts", "charged", "at bounds"))  # fmt: skip
    for group in out.groups:
        table.add_row(Text(safe(group.name)), *_amounts(group))
    if len(out.groups) != 1:
        table.add_section()
        table.add_row(Text("total"), *_amounts(out.total))
    console.print(table)
    limits = _table("now", "left", "resets", first="limit", middle=("cap", "spent", "reserved"))
    several = len({balance.tenant for balance in out.balances}) > 1
    for balance in out.balances:
        limits.add_row(*_balance(balance, several=several))
    console.print(limits)


def show_audit(
    console: Console, audit: LedgerAudit, changed: Sequence[CounterDifference] | None = None
) -> None:
    """What was read, what is wrong with it, and what is worth knowing."""
    style, word = ("green", "right") if audit.right else ("red", "WRONG")
    head = f"  {audit.entries:,} entries, {audit.archived:,} in the archive, {audit.counters:,} counters"
    _line(console, (audit.tenant, "bold"), "  ", (word, style), head)
    for one in (changed or ())[:_SHOWN]:
        _line(console, ("  put right: ", "yellow"), *_difference(one))
    for one in audit.differences[:_SHOWN]:
        _line(console, ("  differs: ", "red"), *_difference(one))
    for named, found in (
        ("reserved, never closed and not under way", audit.orphans),
        ("under way and never reserved", audit.strangers),
    ):
        for attempt in found[:_SHOWN]:
            _line(console, (f"  {named}: ", "red"), safe(attempt))
    _line(console, f"  under way: {audit.open} attempts, {money(audit.open_usd)} set aside")
    _line(
        console,
        f"  billed or not, nobody knows: {audit.unknown_costs} attempts, "
        f"{money(audit.unknown_usd)} charged",
    )
    _line(console, f"  cost more than their bounds: {audit.over} attempts")
    for over in audit.over_bound:
        told = f"{over.attempt} of {over.job}, {over.model}: {money(over.charged_usd)}"
        _line(console, f"    {safe(told)}, bound {money(over.bound_usd)}")


def _table(title: str, *last: str, first: str, middle: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title=Text(safe(title)),
                  title_justify="left")  # fmt: skip
    table.add_column(first, overflow="fold")
    for name in (*middle, *last):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _amounts(found: Amounts) -> list[str]:
    return [
        f"{found.attempts:,}",
        money(found.charged_usd),
        money(found.at_bounds_usd),
        f"{found.unknown_costs:,}",
        f"{found.input_tokens:,}",
        f"{found.output_tokens:,}",
    ]


def _balance(balance: BalanceOutput, *, several: bool) -> list[Text]:
    name = f"{balance.tenant} {balance.scope}" if several else str(balance.scope)
    resets = "never" if balance.resets is None else f"{balance.resets:%Y-%m-%d %H:%M}"
    amounts = (_limit(balance.cap_usd), money(balance.spent_usd), money(balance.reserved_usd),
               _limit(balance.left_usd))  # fmt: skip
    return [Text(safe(name)), *map(Text, amounts), Text(resets)]


def _limit(amount: Decimal | None) -> str:
    return "no limit" if amount is None else money(amount)


def _difference(one: CounterDifference) -> tuple[str, ...]:
    def amount(n: int | None) -> str:
        if n is None:
            return "no whole number"
        return f"{n:,} ({money(dollars(n))})" if one.field.startswith(_MONEY) else f"{n:,}"

    return (
        safe(f"{one.key} {one.field}: "),
        f"counted {amount(one.counted)}, entries add up to {amount(one.summed)}",
    )


def _line(console: Console, *parts: str | tuple[str, str]) -> None:
    console.print(Text.assemble(*parts), soft_wrap=True)
