"""Terminal view of spending and ledgers."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich.console import Console
from rich.text import Text

from orchestrator.cli.output.tables import plain_table, print_csv, print_table
from orchestrator.rendering.words import money, safe
from posology.budget.books.form import (
    ArchiveInspection,
    CounterDifference,
    LedgerAudit,
    LedgerSettled,
)
from posology.budget.ledger.base import dollars
from posology.published.money import Amounts, BalanceOutput, SpendOutput

#: prefixes of the fields in nano-dollars
_MONEY = ("spent", "reserved", "nano", "bound")
#: maximum differences to print
_SHOWN = 100


def show_spend(console: Console, out: SpendOutput) -> None:
    """Print spending by group, the total, and the remaining budgets."""
    name = "all tenants" if out.tenant is None else out.tenant
    table = plain_table(
        *(str(out.by), "attempts", "charged", "at bounds", "unknown", "tokens in", "tokens out"),
        left=(str(out.by),),
        title=f"{name}, {out.since} to {out.until}",
    )
    for group in out.groups:
        table.add_row(Text(safe(group.name)), *_amounts(group))
    if len(out.groups) != 1:
        table.add_section()
        table.add_row(Text("total"), *_amounts(out.total))
    print_table(console, table)
    limits = plain_table(
        *("budget", "limit", "spent", "reserved", "remaining", "resets"),
        left=("budget",),
        title="now",
    )
    several = len({balance.tenant for balance in out.balances}) > 1
    for balance in out.balances:
        limits.add_row(*_balance(balance, several=several))
    print_table(console, limits)


def spend_csv(out: SpendOutput) -> None:
    """Print spending by group as CSV."""
    names = tuple(Amounts.model_fields)
    rows = ((group.name, *(getattr(group, name) for name in names)) for group in out.groups)
    print_csv((str(out.by), *names), rows)


def show_audit(
    console: Console, audit: LedgerAudit, changed: Sequence[CounterDifference] | None = None
) -> None:
    """Print the result of an audit: differences, changes and open attempts."""
    style, word = ("green", "correct") if audit.right else ("red", "INCORRECT")
    head = f"  {audit.entries:,} entries, {audit.archived:,} archived, {audit.counters:,} counters"
    _line(console, (audit.tenant, "bold"), "  ", (word, style), head)
    for one in (changed or ())[:_SHOWN]:
        _line(console, ("  corrected: ", "yellow"), *_difference(one))
    for one in audit.differences[:_SHOWN]:
        _line(console, ("  differs: ", "red"), *_difference(one))
    for named, found in (
        ("orphaned reservation", audit.orphans),
        ("in flight without a reservation", audit.strangers),
    ):
        for attempt in found[:_SHOWN]:
            _line(console, (f"  {named}: ", "red"), safe(attempt))
    _line(console, f"  in flight: {audit.open} attempts, {money(audit.open_usd)} reserved")
    _line(
        console,
        f"  billing status unknown: {audit.unknown_costs} attempts, "
        f"{money(audit.unknown_usd)} charged",
    )
    _line(console, f"  charged above their bounds: {audit.over} attempts")
    for over in audit.over_bound:
        charged = f"{over.attempt} of {over.job}, {over.model}: {money(over.charged_usd)}"
        _line(console, f"    {safe(charged)}, bound {money(over.bound_usd)}")
    if audit.archive is not None:
        _show_archive(console, audit.archive)


#: why a reservation was not settled
_KEPT = {
    "young": "younger than --hours",
    "fine": "it is not an orphaned reservation",
    "archived": "its entry is in the archive: give its folder with --archive",
}


def show_settled(console: Console, out: LedgerSettled) -> None:
    """Print settled reservations, those that stay, and the audit after it."""
    for one in out.settled[:_SHOWN]:
        text = f"{one.attempt} of {one.job}: {money(one.charged_usd)} charged of {money(one.reserved_usd)}"
        _line(console, ("settled: ", "yellow"), safe(f"{text} reserved on {one.day}"))
    if len(out.settled) > _SHOWN:
        _line(console, f"settled: {len(out.settled) - _SHOWN:,} more")
    for kept in out.kept[:_SHOWN]:
        _line(console, ("not settled: ", "yellow"), safe(f"{kept.attempt}: {_KEPT[kept.reason]}"))
    show_audit(console, out)


def _show_archive(console: Console, archive: ArchiveInspection) -> None:
    _line(
        console,
        f"  archive: {archive.entries:,} entries in {archive.files:,} files, "
        f"{archive.unchained:,} unchained, {archive.pending:,} not yet removed from the ledger",
    )
    for one in archive.problems[:_SHOWN]:
        place = "" if one.file is None else one.file
        place += "" if one.line is None else f":{one.line}"
        _line(
            console, ("  archive: ", "red"), safe(f"{place}: " if place else ""), safe(one.message)
        )
    if len(archive.problems) > _SHOWN:
        _line(console, f"  archive: {len(archive.problems) - _SHOWN:,} more problems")
    if archive.head is not None:
        _line(console, f"  last record: {archive.head}")


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
            return "not an integer"
        return f"{n:,} ({money(dollars(n))})" if one.field.startswith(_MONEY) else f"{n:,}"

    return (
        safe(f"{one.key} {one.field}: "),
        f"counter {amount(one.counted)}, sum of entries {amount(one.summed)}",
    )


def _line(console: Console, *parts: str | tuple[str, str]) -> None:
    console.print(Text.assemble(*parts), soft_wrap=True)
