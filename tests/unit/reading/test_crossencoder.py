"""The cross-encoder's outputs as readings; weights are random."""

from __future__ import annotations

import numpy as np
import pytest

from posology.reading.crossencoder import (
    END,
    RELEVANT,
    START,
    Calibration,
    CrossEncoder,
    Scores,
    best_span,
    joined,
    sentence_means,
)
from posology.reading.pairs import pairs
from posology.text.sentences import split
from posology.types import Excerpt, Passage

TEXT = "Aspirin lowered the risk. The dose was 5 mg. It did no harm."


def excerpt(text: str = TEXT, *, shown: tuple[int, ...] | None = None) -> Excerpt:
    sentences = tuple(split(text))
    chosen = sentences if shown is None else tuple(sentences[i] for i in shown)
    return Excerpt(passage=Passage(id="p", title="A trial", text=text), sentences=chosen)


def test_each_shown_sentence_gets_a_probability(encoder: CrossEncoder) -> None:
    whole, part, none = encoder.read(
        "Which dose?", [excerpt(), excerpt(shown=(0, 2)), excerpt(shown=())]
    )
    assert whole.sentences.shape == (3,)
    assert part.sentences.shape == (2,)
    assert none.sentences.shape == (0,)
    assert none.answers == 0.0
    assert none.span is None
    assert ((whole.sentences > 0) & (whole.sentences < 1)).all()
    assert whole.answers == pytest.approx(float(whole.sentences.max()), abs=1e-6)
    assert whole.span is not None
    assert any(s.start <= whole.span.start < whole.span.end <= s.end for s in split(TEXT))


def test_the_span_of_shown_sentences_points_into_the_passage(encoder: CrossEncoder) -> None:
    (read,) = encoder.read("Which dose?", [excerpt(shown=(2,))])
    last = split(TEXT)[2]
    assert read.span is not None
    assert last.start <= read.span.start < read.span.end <= last.end


def test_a_reading_does_not_depend_on_what_is_read_beside_it(encoder: CrossEncoder) -> None:
    alone = encoder.read("Which dose?", [excerpt()])[0]
    long = excerpt("Much else was measured here, too. " * 40)
    beside = encoder.read("Which dose?", [long, excerpt()])[1]
    assert np.allclose(alone.sentences, beside.sentences, atol=1e-5)


def test_a_calibration_survives_its_file() -> None:
    made = Calibration(sentence=(0.5, -1.0))
    assert Calibration.parse(made.dump()) == made


def test_the_best_span_lies_in_one_sentence() -> None:
    (pair,) = pairs("Which dose?", TEXT, split(TEXT), heading="A trial. ")
    tokens = np.zeros((len(pair.sentence), 3), np.float32)
    words = [TEXT[a:b] for a, b in zip(pair.starts, pair.ends, strict=True)]
    tokens[words.index("5"), START] = 5
    # the best end is another sentence's, which makes no span
    tokens[words.index("harm"), END] = 8
    tokens[words.index("mg"), END] = 4
    score, place = best_span(pair, Scores(tokens=tokens, text=np.zeros(5, np.float32)))
    assert score == 9
    assert place is not None
    assert TEXT[slice(*place)] == "5 mg"


def test_means_are_those_of_a_sentences_own_tokens() -> None:
    (pair,) = pairs("Which dose?", TEXT, split(TEXT), heading="A trial. ")
    values = np.where(pair.sentence == 1, 3.0, -1.0).astype(np.float32)
    assert sentence_means(pair, values, 3).tolist() == [-1.0, 3.0, -1.0]
    assert np.isnan(sentence_means(pair, values, 4)[3])
    assert RELEVANT == 0


def test_joined_sentences_keep_their_words() -> None:
    text, spans = joined(excerpt(shown=(0, 2)))
    assert [s.of(text) for s in spans] == ["Aspirin lowered the risk.", "It did no harm."]
