from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies.compression.self_information.counts import Counts
from strategies.compression.self_information.fit import learn
from strategies.compression.self_information.ngram import (
    BEGIN,
    BITS,
    DIGIT_BITS,
    NgramModel,
    form,
    ngrams,
)
from strategies.compression.self_information.spelling import OTHER_BITS, Spelling

WORDS = ["aspirin", "lowers", "the", "risk", "of", "stroke", "in", "adults."]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
CORPUS = [
    "Aspirin lowers the risk of stroke. Aspirin lowers the risk of death.",
    "Warfarin lowers the risk of stroke in adults. Aspirin helps.",
    "The risk of bleeding was 12.5% with aspirin.",
] * 3


def chance_of(model: NgramModel, context: list[str], word: str) -> float:
    bits = model.bits([*context, word], [0])
    return float(2.0 ** -bits[-1])


@settings(deadline=None)
@given(
    st.lists(TEXT, max_size=12),
    st.lists(st.sampled_from([*WORDS, "unseen"]), max_size=3),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_the_probabilities_after_any_context_sum_to_1(
    texts: list[str], context: list[str], order: int, least: int
) -> None:
    model = learn(texts, order=order, least=least)
    known = [f for f in {form(w)[0] for w in WORDS} if f in model]
    # an unknown word has the probability of being one, and that of its letters
    unknown = model.bits([*context, "zzz"], [0])[-1] - model.spelled("zzz")
    total = sum(chance_of(model, context, word) for word in known) + 2.0**-unknown
    assert total == pytest.approx(1, abs=1e-4)


def test_what_is_usual_tells_little_and_what_is_rare_much() -> None:
    model = learn(CORPUS)
    usual = model.bits(["Aspirin", "lowers", "the", "risk", "of", "stroke."], [0])
    rare = model.bits(["Aspirin", "lowers", "the", "tonsillar", "xylophones."], [0])
    assert usual[3] < 1
    assert rare[3] > 10
    assert rare[4] > 20
    # the same word tells more at another place
    assert model.bits(["risk", "the"], [0])[1] > model.bits(["lowers", "the"], [0])[1]


def test_each_sentence_begins_anew() -> None:
    model = learn(CORPUS)
    words = ["Aspirin", "lowers", "the", "risk.", "Aspirin", "helps."]
    together = model.bits(words, [0, 4])
    apart = [*model.bits(words[:4], [0]), *model.bits(words[4:], [0])]
    assert together.tolist() == pytest.approx(apart)
    assert model.bits(words, [0])[4] != pytest.approx(apart[4])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_it_comes_back_from_its_bytes(order: int) -> None:
    model = learn(CORPUS, order=order)
    again = NgramModel.from_bytes(model.to_bytes())
    words = [
        "Aspirin",
        "lowers",
        "the",
        "risk",
        "of",
        "ünknown",
        "\ud800",
        "things",
        "by",
        "12.5%.",
    ]
    assert again.bits(words, [0]) == pytest.approx(model.bits(words, [0]), abs=0.02)
    assert (again.order, again.sizes, again.words) == (order, model.sizes, model.words)
    assert again.to_bytes() == model.to_bytes()


def test_equal_corpora_give_equal_models() -> None:
    assert learn(CORPUS).to_bytes() == learn(iter(CORPUS)).to_bytes()


def test_it_learns_nothing_from_nothing() -> None:
    model = NgramModel.from_bytes(learn([]).to_bytes())
    bits = model.bits(["aspirin", "a"], [0])
    assert np.isfinite(bits).all()
    assert bits[0] > bits[1] > 0
    assert model.bits([], []).tolist() == []


@pytest.mark.parametrize("data", [b"", b"oops", b"\x93NUMPY", b"PK\x03\x04" + bytes(40)])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        NgramModel.from_bytes(data)


def test_longer_orders_are_not_known() -> None:
    with pytest.raises(ValueError, match="n-grams of 4 words"):
        learn([], order=4)


def test_no_more_words_are_read_than_it_may() -> None:
    def texts() -> object:
        yield "aspirin " * 600_000
        raise AssertionError("it reads on")

    assert learn(texts(), most_words=500_000).words == 600_000  # type: ignore[arg-type]


def test_memory_is_bounded_and_what_is_frequent_stays() -> None:
    texts = ["the risk of stroke " * 50, " ".join(f"w{i} x{i}" for i in range(2_000))]
    model = learn(texts, most_keys=500, least=1)
    assert all(size <= 500 for size in model.sizes[1:])
    assert model.bits(["risk", "of", "stroke"], [0])[-1] < 1


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 60), max_size=50), max_size=6))
def test_counts_are_those_of_a_counter(batches: list[list[int]]) -> None:
    counts = Counts()
    for batch in batches:
        counts.add(np.array(batch, dtype=np.int64))
        keys, _ = counts.table()
        assert keys.tolist() == sorted(keys.tolist())
    found = dict(zip(*(array.tolist() for array in counts.table()), strict=True))
    assert found == Counter(key for batch in batches for key in batch)


def test_a_full_table_forgets_the_rarest() -> None:
    counts = Counts(most=3)
    counts.add(np.array([1, 1, 1, 2, 2, 2, 3, 3, 4, 5], dtype=np.int64))
    keys, times = counts.table()
    assert (keys.tolist(), times.tolist()) == ([1, 2, 3], [3, 3, 2])
    counts.add(np.array([6, 6, 6, 6], dtype=np.int64))
    assert counts.table()[0].tolist() == [1, 2, 6]


def test_keys_hold_the_words_before_in_their_sentence() -> None:
    two, three = ngrams(np.array([5, 6, 7]), [0, 2], 3)
    assert two.tolist() == [BEGIN << BITS | 5, 5 << BITS | 6, BEGIN << BITS | 7]
    assert three.tolist() == [
        BEGIN << 2 * BITS | BEGIN << BITS | 5,
        BEGIN << 2 * BITS | 5 << BITS | 6,
        BEGIN << 2 * BITS | BEGIN << BITS | 7,
    ]
    assert ngrams(np.array([5]), [0], 1) == []


@pytest.mark.parametrize(
    ("word", "expected", "digits"),
    [
        ("Aspirin,", "aspirin", 0),
        ("(IL-6)", "il-6", 0),
        ("12.5%", "00.0%", 3),
        ("(n=45)", "n=45", 0),
        ("<0.05", "<0.00", 3),
        ("(", "(", 0),
        ("=", "=", 0),
    ],
)
def test_forms(word: str, expected: str, digits: int) -> None:
    assert form(word) == (expected, digits * DIGIT_BITS)


def test_spelling_tells_the_usual_from_the_odd() -> None:
    spelling = Spelling.learn(["pindolol", "propranolol", "metoprolol", "atenolol"] * 5)
    drug, odd, strange = spelling.bits(["bisoprolol", "xqzvkjwyxq", "日本"])
    assert drug < odd
    assert strange > 2 * OTHER_BITS
    assert spelling.bits([]).tolist() == []
    assert spelling.bits(["a", "", "a"])[0] == spelling.bits(["a"])[0]


def test_the_characters_after_any_two_have_probabilities_that_sum_to_1() -> None:
    spelling = Spelling.learn(["pindolol", "atenolol"])
    classes = round(len(spelling._bits) ** (1 / 3))
    chances = 2.0 ** -spelling._bits.reshape(classes, classes, classes)
    chances[:, :, 1] *= 2**OTHER_BITS
    assert chances.sum(axis=2) == pytest.approx(1, abs=1e-5)
    assert math.isclose(chances[0, 0].sum(), 1, abs_tol=1e-5)
