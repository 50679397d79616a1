"""Tests of the lower bound of recall: by hand, against exact sums, and its stated confidence over many simulated lists."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.screening.stopping import CONFIDENCE, _at_most, recall, step

#: simulated lists a case
LISTS = 200
#: records, relevant ones, and how much better than chance relevant ones score, in standard deviations
CASES = [
    (500, 30, 0.0),
    (1_000, 50, 0.0),
    (2_000, 150, 0.0),
    (1_000, 50, 1.5),
    (2_000, 150, 1.5),
]


def simulated(size: int, relevant: int, better: float, seed: int) -> list[bool]:
    """Labels in the order of scores, which are normal and higher by ``better`` for relevant records."""
    lot = np.random.default_rng(seed)
    labels = np.arange(size) < relevant
    scores = lot.normal(size=size) + better * labels
    return [bool(one) for one in labels[np.argsort(-scores)]]


@pytest.mark.parametrize("target", [0.8, 0.95])
@pytest.mark.parametrize(("size", "relevant", "better"), CASES)
def test_a_stop_is_wrong_no_oftener_than_stated(
    size: int, relevant: int, better: float, target: float
) -> None:
    wrong = early = 0
    for seed in range(LISTS):
        labels = simulated(size, relevant, better, seed)
        looks = (read for read in range(step(size), size, step(size)))
        stop = next((n for n in looks if recall(labels[:n], size).reached(target)), size)
        wrong += sum(labels[:stop]) < target * relevant
        early += stop < size
    assert wrong / LISTS <= 1 - CONFIDENCE
    # a rule that never stops would be right as well
    assert not better or early == LISTS


def test_a_bound_of_one_look_holds() -> None:
    # what `posology screen` states when it is called once, half-way
    held = 0
    for seed in range(LISTS):
        stand = recall(simulated(1_000, 100, 1.0, seed)[:500], 1_000)
        held += stand.at_most >= 100
    assert held / LISTS >= CONFIDENCE


@given(st.data())
def test_the_tail_is_the_exact_sum(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 60))
    relevant, drawn = data.draw(st.integers(0, size)), data.draw(st.integers(0, size))
    inside = data.draw(st.integers(0, drawn))
    ways = (comb(relevant, n) * comb(size - relevant, drawn - n) for n in range(inside + 1))
    exact = sum(ways) / comb(size, drawn)
    found = _at_most(inside, size=size, relevant=relevant, drawn=drawn)
    assert found == pytest.approx(exact, abs=1e-9)


def test_of_a_list_read_whole_recall_is_one() -> None:
    stand = recall([True] + [False] * 99, 100)
    assert (stand.found, stand.at_most, stand.at_least) == (1, 1, 1.0)


def test_before_the_first_look_everything_unread_may_be_relevant() -> None:
    stand = recall([True] * 10, 100)
    assert (stand.at_most, stand.looked_at) == (100, 0)
    assert stand.at_least == pytest.approx(0.1)


def test_without_a_relevant_record_the_target_is_never_reached() -> None:
    stand = recall([False] * 100, 100)
    assert stand.at_least is None
    assert not stand.reached(0.5)


def test_no_sample_begins_before_the_last_record_joined() -> None:
    labels = [True] * 50 + [False] * 300
    assert recall(labels, 500).at_least == pytest.approx(50 / 52)
    late = recall(labels, 500, since=340).at_least
    assert late is not None
    assert late < 0.5


def test_records_found_after_a_look_raise_the_bound() -> None:
    labels = [True] * 20 + [False] * 455
    before = recall(labels, 500)
    after = recall([*labels, *[True] * 20], 500)
    assert before.looked_at == after.looked_at == 475
    assert after.at_most >= after.found == 40
