from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posology.text.sentences import split
from strategies.compression.wording.runs import MARK, Table, choose_runs
from strategies.compression.wording.words import Words
from tests.support.compression import contexts, medical


def words_of(*texts: str) -> list[Words]:
    return [Words.of(text, sentence) for text in texts for sentence in split(text)]


def random_scores(words: list[Words], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.random(len(each)).astype(np.float32) for each in words]


def cost(kept: list[np.ndarray]) -> float:
    """Words, and marks where something is left out before a word, between words or behind them."""
    flat = [bool(flag) for each in kept for flag in each]
    gaps = sum(not flag and (i == 0 or flat[i - 1]) for i, flag in enumerate(flat))
    return sum(flat) + MARK * gaps


@settings(deadline=None)
@given(contexts, st.integers(0, 99), st.floats(0, 1))
def test_clauses_keep_what_protects_them_and_bonds_stay_whole(
    texts: list[str], seed: int, share: float
) -> None:
    words = words_of(*texts)
    kept = choose_runs(words, random_scores(words, seed), share)
    for each, chosen in zip(words, kept, strict=True):
        for clause in set(each.clause[chosen].tolist()):
            assert chosen[(each.clause == clause) & each.protected].all()
        for bond in set(each.bond[chosen].tolist()):
            assert chosen[each.bond == bond].all()


@settings(deadline=None)
@given(contexts, st.integers(0, 99), st.floats(0.05, 0.95))
def test_words_and_marks_stay_within_the_share(texts: list[str], seed: int, share: float) -> None:
    words = words_of(*texts)
    kept = choose_runs(words, random_scores(words, seed), share)
    if any(each.any() for each in kept):
        assert cost(kept) <= share * sum(map(len, words)) + 1e-6


@given(medical, st.integers(0, 99))
def test_all_or_nothing_stays_at_the_ends_of_the_scale(text: str, seed: int) -> None:
    words = words_of(text)
    scores = random_scores(words, seed)
    assert not any(each.any() for each in choose_runs(words, scores, 0))
    assert all(each.all() for each in choose_runs(words, scores, 1))


@pytest.mark.parametrize("price", [0.1, 0.25, 0.4, 0.6])
def test_at_a_price_no_other_choice_is_worth_more(price: float) -> None:
    # nine words without a bond or a clause's end: every choice can be tried
    text = "lions hunt grey zebras near quiet rivers during spring"
    words = [Words.bare(text, split(text)[0])]

    def worth(kept: np.ndarray) -> float:
        gaps = int((np.diff(kept.astype(int)) < 0).sum())
        return float(scores[kept].sum()) - price * (int(kept.sum()) + MARK * gaps)

    for seed in range(10):
        (scores,) = random_scores(words, seed)
        kept = Table(words, [scores]).best(price)[0]
        best = max(worth(np.array(other)) for other in product([False, True], repeat=9))
        assert worth(kept) == pytest.approx(best, abs=1e-5)


def test_a_lone_gap_that_costs_more_than_it_saves_is_not_made() -> None:
    text = "lions hunt grey zebras near quiet rivers. Cats sleep and purr."
    words = words_of(text)
    scores = [np.array([1, 1, 1, 0.3, 1, 1, 1], np.float32), np.full(4, 0.1, np.float32)]
    first, second = choose_runs(words, scores, 0.85)
    assert first.all()
    assert not second.any()


def test_sentences_of_no_words_and_no_sentences() -> None:
    assert choose_runs([], [], 0.5) == []


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_is_0_to_1(share: float) -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        choose_runs([], [], share)
