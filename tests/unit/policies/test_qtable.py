from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import qtable
from policies.qtable import ACTIONS, QTable, choose, observe, state_vector, strangers
from posology.errors import PolicyMismatch
from tests.support.qtables import updated
from tests.unit.policies.tables import CREATED, retrieval, table

rewards = st.floats(-2, 2, allow_subnormal=False)


def features(of: QTable, state: int) -> dict[str, Any]:
    return {"qtable.state": state, "qtable.distance": 0.1, "qtable.table": of.digest}


# states


def test_a_difference_is_of_the_unit_mean_of_the_passages() -> None:
    found = state_vector(retrieval([1, 0, 0], [0, 1, 0], [0, 0, 1]), "difference")
    half = 2**-0.5
    assert found.dtype == np.float32
    assert found == pytest.approx([-1, half, half])


def test_a_cosine_is_one_number() -> None:
    found = state_vector(retrieval([1, 0], [1, 1]), "cosine")
    assert found.shape == (1,)
    assert found[0] == pytest.approx(2**-0.5)


def test_a_concatenation_has_the_context_first() -> None:
    assert state_vector(retrieval([1, 0], [0, 1]), "concatenation").tolist() == [0, 1, 1, 0]


def test_passages_that_cancel_out_have_no_direction() -> None:
    assert state_vector(retrieval([1, 0], [0, 1], [0, -1]), "difference").tolist() == [-1, 0]


def test_without_passages_there_is_no_state() -> None:
    with pytest.raises(PolicyMismatch, match="without passages"):
        observe(table(), retrieval([1, 0, 0, 0]))


def test_there_is_no_other_kind_of_state() -> None:
    with pytest.raises(ValueError, match="difference, cosine, concatenation"):
        state_vector(retrieval([1, 0], [0, 1]), "product")


def test_vectors_of_another_embedder_are_refused() -> None:
    with pytest.raises(PolicyMismatch, match=r"hash-4.* 4 numbers.* has 2"):
        observe(table(dim=4), retrieval([1, 0], [0, 1]))


@pytest.mark.parametrize(("kind", "width"), [("cosine", 1), ("concatenation", 8)])
def test_every_kind_of_state_is_observed(kind: str, width: int) -> None:
    of = table(dim=width, kind=kind)
    found = observe(of, retrieval([1, 0, 0, 0], [0, 1, 0, 0]))
    assert found["qtable.table"] == of.digest
    assert of.dim == (None if kind == "cosine" else 4)


def test_what_is_observed_is_plain_and_comes_back_from_a_record() -> None:
    found = observe(table(), retrieval([1, 0, 0, 0], [0, 1, 0, 0]))
    assert set(found) == {"qtable.state", "qtable.distance", "qtable.table"}
    assert json.loads(json.dumps(found)) == found


@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=2, max_size=2), min_size=1, max_size=6),
    st.lists(st.integers(-3, 3), min_size=2, max_size=2),
)
def test_the_nearest_centroid_is_the_first_of_the_nearest(
    places: list[list[int]], at: list[int]
) -> None:
    state, distance = qtable.nearest(np.array(places, np.float32), np.array(at, np.float32))
    squares = [(x - at[0]) ** 2 + (y - at[1]) ** 2 for x, y in places]
    assert state == squares.index(min(squares))
    assert distance == pytest.approx(min(squares) ** 0.5)


def test_a_context_is_in_the_state_whose_centroid_it_was_made_of() -> None:
    asked = [retrieval([1, i, 0, 0], [0, 1, i, i]) for i in range(3)]
    of = table(centroids=np.stack([state_vector(one, "difference") for one in asked]))
    assert [observe(of, one)["qtable.state"] for one in asked] == [0, 1, 2]


# choices


def test_the_best_action_is_chosen_and_said() -> None:
    q = np.zeros((3, len(ACTIONS)))
    q[1, 2] = 0.25
    of = table(q=q)
    choice = choose(of, features(of, 1))
    assert (choice.keep, choice.fallback, choice.state) == (0.1, False, 1)
    assert "10%" in choice.reason
    assert "0.250" in choice.reason
    assert choice.values[2] == 0.25
    assert choice.visits == (6,) * len(ACTIONS)


