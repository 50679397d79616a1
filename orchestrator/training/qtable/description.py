"""Published form of a Q-table."""

from __future__ import annotations

import numpy as np

from orchestrator.training.forms import QActionOutput, QStateOutput, QTableOutput
from policies.qtable import QTable


def describe(table: QTable, differs: tuple[str, ...] = ()) -> QTableOutput:
    """Return the published form of a Q-table.

    Args:
        table: to publish.
        differs: its differences from the settings; see :func:`~policies.qtable.strangers`.
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
    # the fallback need not be one of the actions
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


def percent(share: float) -> str:
    """Format a share of the sentences, e.g. ``5%``."""
    return f"{100 * share:.3g}%"
