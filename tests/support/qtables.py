"""A Q-table that learns reward by reward, which tables of many rewards are compared with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policies.qtable import QTable


def updated(table: QTable, state: int, action: int, reward: float) -> QTable:
    """Return the table after one more reward: Q ← Q + (R − Q)/n, n including this reward (algorithm 1, line 15).

    Args:
        table: the table; unchanged.
        state: number of the state, from 0.
        action: place in :attr:`QTable.actions`, from 0.
        reward: see :func:`policies.qtable.reward`.
    """
    q, visits = table.q.copy(), table.visits.copy()
    visits[state, action] += 1
    old = q[state, action]
    q[state, action] = reward if np.isnan(old) else old + (reward - old) / visits[state, action]
    return replace(table, q=q, visits=visits)
