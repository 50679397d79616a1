"""Terminal view of spending and ledgers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from orchestrator.cli.output.tables import print_csv, print_form, print_line, styled
from orchestrator.rendering.forms.money import audit_lines, balances, difference, spending
from orchestrator.rendering.words import money, safe
from posology.budget.books.form import (
    ArchiveInspection,
    CounterDifference,
    LedgerAudit,
    LedgerSettled,
)
from posology.published.money import Amounts, SpendOutput

#: maximum differences to print
_SHOWN = 100


def show_spend(console: Console, out: SpendOutput) -> None:
    """Print spending by group, the total, and the remaining budgets."""
    print_form(console, spending(out))
    print_form(console, balances(out.balances))


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
        _line(console, ("  corrected: ", "yellow"), safe(difference(one)))
    for fact in audit_lines(audit, most=_SHOWN):
        _line(console, "  ", styled(fact))
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


def _line(console: Console, *parts: str | Text | tuple[str, str]) -> None:
    print_line(console, Text.assemble(*parts))
