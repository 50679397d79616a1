"""What feedback changes of a Q-table."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.jobs.feedback import WHOLE, Collected
from orchestrator.training.qtable.view import percent
from policies import qtable
from policies.qtable import QTable
from posology.published.policies import ChangedStateOutput, PromotionOutput

#: r*: users judge an answer as such, and the whole context can at best give one that is all right
BEST = 1.0


def merge(
    table: QTable, collected: Collected, *, tenant: str, created: datetime
) -> tuple[QTable | None, PromotionOutput]:
    """A table with the rewards of a tenant's feedback, and what it changes.

    Args:
        table: the one that decided when the feedback came.
        collected: sums of what was said, by state and share kept.
        tenant: whose feedback it is.
        created: of the new table.

    Returns:
        No table where nothing came.
    """
    counts = np.zeros(table.q.shape, np.int64)
    sums = np.zeros(table.q.shape)
    strange = 0
    actions = {round(keep * WHOLE): place for place, keep in enumerate(table.actions)}
    for cell in collected.cells:
        action = actions.get(cell.keep)
        if action is None or cell.state >= table.states:
            strange += cell.count
            continue
        counts[cell.state, action] += cell.count
        # a reward is linear in score and share, and so the sum of rewards in their sums
        mean = qtable.reward(
            tau=cell.shown / WHOLE / cell.count,
            r=cell.score / WHOLE / cell.count,
            best=BEST,
            alpha=table.alpha,
        )
        sums[cell.state, action] += mean * cell.count
    came = int(counts.sum())
    promoted = (
        replace(qtable.merged(table, counts, sums), created=created, parent=table.digest)
        if came
        else None
    )
    return promoted, PromotionOutput(
        tenant=tenant,
        before=table.digest,
        after=promoted.digest if promoted else None,
        rewards=came,
        left_out=strange,
        states=tuple(
            ChangedStateOutput(
                state=state,
                rewards=int(counts[state].sum()),
                keep_before=_keep(table, state),
                keep_after=_keep(promoted, state),
            )
            for state in range(table.states)
            if counts[state].any()
        )
        if promoted
        else (),
    )


def show_promotion(console: Console, said: PromotionOutput) -> None:
    """How much came, and in which states another share is kept now."""
    if said.after is None:
        console.print(
            Text(
                f"no feedback of {said.tenant} came to Q-table {said.before}: nothing was written"
            ),
            soft_wrap=True,
        )
    else:
        console.print(
            Text(
                f"Q-table {said.after}: {said.before} with {said.rewards} rewards of {said.tenant}"
            ),
            soft_wrap=True,
        )
    if said.left_out:
        console.print(
            Text(f"{said.left_out} rewards are of no action of the table, and were left out"),
            soft_wrap=True,
        )
    if not said.states:
        return
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("state", "rewards", "kept before", "kept now"):
        shown.add_column(name, justify="right", no_wrap=True)
    for one in said.states:
        changed = one.keep_before != one.keep_after
        shown.add_row(
            f"{one.state}",
            f"{one.rewards}",
            percent(one.keep_before),
            Text(percent(one.keep_after), "bold green" if changed else ""),
        )
    console.print(shown)
    changes = sum(one.keep_before != one.keep_after for one in said.states)
    console.print(Text(f"{changes} of {len(said.states)} states choose otherwise"))


def _keep(table: QTable, state: int) -> float:
    best = table.best(state)
    return table.fallback if best is None else table.actions[best]