def test_of_equal_actions_the_cheapest_is_chosen() -> None:
    q = np.full((3, len(ACTIONS)), -0.5)
    q[0, [3, 7]] = 0.5
    of = table(q=q)
    assert choose(of, features(of, 0)).keep == ACTIONS[3]
    assert choose(of, features(of, 1)).keep == 0


@pytest.mark.parametrize(("visits", "falls_back"), [(4, True), (5, False)])
def test_one_action_too_rarely_tried_and_the_state_falls_back(
    visits: int, falls_back: bool
) -> None:
    counts = np.full((3, len(ACTIONS)), 9)
    counts[2, -1] = visits
    of = table(visits=counts, q=np.zeros((3, len(ACTIONS))), fallback=0.4)
    choice = choose(of, features(of, 2))
    assert choice.fallback is falls_back
    assert choice.keep == (0.4 if falls_back else 0)
    assert not choose(of, features(of, 0)).fallback


def test_an_untrained_table_has_no_values_and_says_that_it_falls_back() -> None:
    of = table(visits=0, q=np.full((3, len(ACTIONS)), np.nan))
    choice = choose(of, features(of, 0))
    assert choice.keep == 1
    assert choice.values == (None,) * len(ACTIONS)
    assert "nothing is compressed" in choice.reason
    assert "0 rewards" in choice.reason


def test_the_record_of_another_table_is_refused() -> None:
    of = table()
    with pytest.raises(PolicyMismatch, match=table(alpha=0.7).digest):
        choose(of, features(table(alpha=0.7), 0))


@pytest.mark.parametrize("state", [None, -1, 3, "1", 0.0])
def test_a_record_without_a_state_of_the_table_is_refused(state: object) -> None:
    of = table()
    with pytest.raises(PolicyMismatch, match="state"):
        choose(of, features(of, 0) | {"qtable.state": state})


@given(
    st.lists(st.integers(-8, 8), min_size=10, max_size=10),
    st.integers(1, 8),
    st.integers(-8, 8),
)
def test_the_choice_does_not_depend_on_the_scale_or_the_zero_of_rewards(
    values: list[int], scale: int, shift: int
) -> None:
    # whole numbers: ties stay ties
    q = np.array([values, values, values], np.float64)
    one, other = table(q=q), table(q=q * scale + shift)
    assert choose(one, features(one, 0)).keep == choose(other, features(other, 0)).keep


@given(st.permutations(range(3)))
def test_the_choice_does_not_depend_on_the_order_of_the_states(order: list[int]) -> None:
    asked = retrieval([1, 2, 0, 0], [0, 1, 0, 3])
    one = table()
    other = replace(one, centroids=one.centroids[order], q=one.q[order], visits=one.visits[order])
    assert choose(one, observe(one, asked)).values == choose(other, observe(other, asked)).values


@given(st.floats(-1, 1), st.integers(0, 9))
def test_no_other_state_matters(value: float, action: int) -> None:
    one = table()
    q = one.q.copy()
    q[1, action] = value
    other = replace(one, q=q)
    assert choose(one, features(one, 0)).keep == choose(other, features(other, 0)).keep


# rewards


def test_the_reward_is_the_papers() -> None:
    assert qtable.reward(tau=0.25, r=0.5, best=0.75, alpha=0.5) == pytest.approx(0)
    assert qtable.reward(tau=0.25, r=1, best=1, alpha=1) == 1
    assert qtable.reward(tau=0.25, r=1, best=1, alpha=0) == -0.25


