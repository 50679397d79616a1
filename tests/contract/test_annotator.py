"""What every :class:`~posology.seams.Annotator` must do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from posology.seams import Annotator
from posology.testing.models.language_model import save_tiny_language_model
from posology.text.sentences import split
from posology.types import Passage, Phrases
from strategies.compression.self_information import make_annotator

PASSAGES = tuple(
    Passage(id=str(number), text=text)
    for number, text in enumerate(
        (
            "Aspirin did not lower the risk of stroke. It was 5 mg daily, by mouth.",
            "Statins lower the risk of stroke (and of death).",
            "µg of 日本 it took… and no more.  Two  spaces.",
            "x",
            "",
        )
    )
)
Make = Callable[[], Annotator]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_language_model(tmp_path_factory.mktemp("tiny-gpt"))


@pytest.fixture(params=["n-gram", pytest.param("causal", marks=pytest.mark.slow)])
def make(request: pytest.FixtureRequest) -> Make:
    """Makes one that has learned nothing yet, each time another."""
    if request.param == "n-gram":
        return make_annotator
    place = str(request.getfixturevalue("folder"))
    return lambda: make_annotator(place)


def annotate(annotator: Annotator, *passages: Passage) -> list[Phrases]:
    return annotator(passages, [split(passage.text) for passage in passages])


def learned(make: Make) -> Annotator:
    annotator = make()
    annotator.learn(PASSAGES)
    return annotator


def same(one: list[Phrases], other: list[Phrases], *, bits: float = 1e-3) -> bool:
    return len(one) == len(other) and all(
        a.starts.tolist() == b.starts.tolist()
        and a.clauses.tolist() == b.clauses.tolist()
        # what is read beside a text changes the last digits of a model's sums
        and np.allclose(a.information, b.information, rtol=0, atol=bits)
        for a, b in zip(one, other, strict=True)
    )


def test_phrases_hold_all_words_once_and_in_order(make: Make) -> None:
    found = annotate(learned(make), *PASSAGES)
    assert len(found) == len(PASSAGES)
    for passage, phrases in zip(PASSAGES, found, strict=True):
        told = [passage.text[a:b] for a, b in zip(phrases.starts, phrases.ends, strict=True)]
        assert " ".join(told).split() == passage.text.split()
        assert phrases.words.tolist() == [len(phrase.split()) for phrase in told]


def test_no_phrase_and_no_clause_crosses_a_sentence(make: Make) -> None:
    for passage, phrases in zip(PASSAGES, annotate(learned(make), *PASSAGES), strict=True):
        sentences = split(passage.text)
        of = [
            next(i for i, s in enumerate(sentences) if s.start <= a and b <= s.end)
            for a, b in zip(phrases.starts, phrases.ends, strict=True)
        ]
        assert len(set(zip(phrases.clauses.tolist(), of, strict=True))) == len(
            set(phrases.clauses.tolist())
        )
        assert (np.diff(phrases.clauses) >= 0).all()


def test_types_and_shapes_are_those_that_are_promised(make: Make) -> None:
    for phrases in annotate(learned(make), *PASSAGES):
        for name in ("starts", "ends", "words", "clauses"):
            assert getattr(phrases, name).dtype == np.int32
            assert getattr(phrases, name).shape == phrases.starts.shape
        assert phrases.information.dtype == np.float32
        assert phrases.information.shape == phrases.starts.shape
        assert phrases.protected.dtype == np.bool_
        assert phrases.protected.shape == phrases.starts.shape


def test_what_every_phrase_tells_is_a_number_of_bits(make: Make) -> None:
    for phrases in annotate(learned(make), *PASSAGES):
        assert np.isfinite(phrases.information).all()
        assert (phrases.information >= 0).all()


def test_a_negation_and_a_dose_are_protected(make: Make) -> None:
    (phrases, *_) = annotate(learned(make), *PASSAGES)
    text = PASSAGES[0].text
    held = " ".join(
        text[a:b]
        for a, b, held in zip(phrases.starts, phrases.ends, phrases.protected, strict=True)
        if held
    )
    assert "not" in held.split()
    assert "5 mg" in held


def test_a_passage_is_annotated_the_same_whatever_stands_beside_it(make: Make) -> None:
    annotator = learned(make)
    together = annotate(annotator, *PASSAGES)
    assert same([annotate(annotator, passage)[0] for passage in PASSAGES], together)


def test_what_it_has_learned_is_taken_up_by_another_of_its_name(make: Make) -> None:
    annotator = learned(make)
    dumped, other = annotator.dump(), make()
    if dumped is not None:
        other.restore(dumped)
    assert other.name == annotator.name
    # what is kept may be rounded
    assert same(annotate(other, *PASSAGES), annotate(annotator, *PASSAGES))
    again = make()
    if dumped is not None:
        again.restore(dumped)
    assert same(annotate(again, *PASSAGES), annotate(other, *PASSAGES), bits=0)


def test_it_takes_up_nothing_else(make: Make) -> None:
    with pytest.raises(ValueError, match=r"no n-grams|does not learn"):
        make().restore(b"something else")


def test_nothing_is_nothing(make: Make) -> None:
    assert annotate(learned(make)) == []
