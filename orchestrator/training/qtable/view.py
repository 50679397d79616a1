"""A Q-table as a person reads it in a terminal, and as JSON."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli.terminal import safe
from policies.qtable import QTable
from posology.published.policies import QActionOutput, QStateOutput, QTableOutput

#: columns of the longest bar
_BAR = 30


def describe(table: QTable, differs: tuple[str, ...] = ()) -> QTableOutput:
    """The published form of a Q-table.

    Args:
        table: what is published.
        differs: in what it is not of here, see :func:`~policies.qtable.strangers`.
    """
    rewards = int(table.visits.sum())
    populations = [int(row.sum()) / rewards if rewards else 0.0 for row in table.visits]
    states = []
    for state, population in enumerate(populations):
        best = table.best(state)
        states.append(
            QStateOutput(
                state=state,
                keep=table.fallback if best is None else table.actions[best],
                fallback=best is None,
                values=tuple(None if np.isnan(q) else float(q) for q in table.q[state]),
                visits=tuple(int(n) for n in table.visits[state]),
                population=population,
            )
        )
    # the default may be none of the actions
    shares = sorted({*table.actions, *(state.keep for state in states)})
    return QTableOutput(
        digest=table.digest,
        parent=table.parent,
        created=table.created,
        kind=table.kind,
        alpha=table.alpha,
        embedder=table.embedder,
        compressor=table.compressor,
        model=table.model,
        k=table.k,
        prompts=dict(table.prompts),
        data=table.data,
        least_visits=table.least_visits,
        fallback=table.fallback,
        rewards=rewards,
        differs=differs,
        states=tuple(states),
        actions=tuple(
            QActionOutput(
                keep=keep,
                states=sum(state.keep == keep for state in states),
                population=sum(state.population for state in states if state.keep == keep),
            )
            for keep in shares
        ),
    )


def show_table(console: Console, table: QTable, differs: tuple[str, ...] = ()) -> None:
    """What it is of, its values and visits with the chosen actions marked, and how often each is chosen.

    Args:
        console: where.
        table: what is shown.
        differs: in what it is not of here.
    """
    out = describe(table, differs)
    console.print(_facts(out))
    for sentence in differs:
        console.print(Text(safe(f"Here, {sentence}."), style="yellow"), soft_wrap=True)
    console.print()
    console.print(_values(table, out))
    console.print(Text(_legend(out), style="dim"), soft_wrap=True)
    console.print()
    console.print(_histogram(out))


def percent(share: float) -> str:
    """A share of the sentences, e.g. ``5%``."""
    return f"{100 * share:.3g}%"


def _facts(out: QTableOutput) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    source = f", by feedback on {out.parent}" if out.parent else ""
    rows = (
        ("Q-table", f"{out.digest}{source}"),
        ("created", out.created.isoformat(timespec="seconds")),
        ("state", f"{out.kind}, {len(out.states)} centroids"),
        ("alpha", f"{out.alpha:g}"),
        ("model", out.model),
        ("embedder", out.embedder),
        ("compressor", f"{out.compressor}, of {out.k} passages"),
        ("questions", out.data[:16]),
        ("prompts", ", ".join(f"{name} {digest}" for name, digest in out.prompts.items())),
        ("rewards", f"{out.rewards}"),
        ("default", f"{percent(out.fallback)}, under {out.least_visits} rewards for any action"),
    )
    for name, value in rows:
        table.add_row(name, Text(safe(value)))
    return table


def _values(table: QTable, out: QTableOutput) -> Table:
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    shown.add_column("state", no_wrap=True)
    for keep in table.actions:
        shown.add_column(percent(keep), justify="right", no_wrap=True)
    shown.add_column("of all", justify="right", no_wrap=True)
    for state in out.states:
        cells = [
            _cell(value, visits, chosen=keep == state.keep and not state.fallback)
            for keep, value, visits in zip(table.actions, state.values, state.visits, strict=True)
        ]
        name = Text(f"{state.state}\n")
        if state.fallback:
            name = Text(f"{state.state} default\n", style="yellow")
        shown.add_row(name, *cells, Text(f"{state.population:.0%}\n"))
    return shown


def _cell(value: float | None, visits: int, *, chosen: bool) -> Text:
    cell = Text("–" if value is None else f"{value:.2f}{'*' if chosen else ''}")
    if chosen:
        cell.stylize("bold green")
    return cell.append(f"\n{visits}", style="dim not bold")


def _legend(out: QTableOutput) -> str:
    said = "Mean reward of keeping so much, * the best, and the rewards behind it."
    if any(state.fallback for state in out.states):
        said += f" 'default': too few rewards, {percent(out.fallback)} is kept."
    return said


def _histogram(out: QTableOutput) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("keep", "states", "questions"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("")
    most = max(action.population for action in out.actions) or 1.0
    for action in out.actions:
        bar = "█" * round(_BAR * action.population / most)
        shown.add_row(
            percent(action.keep), f"{action.states}", f"{action.population:.0%}", Text(bar, "green")
        )
    return shown
