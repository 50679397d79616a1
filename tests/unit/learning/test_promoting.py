from __future__ import annotations

from datetime import timedelta
from io import StringIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from orchestrator.cli.policy.table_view import show_promotion
from orchestrator.jobs.feedback import Collected, Summed
from orchestrator.jobs.records import WHOLE
from orchestrator.training.qtable.promotion import merge
from policies import qtable
from policies.qtable import ACTIONS
from tests.support.qtables import updated
from tests.unit.policies.tables import CREATED, table

LATER = CREATED + timedelta(days=3)
said = st.tuples(
    st.integers(0, 2), st.integers(0, 9), st.integers(0, WHOLE), st.integers(0, 2 * WHOLE)
)


def cell(state: int, keep: float, *given_: tuple[float, float]) -> Summed:
    """What scores and shares shown add up to."""
    return Summed(
        state=state,
        keep=round(keep * WHOLE),
        count=len(given_),
        score=sum(round(score * WHOLE) for score, _ in given_),
        shown=sum(round(shown * WHOLE) for _, shown in given_),
    )


@given(st.lists(said, min_size=1, max_size=20))
def test_it_is_as_if_each_reward_had_come_by_itself(
    given_: list[tuple[int, int, int, int]],
) -> None:
    one_by_one = table()
    cells: dict[tuple[int, int], Summed] = {}
    for state, action, score, shown in given_:
        reward = qtable.reward(tau=shown / WHOLE, r=score / WHOLE, best=1, alpha=0.5)
        one_by_one = updated(one_by_one, state, action, reward)
        before = cells.get((state, action), cell(state, ACTIONS[action]))
        cells[state, action] = Summed(
            state=state,
            keep=before.keep,
            count=before.count + 1,
            score=before.score + score,
            shown=before.shown + shown,
        )
    collected = Collected(cells=tuple(cells.values()))
    promoted, out = merge(table(), collected, tenant="acme", created=LATER)
    assert promoted is not None
    assert promoted.visits.tolist() == one_by_one.visits.tolist()
    np.testing.assert_allclose(promoted.q, one_by_one.q, atol=1e-9)
    assert out.rewards == len(given_)
    assert out.after == promoted.digest


def test_what_changes_is_said() -> None:
    q = np.zeros((3, len(ACTIONS)))
    q[:, 1] = 0.4
    of = table(q=q)
    # a reward of 0.5 · (2 · 0 − 1) − 0.5 · 0.1 each
    collected = Collected(cells=(cell(0, 0.05, *[(0, 0.1)] * 30), cell(2, 0.4, (1, 0.5))))
    promoted, out = merge(of, collected, tenant="acme", created=LATER)
    assert promoted is not None
    assert (promoted.parent, promoted.created) == (of.digest, LATER)
    assert promoted.q[0, 1] == pytest.approx((6 * 0.4 - 30 * 0.55) / 36)
    assert promoted.q[2, 8] == pytest.approx(0.25 / 7)
    changes = [(one.state, one.rewards, one.keep_before, one.keep_after) for one in out.states]
    assert changes == [(0, 30, 0.05, 0.0), (2, 1, 0.05, 0.05)]
    text = StringIO()
    show_promotion(Console(file=text, width=80), out)
    assert "1 of 2 states" in text.getvalue()
    assert promoted.digest in text.getvalue()


def test_a_state_that_has_enough_rewards_at_last_decides() -> None:
    visits = np.full((3, len(ACTIONS)), 5)
    visits[1, 0] = 4
    of = table(visits=visits, q=np.zeros((3, len(ACTIONS))))
    promoted, out = merge(
        of, Collected(cells=(cell(1, 0.0, (1, 0.0)),)), tenant="acme", created=LATER
    )
    assert promoted is not None
    assert (out.states[0].keep_before, out.states[0].keep_after) == (1.0, 0.0)


def test_what_is_of_no_action_or_state_is_left_out_and_said() -> None:
    cells = (cell(0, 0.07, (1, 0.1), (1, 0.1)), cell(9, 0.1, (1, 0.1)), cell(0, 0.1, (1, 0.1)))
    promoted, out = merge(table(), Collected(cells=cells), tenant="acme", created=LATER)
    assert promoted is not None
    assert (out.rewards, out.left_out) == (1, 3)
    text = StringIO()
    show_promotion(Console(file=text, width=80), out)
    assert "3 rewards" in text.getvalue()


def test_nothing_makes_no_table() -> None:
    promoted, out = merge(table(), Collected(cells=()), tenant="acme", created=LATER)
    assert promoted is None
    assert (out.after, out.rewards, out.states) == (None, 0, ())
    text = StringIO()
    show_promotion(Console(file=text, width=200), out)
    assert out.before in text.getvalue()