@given(st.lists(rewards, min_size=1, max_size=30))
def test_values_are_means_of_rewards(given_: list[float]) -> None:
    of = table(visits=0, q=np.full((3, len(ACTIONS)), np.nan))
    for reward in given_:
        of = updated(of, 1, 4, reward)
    assert of.q[1, 4] == pytest.approx(np.mean(given_), abs=1e-9)
    assert of.visits[1, 4] == len(given_)
    assert of.visits.sum() == len(given_)
    assert np.isnan(of.q).sum() == of.q.size - 1


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), rewards), max_size=20))
def test_many_rewards_at_once_are_the_same_as_one_by_one(
    given_: list[tuple[int, int, float]],
) -> None:
    start = table(visits=2)
    one_by_one = start
    counts, sums = np.zeros((3, 10), np.int64), np.zeros((3, 10))
    for state, action, reward in given_:
        one_by_one = updated(one_by_one, state, action, reward)
        counts[state, action] += 1
        sums[state, action] += reward
    at_once = qtable.merged(start, counts, sums)
    assert at_once.visits.tolist() == one_by_one.visits.tolist()
    np.testing.assert_allclose(at_once.q, one_by_one.q, atol=1e-9)


def test_a_table_stays_as_it_is() -> None:
    of = table()
    before = of.digest, of.q.copy()
    assert updated(of, 0, 0, 1.0).digest != of.digest
    assert (of.q == before[1]).all()
    assert replace(of).digest == before[0]
    with pytest.raises(ValueError, match="read-only"):
        of.q[0, 0] = 1
    assert qtable.merged(of, np.zeros((3, 10), np.int64), np.zeros((3, 10))).digest == of.digest


def test_the_callers_array_stays_the_callers() -> None:
    q = np.zeros((3, len(ACTIONS)))
    of = table(q=q)
    q[0, 0] = 9
    assert of.q[0, 0] == 0


# identity

OTHERS: dict[str, Any] = {
    "centroids": np.zeros((3, 4)),
    "actions": (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5),
    "q": np.zeros((3, 10)),
    "visits": np.full((3, 10), 7),
    "alpha": 0.6,
    "embedder": "hash-5",
    "compressor": "other",
    "model": "openai:x",
    "k": 8,
    "prompts": {"answer": "0b" * 8},
    "data": "cd" * 32,
    "least_visits": 6,
    "fallback": 0.4,
    "parent": "0" * 16,
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_digest_changes_with_the_content(name: str) -> None:
    assert table(**{name: OTHERS[name]}).digest != table().digest


def test_the_digest_does_not_change_with_time_or_with_the_kind_of_zero() -> None:
    actions = (0, 1)
    one = table(actions=actions, alpha=1, created=CREATED)
    assert one.digest == table(actions=(0.0, 1.0), alpha=1.0).digest
    assert one.digest == replace(one, created=CREATED + timedelta(days=1)).digest


@given(st.integers(0, 2), st.integers(0, 9), st.floats(-1, 1, width=16))
def test_the_digest_changes_with_each_value(state: int, action: int, value: float) -> None:
    one = table()
    q = one.q.copy()
    q[state, action] = value
    assert (replace(one, q=q).digest == one.digest) is bool((q == one.q).all())


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "product"},
        {"centroids": np.zeros(4)},
        {"centroids": np.zeros((0, 4))},
        {"centroids": np.full((3, 4), np.nan)},
        {"kind": "cosine"},
        {"kind": "concatenation", "centroids": np.zeros((3, 5))},
        {"actions": (0.0, 0.0, 1.0)},
        {"actions": (0.0, 0.3, 1.5)},
        {"actions": ()},
        {"alpha": 1.1},
        {"fallback": -0.1},
        {"q": np.zeros((2, 10))},
        {"q": np.full((3, 10), np.nan)},
        {"q": np.full((3, 10), np.inf)},
        {"visits": np.full((3, 10), -1)},
        {"visits": np.zeros((3, 10)), "q": np.zeros((3, 10))},
        {"least_visits": 0},
        {"k": 0},
        {"created": CREATED.replace(tzinfo=None)},
    ],
    ids=str,
)
def test_parts_that_do_not_fit_are_no_table(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        table(**wrong)


def test_what_differs_from_the_training_is_said() -> None:
    of = table()
    same: dict[str, Any] = {
        "model": of.model,
        "compressor": of.compressor,
        "k": of.k,
        "prompts": of.prompts,
    }
    assert strangers(of, **same) == strangers(of) == ()
    assert "openai:x" in strangers(of, **(same | {"model": "openai:x"}))[0]
    said = strangers(of, model="openai:x", compressor="none", k=8, prompts={"answer": "new"})
    assert len(said) == 4
    assert "answer" in said[3]
