"""Terminal view of calibrations of preflight."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from orchestrator.cli.output.tables import print_facts, print_form, print_line
from orchestrator.rendering.forms.columns import Cell, Value, table_of
from orchestrator.training.calibration.forms import CalibrationOutput, OrderOutput, Reach

#: the rest of what is shown where an order has no model
_FALLBACK = (
    "Other orders of passages, and other embedders, have no probability: the published rule decides between a few "
    "passages and all of them in one call, and no question is given to BriefContext at once. To calibrate one: posology "
    "policy calibrate."
)


def show_calibration(console: Console, out: CalibrationOutput) -> None:
    """Print a calibration: origin, and for each order the reach of the flag and of BriefContext at once."""
    source = "comes with Posology" if out.packaged else "of your own"
    never = "never: the configured policy has no preflight"
    at_once = never if out.at_once is None else f"at a probability of {out.at_once:g} or more"
    facts = (
        ("preflight", f"{out.digest}, {source}"),
        ("embedder", out.embedder or "unknown"),
        ("BriefContext at once", at_once),
    )
    print_facts(console, facts)
    console.print()
    names = "order, questions, issues, k, probability, share, of issues, of mendable"
    rows = (row for order in out.orders for row in _rows(order, out.at_once))
    print_form(console, table_of(names, rows))
    print_line(console, _legend(out), "dim")
    print_line(console, _FALLBACK, "dim")


def _rows(order: OrderOutput, at_once: float | None) -> Iterator[tuple[Value, ...]]:
    """Yield the rows of an order: the flag, and the measured level next to that of BriefContext at once."""
    rate = "" if order.rate is None else f"{order.rate:.1%}"
    held = "" if order.held is None else f"no gold: {order.held} is held"
    named: tuple[Value, ...] = (Cell(text=order.order, note=held), order.questions, rate)
    if not order.reach:
        yield (*named, "", f"≥ {order.threshold:.2f}", "", "", "")
    for k in sorted({one.k for one in order.reach}):
        for one in _levels([one for one in order.reach if one.k == k], order.threshold, at_once):
            kind = "flag" if one.least == order.threshold else "at once"
            mendable = "" if one.mendable is None else f"{one.mendable:.0%}"
            cells = (f"{k}", f"{kind}, ≥ {one.least:.2f}", f"{one.share:.1%}", f"{one.recall:.0%}")
            yield (*named, *cells, mendable)
            named = ("", "", "")


def _levels(reach: list[Reach], threshold: float, at_once: float | None) -> list[Reach]:
    """Return the reach of the flag, and of the first measured level from which BriefContext is given at once."""
    flag = [one for one in reach if one.least == threshold]
    if at_once is None or at_once <= threshold:
        return flag
    return flag + [one for one in reach if one.least >= at_once][:1]


def _legend(out: CalibrationOutput) -> str:
    text = (
        "Held-out questions at or above each probability: share of all; of those whose key passage is not among the first "
        "3 (issues); of those issues whose key passage was retrieved (mendable)."
    )
    if out.at_once is not None and any(out.at_once <= one.threshold for one in out.orders):
        text += " Where only the flag is listed, every flagged question is given to BriefContext at once."
    return text
