"""Terminal view of Q-tables, their training and their promotion."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli.output.tables import plain_table, print_facts, print_table
from orchestrator.rendering.words import safe
from orchestrator.training.forms import PromotionOutput, QTableOutput, TrainOutput
from orchestrator.training.qtable.description import describe, percent
from policies.qtable import QTable

#: columns of the longest bar
_BAR = 30


def show_table(console: Console, table: QTable, differs: tuple[str, ...] = ()) -> None:
    """Print a Q-table: origin, values and visits with the chosen actions marked, and how often each is chosen.

    Args:
        console: to print to.
        table: to print.
        differs: its differences from the settings.
    """
    out = describe(table, differs)
    print_facts(console, _facts(out))
    for sentence in differs:
        console.print(Text(safe(f"Here, {sentence}."), style="yellow"), soft_wrap=True)
    console.print()
    print_table(console, _values(table, out))
    console.print(Text(_legend(out), style="dim"), soft_wrap=True)
    console.print()
    print_table(console, _histogram(out))


def _facts(out: QTableOutput) -> tuple[tuple[str, str], ...]:
    source = f", from {out.parent} by feedback" if out.parent else ""
    return (
        ("Q-table", f"{out.digest}{source}"),
        ("created", out.created.isoformat(timespec="seconds")),
        ("state", f"{out.kind}, {len(out.states)} centroids"),
        ("alpha", f"{out.alpha:g}"),
        ("model", out.model),
        ("embedder", out.embedder),
        ("compressor", f"{out.compressor}, {out.k} passages"),
        ("questions", out.data[:16]),
        ("prompts", ", ".join(f"{name} {digest}" for name, digest in out.prompts.items())),
        ("rewards", f"{out.rewards}"),
        (
            "fallback",
            f"{percent(out.fallback)}, if an action has fewer than {out.least_visits} rewards",
        ),
    )


def _values(table: QTable, out: QTableOutput) -> Table:
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    shown.add_column("state", no_wrap=True)
    for keep in table.actions:
        shown.add_column(percent(keep), justify="right", no_wrap=True)
    shown.add_column("share", justify="right", no_wrap=True)
    for state in out.states:
        cells = [
            _cell(value, visits, chosen=keep == state.keep and not state.fallback)
            for keep, value, visits in zip(table.actions, state.values, state.visits, strict=True)
        ]
        name = Text(f"{state.state}\n")
        if state.fallback:
            name = Text(f"{state.state} fallback\n", style="yellow")
        shown.add_row(name, *cells, Text(f"{state.population:.0%}\n"))
    return shown


def _cell(value: float | None, visits: int, *, chosen: bool) -> Text:
    cell = Text("–" if value is None else f"{value:.2f}{'*' if chosen else ''}")
    if chosen:
        cell.stylize("bold green")
    return cell.append(f"\n{visits}", style="dim not bold")


def _legend(out: QTableOutput) -> str:
    text = "Mean reward of each share kept, with its number of rewards. *: the chosen share."
    if any(state.fallback for state in out.states):
        text += f" fallback: too few rewards, so {percent(out.fallback)} is kept."
    return text


def _histogram(out: QTableOutput) -> Table:
    shown = plain_table("keep", "states", "questions", "", left=("",))
    most = max(action.population for action in out.actions) or 1.0
    for action in out.actions:
        bar = "█" * round(_BAR * action.population / most)
        shown.add_row(
            percent(action.keep), f"{action.states}", f"{action.population:.0%}", Text(bar, "green")
        )
    return shown


def show_training(console: Console, out: TrainOutput) -> None:
    """Print the mean tokens and quality of each action."""
    shown = Table(title=f"{out.learned:,} questions", title_justify="left")
    for name in ("keep", "questions", "tokens", "quality"):
        shown.add_column(name, justify="right", no_wrap=True)
    for one in out.actions:
        shown.add_row(
            percent(one.keep), f"{one.questions:,}", f"{one.tokens:.1%}", f"{one.quality:.3f}"
        )
    print_table(console, shown)


def show_promotion(console: Console, out: PromotionOutput) -> None:
    """Print how many rewards were added and which states now keep another share."""
    if out.after is None:
        console.print(
            Text(
                f"tenant {out.tenant} gave no feedback on Q-table {out.before}; no file was written"
            ),
            soft_wrap=True,
        )
    else:
        console.print(
            Text(
                f"Q-table {out.after}: {out.before} plus {out.rewards} rewards from tenant {out.tenant}"
            ),
            soft_wrap=True,
        )
    if out.left_out:
        console.print(
            Text(f"{out.left_out} rewards skipped: the table does not have their actions"),
            soft_wrap=True,
        )
    if not out.states:
        return
    shown = plain_table("state", "rewards", "kept before", "kept after")
    for one in out.states:
        changed = one.keep_before != one.keep_after
        shown.add_row(
            f"{one.state}",
            f"{one.rewards}",
            percent(one.keep_before),
            Text(percent(one.keep_after), "bold green" if changed else ""),
        )
    print_table(console, shown)
    changes = sum(one.keep_before != one.keep_after for one in out.states)
    console.print(Text(f"{changes} of {len(out.states)} states now keep another share"))
