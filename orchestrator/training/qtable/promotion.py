"""Promotion of a Q-table: adds the rewards of users' feedback."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np

from orchestrator.jobs.feedback import Collected
from orchestrator.jobs.records import WHOLE
from orchestrator.training.forms import ChangedStateOutput, PromotionOutput
from policies import qtable
from policies.qtable import QTable

#: r*: users score answers as such, so the whole context's answer is assumed to be right
BEST = 1.0


def merge(
    table: QTable, collected: Collected, *, tenant: str, created: datetime
) -> tuple[QTable | None, PromotionOutput]:
    """Add the rewards of a tenant's feedback to a table.

    Args:
        table: the one that made the decisions.
        collected: sums of the scores, by state and share kept.
        tenant: that gave the feedback.
        created: time of the new table.

    Returns:
        The new table, ``None`` without feedback; and its changes.
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


def _keep(table: QTable, state: int) -> float:
    best = table.best(state)
    return table.fallback if best is None else table.actions[best]
