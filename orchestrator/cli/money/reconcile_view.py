"""Terminal view of a reconciliation."""

from __future__ import annotations

from decimal import Decimal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli.output.tables import plain_table, print_csv, print_table
from orchestrator.rendering.words import safe
from posology.budget.reconcile.report import (
    Compared,
    Group,
    Measure,
    Mismatch,
    Number,
    ReconcileOutput,
    Requests,
    Verdict,
)

_STYLES = {
    Verdict.EQUAL: "green",
    Verdict.EXPLAINED: "green",
    Verdict.WITHIN: "yellow",
    Verdict.DRIFT: "red",
}
#: maximum groups and requests to print; ``--json`` has all
_SHOWN = 50


def show_reconcile(console: Console, out: ReconcileOutput) -> None:
    """Print the totals, the days, models and requests that differ, and the notes."""
    for file in out.files:
        _line(console, f"{file.path}: {file.format}, {file.rows:,} rows")
    for period in out.periods:
        times = f"{period.start:%Y-%m-%d %H:%M} to {period.end:%Y-%m-%d %H:%M} UTC"
        _line(console, f"{period.provider}'s {period.kind}: {times}")
    tenants = ", ".join(out.tenants) if len(out.tenants) <= 3 else f"{len(out.tenants)} tenants"
    _line(console, f"ours: {out.attempts:,} attempts of {tenants}")
    for naming in out.names:
        ours, theirs = (", ".join(names) or "–" for names in (naming.ours, naming.theirs))
        _line(console, f"{naming.label} combines: {ours} (ours), {theirs} (theirs)", "dim")
    odd = [group for group in out.groups if group.verdict is not Verdict.EQUAL]
    odd.sort(key=lambda group: group.verdict is not Verdict.DRIFT)
    if out.groups:
        equal = len(out.groups) - len(odd)
        _line(console, f"{equal:,} of {len(out.groups):,} model-days are equal")
    if odd:
        table = _table("day", "model")
        for group in odd[:_SHOWN]:
            _rows(table, group)
        print_table(console, table)
        _cut(console, len(odd))
    if out.totals:
        table = _table("", "total")
        for group in out.totals:
            _rows(table, group)
        print_table(console, table)
    if out.requests is not None:
        _show_requests(console, out.requests)
    for note in out.notes:
        _line(console, f"note: {note}", "yellow")
    style, word = ("green", "agree") if out.agrees else ("red", "DO NOT AGREE")
    console.print(Text.assemble("ledger and provider ", (word, style)), soft_wrap=True)


def reconcile_csv(out: ReconcileOutput) -> None:
    """Print every compared figure as CSV: each day and model, then the totals."""
    names = ("measure", "ours", "least", "most", "theirs", "drift", "unexplained", "relative")
    print_csv(
        ("provider", "day", "model", *names, "verdict", "hint"),
        (
            (
                *(group.provider, group.day, group.model),
                *(getattr(one, name) for name in names),
                *(one.verdict, group.hint),
            )
            for group in (*out.groups, *out.totals)
            for one in group.compared
        ),
    )


def _show_requests(console: Console, requests: Requests) -> None:
    _line(
        console,
        f"requests: {requests.matched:,} matched ({requests.differing:,} differ), "
        f"{requests.only_ours:,} only ours, {requests.only_theirs:,} only theirs, {requests.twice:,} duplicates; "
        f"calls without a reply: {requests.explained:,} billed, {requests.unbilled:,} not billed",
    )
    table = _table("", "requests")
    for compared in requests.totals:
        _row(table, ("", "all"), compared, "")
    print_table(console, table)
    for mismatch in requests.mismatches[:_SHOWN]:
        _line(console, f"  {mismatch.flaw}: {_describe(mismatch)}", "red")
    _cut(console, len(requests.mismatches))


def _describe(mismatch: Mismatch) -> str:
    where = f" at {mismatch.where}" if mismatch.where else ""
    named = mismatch.request_id or mismatch.attempt or "?"
    fields = ", ".join(
        f"{f.measure} {_number(f.measure, f.ours)} (ours) {_number(f.measure, f.theirs)} (theirs)"
        for f in mismatch.fields
        if f.unexplained
    )
    return f"{named}{where}: {fields}"


def _table(*first: str) -> Table:
    left = (*first, "measure")
    table = plain_table(*left, "ours", "theirs", "drift", "unexplained", left=left)
    table.add_column("verdict")
    return table


def _rows(table: Table, group: Group) -> None:
    model = group.model or "all models"
    whole = group.day is None and group.model is None
    # a model's total repeats its days, unless it drifts
    quiet = group.day is None and not whole and group.verdict is not Verdict.DRIFT
    marks = [f"{group.unknown:,} unknown"] if group.unknown else []
    marks += [f"{group.edge:,} near midnight"] if group.edge else []
    named = (group.day or group.provider, model)
    hint = "; ".join([*marks, *([group.hint] if group.hint else [])])
    for compared in group.compared:
        if whole or not (quiet or compared.verdict is Verdict.EQUAL):
            _row(table, named, compared, hint)
            named, hint = ("", ""), ""


def _row(table: Table, named: tuple[str, str], compared: Compared, hint: str) -> None:
    measure = compared.measure
    ours = _number(measure, compared.ours)
    if compared.most != compared.ours:
        ours = f"{ours} to {_number(measure, compared.most)}"
    share = ""
    if compared.relative and compared.unexplained:
        share = f" ({compared.relative:.2%})"
    verdict = Text(f"{compared.verdict}", style=_STYLES[compared.verdict])
    table.add_row(
        *(Text(safe(name)) for name in named),
        str(measure),
        ours,
        _number(measure, compared.theirs),
        _number(measure, compared.drift),
        f"{_number(measure, compared.unexplained)}{share}",
        Text.assemble(verdict, f" {hint}" if hint else ""),
    )


def _number(measure: Measure, number: Number) -> str:
    if measure is not Measure.COST:
        return f"{number:,}"
    sign = "-" if number < 0 else ""
    amount = abs(Decimal(number))
    return f"{sign}${amount:,.6f}" if amount < Decimal("0.01") else f"{sign}${amount:,.4f}"


def _cut(console: Console, total: int) -> None:
    if total > _SHOWN:
        _line(console, f"… and {total - _SHOWN:,} more (see --json)")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(safe(text), style=style), soft_wrap=True)
