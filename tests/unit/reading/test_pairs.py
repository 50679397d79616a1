"""Model inputs of a question with a text."""

from __future__ import annotations

import numpy as np

from posology.reading.pairs import HEADING, LIMIT, MOST_ASKED, padded, pairs, tokenizer
from posology.text.sentences import split
from posology.types import Sentence

TEXT = "Aspirin lowered the risk. The dose was 5 mg. It did no harm."


def test_a_short_text_is_one_input_with_its_heading() -> None:
    (pair,) = pairs("Is aspirin safe?", TEXT, split(TEXT), heading="A trial. ")
    words = tokenizer().decode(pair.ids.tolist(), skip_special_tokens=False)
    assert words.startswith("[CLS] is aspirin safe? [SEP] a trial. aspirin lowered")
    assert words.endswith("it did no harm. [SEP]")
    assert pair.ids[pair.first - 1] == tokenizer().token_to_id("[SEP]")
    assert set(pair.sentence.tolist()) == {HEADING, 0, 1, 2}
    own = pair.sentence == 1
    assert TEXT[pair.starts[own].min() : pair.ends[own].max()] == "The dose was 5 mg."


def test_a_long_text_is_read_in_windows_that_begin_with_sentences() -> None:
    text = " ".join(f"Sentence {i} tells of patient {i} and of dose {i}." for i in range(90))
    sentences = split(text)
    found = pairs("Which dose?", text, sentences)
    assert len(found) > 2
    assert all(len(one.ids) <= LIMIT for one in found)
    assert {k for one in found for k in one.sentence.tolist()} == set(range(90))
    for one in found[1:]:
        assert one.starts[0] in {s.start for s in sentences}


def test_a_long_question_leaves_room_for_the_text() -> None:
    (pair,) = pairs("dose " * 1_000, TEXT, split(TEXT))
    assert pair.first == MOST_ASKED + 2
    assert pair.sentence.max() == 2


def test_a_sentence_longer_than_a_window_is_cut() -> None:
    text = "dose " * 2_000
    found = pairs("Which dose?", text, [Sentence(start=0, end=len(text))])
    assert len(found) > 5
    assert sum(len(one.sentence) for one in found) == 2_000


def test_padding_has_no_mask_and_no_segment() -> None:
    short, long = pairs("Why?", "No.", split("No."))[0], pairs("Why?", TEXT, split(TEXT))[0]
    ids, mask, segments = padded([short, long])
    assert ids.shape == (2, len(long.ids))
    assert mask.sum(axis=1).tolist() == [len(short.ids), len(long.ids)]
    assert np.array_equal(segments[1, : long.first], np.zeros(long.first))
    assert segments[0, len(short.ids) :].sum() == 0
