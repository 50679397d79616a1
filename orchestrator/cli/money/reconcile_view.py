"""Terminal view of a reconciliation."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from orchestrator.cli.output.tables import print_csv, print_form, print_line
from orchestrator.rendering.forms.reconciliation import (
    amount,
    compared,
    request_totals,
    requests_text,
    worst_first,
)
from orchestrator.rendering.words import moment
from posology.budget.reconcile.report import (
    Mismatch,
    ReconcileOutput,
    Requests,
)

#: maximum groups and requests to print; ``--json`` has all
_SHOWN = 50


def show_reconcile(console: Console, out: ReconcileOutput) -> None:
    """Print the totals, the days, models and requests that differ, and the notes."""
    for file in out.files:
        print_line(console, f"{file.path}: {file.format}, {file.rows:,} rows")
    for period in out.periods:
        times = f"{moment(period.start)} to {moment(period.end)} UTC"
        print_line(console, f"{period.provider}'s {period.kind}: {times}")
    tenants = ", ".join(out.tenants) if len(out.tenants) <= 3 else f"{len(out.tenants)} tenants"
    print_line(console, f"ours: {out.attempts:,} attempts of {tenants}")
    for naming in out.names:
        ours, theirs = (", ".join(names) or "–" for names in (naming.ours, naming.theirs))
        print_line(console, f"{naming.label} combines: {ours} (ours), {theirs} (theirs)", "dim")
    odd = worst_first(out.groups)
    if out.groups:
        equal = len(out.groups) - len(odd)
        print_line(console, f"{equal:,} of {len(out.groups):,} model-days are equal")
    if odd:
        print_form(console, compared(odd[:_SHOWN]))
        _cut(console, len(odd))
    if out.totals:
        print_form(console, compared(out.totals, title="totals"))
    if out.requests is not None:
        _show_requests(console, out.requests)
    for note in out.notes:
        print_line(console, f"note: {note}", "yellow")
    style, word = ("green", "agree") if out.agrees else ("red", "DO NOT AGREE")
    print_line(console, Text.assemble("ledger and provider ", (word, style)))


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
    print_line(console, f"requests: {requests_text(requests)}")
    print_form(console, request_totals(requests))
    for mismatch in requests.mismatches[:_SHOWN]:
        print_line(console, f"  {mismatch.flaw}: {_describe(mismatch)}", "red")
    _cut(console, len(requests.mismatches))


def _describe(mismatch: Mismatch) -> str:
    where = f" at {mismatch.where}" if mismatch.where else ""
    named = mismatch.request_id or mismatch.attempt or "?"
    fields = ", ".join(
        f"{f.measure} {amount(f.measure, f.ours)} (ours) {amount(f.measure, f.theirs)} (theirs)"
        for f in mismatch.fields
        if f.unexplained
    )
    return f"{named}{where}: {fields}"


def _cut(console: Console, total: int) -> None:
    if total > _SHOWN:
        print_line(console, f"… and {total - _SHOWN:,} more (see --json)")
