"""Tests of the reading order: by the question, then by decisions."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.screening.ranking import Order, by_words, fit
from posology.types import Hit, Passage, Ranking


@pytest.fixture
def order() -> Order:
    # two groups of ten records, along different axes; the question is nearer to the first group
    lot = np.random.default_rng(0)
    centres = np.repeat(np.eye(8)[:2], 10, axis=0)
    vectors = (centres + 0.1 * lot.normal(size=centres.shape)).astype(np.float32)
    words = Ranking(method="bm25", hits=(Hit(passage_id="9", score=1.0),))
    return Order([str(i) for i in range(20)], vectors, np.eye(8, dtype=np.float32)[0], words)


def test_the_question_orders_until_there_are_both_decisions(order: Order) -> None:
    first = order.unread({})
    assert set(first[:10]) == {str(i) for i in range(10)}
    assert first[0] == "9"
    assert order.unread({"0": False, "1": False}) == tuple(i for i in first if i not in ("0", "1"))


def test_decisions_turn_the_order(order: Order) -> None:
    left = order.unread({"0": False, "1": False, "10": True, "11": True})
    assert set(left[:8]) == {str(i) for i in range(12, 20)}
    assert len(left) == 16


def test_everything_read_leaves_nothing(order: Order) -> None:
    assert order.unread({str(i): i > 9 for i in range(20)}) == ()


def test_the_fit_is_a_minimum_of_the_penalised_loss() -> None:
    lot = np.random.default_rng(1)
    vectors, relevant = lot.normal(size=(60, 5)), lot.random(60) < 0.2
    weights = fit(vectors, relevant)
    share = relevant.mean()
    importance = np.where(relevant, 0.5 / share, 0.5 / (1 - share))
    chance = 1 / (1 + np.exp(-vectors @ weights))
    assert np.allclose(vectors.T @ (importance * (chance - relevant)) + weights, 0, atol=1e-3)


def test_records_without_a_word_of_the_question_are_not_ranked_by_words() -> None:
    passages = [
        Passage(id="a", text="Sumatriptan relieved migraine."),
        Passage(id="b", text="A cohort of nurses."),
    ]
    assert by_words("triptans for migraine", passages).ids == ("a",)
    assert by_words("asthma", passages).ids == ()
