"""Terminal view of Q-tables, their training and their promotion."""

from __future__ import annotations

from rich.console import Console

from orchestrator.cli.output.tables import print_facts, print_form, print_line
from orchestrator.rendering.forms.columns import Cell, Tone, table_of
from orchestrator.rendering.forms.decisions import q_actions, q_legend, q_values
from orchestrator.training.forms import (
    ChangedStateOutput,
    PromotionOutput,
    QTableOutput,
    TrainOutput,
)
from orchestrator.training.qtable.description import describe, percent
from policies.qtable import QTable


def _after(state: ChangedStateOutput) -> Cell:
    changed = state.keep_before != state.keep_after
    return Cell(text=percent(state.keep_after), tone=Tone.GOOD if changed else None)


def show_table(console: Console, q_table: QTable, differs: tuple[str, ...] = ()) -> None:
    """Print a Q-table: origin, values and visits with the chosen actions marked, and how often each is chosen.

    Args:
        console: to print to.
        q_table: to print.
        differs: its differences from the settings.
    """
    out = describe(q_table, differs)
    print_facts(console, _facts(out))
    for sentence in differs:
        print_line(console, f"Here, {sentence}.", "yellow")
    console.print()
    print_form(console, q_values(out, q_table.actions))
    print_line(console, q_legend(out), "dim")
    console.print()
    print_form(console, q_actions(out))


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


def show_training(console: Console, out: TrainOutput) -> None:
    """Print the mean tokens and quality of each action."""
    rows = (
        (percent(one.keep), one.questions, f"{one.tokens:.1%}", f"{one.quality:.3f}")
        for one in out.actions
    )
    title = f"{out.learned:,} questions"
    print_form(console, table_of("keep, questions, tokens, quality", rows, texts="", title=title))


def show_promotion(console: Console, out: PromotionOutput) -> None:
    """Print how many rewards were added and which states now keep another share."""
    if out.after is None:
        print_line(
            console,
            f"tenant {out.tenant} gave no feedback on Q-table {out.before}; no file was written",
        )
    else:
        print_line(
            console,
            f"Q-table {out.after}: {out.before} plus {out.rewards} rewards from tenant {out.tenant}",
        )
    if out.left_out:
        print_line(
            console, f"{out.left_out} rewards skipped: the table does not have their actions"
        )
    if not out.states:
        return
    rows = (
        (f"{one.state}", one.rewards, percent(one.keep_before), _after(one)) for one in out.states
    )
    print_form(console, table_of("state, rewards, kept before, kept after", rows, texts=""))
    changes = sum(one.keep_before != one.keep_after for one in out.states)
    print_line(console, f"{changes} of {len(out.states)} states now keep another share")
