from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.text.quoting.edges import drops_negation
from posology.text.sentences import split
from posology.types import Sentence
from strategies.compression.wording.words import Words, choose, spans
from tests.support.compression import contexts, medical


def words_of(text: str) -> list[Words]:
    return [Words.of(text, sentence) for sentence in split(text)]


def one(text: str) -> Words:
    (sentence,) = split(text)
    return Words.of(text, sentence)


def bonds(text: str) -> list[str]:
    words = one(text)
    places = [np.flatnonzero(words.bond == b) for b in range(int(words.bond[-1]) + 1)]
    return [text[words.starts[p[0]] : words.ends[p[-1]]] for p in places]


def protected(text: str) -> list[str]:
    words = one(text)
    return [text[words.starts[i] : words.ends[i]] for i in np.flatnonzero(words.protected)]


def random_scores(words: list[Words], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.random(len(each)).astype(np.float32) for each in words]


@given(medical | st.text() | st.text("no 5%mg,;.()\n", max_size=60))
def test_words_hold_every_character_that_is_no_white_space(text: str) -> None:
    for words in words_of(text):
        shown = "".join(text[a:b] for a, b in zip(words.starts, words.ends, strict=True))
        assert shown == "".join(words.sentence.of(text).split())
        for numbers in (words.bond, words.clause):
            assert numbers[0] == 0
            assert set(np.diff(numbers).tolist()) <= {0, 1}
        for number in range(int(words.bond[-1]) + 1):
            bond = words.bond == number
            assert len(set(words.clause[bond].tolist())) == 1
            assert len(set(words.protected[bond].tolist())) == 1


@given(medical, st.integers(0, 99))
def test_spans_are_the_kept_words_in_order(text: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for words in words_of(text):
        kept = rng.random(len(words)) < 0.6
        found = spans(text, words, kept)
        inside = " ".join(span.of(text) for span in found).split()
        wanted = [text[words.starts[i] : words.ends[i]] for i in np.flatnonzero(kept)]
        assert [word.rstrip(",;:") for word in inside] == [word.rstrip(",;:") for word in wanted]
        assert all(a.end < b.start for a, b in pairwise(found))
        (whole,) = spans(text, words, np.ones(len(words), np.bool_))
        assert whole == words.sentence


@given(contexts, st.integers(0, 99), st.floats(0, 1))
def test_no_clause_is_shown_without_what_protects_its_meaning(
    texts: list[str], seed: int, share: float
) -> None:
    words = [each for text in texts for each in words_of(text)]
    kept = choose(words, random_scores(words, seed), share)
    for each, chosen in zip(words, kept, strict=True):
        for clause in set(each.clause[chosen].tolist()):
            assert chosen[(each.clause == clause) & each.protected].all()
        for bond in set(each.bond[chosen].tolist()):
            assert chosen[each.bond == bond].all()
    total = sum(map(len, words))
    assert sum(int(chosen.sum()) for chosen in kept) <= math.floor(share * total + 1e-9)


@given(medical, st.integers(0, 99))
def test_a_fragment_is_not_cut_off_from_the_negation_before_it(text: str, seed: int) -> None:
    words = words_of(text)
    for each, chosen in zip(words, choose(words, random_scores(words, seed), 0.7), strict=True):
        own = each.sentence.of(text)
        for span in spans(text, each, chosen):
            if drops_negation(own, span.start - each.sentence.start, len(own)):
                # what denies it is shown too, being of its clause
                at = int(np.searchsorted(each.starts, span.start))
                mine = (each.clause == each.clause[at]) & each.protected
                assert mine.any()
                assert chosen[mine].all()


@given(medical, st.integers(0, 99))
def test_all_or_nothing_stays_at_the_ends_of_the_scale(text: str, seed: int) -> None:
    words = words_of(text)
    scores = random_scores(words, seed)
    assert not any(chosen.any() for chosen in choose(words, scores, 0.0))
    assert all(chosen.all() for chosen in choose(words, scores, 1.0))


@pytest.mark.parametrize(
    ("text", "bond"),
    [
        ("Aspirin was given at 5 mg/kg twice daily to adults.", "5 mg/kg twice daily"),
        ("Risk fell (95% CI 1.2 to 3.4) in women.", "(95% CI 1.2 to 3.4)"),
        ("The drug did not reduce overall mortality at all.", "did not reduce overall mortality"),
        ("Pressure fell by less than 10 mm Hg overall.", "less than 10 mm Hg"),
    ],
)
def test_numbers_and_negations_are_bonds(text: str, bond: str) -> None:
    assert any(bond in found for found in bonds(text)), bonds(text)
    assert set(bond.split()) <= set(protected(text))


def test_what_a_negation_reaches_is_of_its_clause() -> None:
    words = one("We found no difference in mortality, readmission, or cost, but pain improved.")
    assert words.clause.tolist() == [0] * 9 + [1] * 3


def test_not_only_is_no_negation() -> None:
    assert protected("It was not only cheap and quick.") == []


def test_the_highest_scores_stay_first() -> None:
    text = "lions hunt grey zebras"
    words = one(text)
    scores = np.array([0.1, 0.9, 0.3, 0.8], np.float32)
    (kept,) = choose([words], [scores], 0.5)
    assert kept.tolist() == [False, True, False, True]


def test_words_without_guard_go_by_their_score_alone() -> None:
    text = "Deaths fell by 5 mg not at all."
    words = Words.bare(text, Sentence(start=0, end=len(text)))
    scores = np.arange(len(words), dtype=np.float32)
    (kept,) = choose([words], [scores], 0.25)
    assert np.flatnonzero(kept).tolist() == [len(words) - 2, len(words) - 1]


def test_a_comma_is_not_left_at_the_end_of_a_fragment() -> None:
    text = "Nausea, dizziness, rash."
    words = one(text)
    kept = np.array([True, False, True])
    assert [span.of(text) for span in spans(text, words, kept)] == ["Nausea", "rash."]


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_is_0_to_1(share: float) -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        choose([], [], share)
