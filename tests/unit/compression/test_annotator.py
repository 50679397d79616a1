from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.index.phrases import decode, encode
from posology.seams import Annotator
from posology.text.sentences import split
from posology.types import Passage, Phrases
from strategies.compression.self_information import make_annotator
from strategies.compression.self_information.annotator import NgramScorer, SelfInformationAnnotator

PASSAGES = [
    Passage(id="1", text="Aspirin did not lower the risk of stroke. It was 5 mg daily, by mouth."),
    Passage(id="2", text="Statins lower the risk of stroke (and of death)."),
]


def annotate(annotator: Annotator, *passages: Passage) -> list[Phrases]:
    return annotator(passages, [split(passage.text) for passage in passages])


@pytest.fixture
def annotator() -> SelfInformationAnnotator:
    made = make_annotator()
    made.learn(PASSAGES * 3)
    return made


def test_phrases_say_what_their_words_tell_on_average(annotator: SelfInformationAnnotator) -> None:
    (found,) = annotate(annotator, PASSAGES[0])
    text = PASSAGES[0].text
    told = [text[a:b] for a, b in zip(found.starts, found.ends, strict=True)]
    assert told == [
        "Aspirin",
        "did not lower the risk",
        "of stroke.",
        "It was 5 mg daily,",
        "by mouth.",
    ]
    assert found.words.tolist() == [len(phrase.split()) for phrase in told]
    assert found.clauses.tolist() == [0, 0, 0, 1, 2]
    assert found.protected.tolist() == [True, True, True, True, False]
    words = NgramScorer()
    words.restore(annotator.dump() or b"")
    (alone,) = annotate(SelfInformationAnnotator(words), PASSAGES[0])
    assert alone.information == pytest.approx(found.information, abs=0.05)
    assert (found.information > 0).all()


def test_before_it_learns_all_words_are_unknown_to_it() -> None:
    (before,) = annotate(make_annotator(), PASSAGES[0])
    trained = make_annotator()
    trained.learn(PASSAGES * 3)
    (after,) = annotate(trained, PASSAGES[0])
    assert after.information.mean() < before.information.mean() / 2


@given(st.lists(st.text(min_size=1), max_size=5))
def test_any_passages_are_annotated_and_kept(texts: list[str]) -> None:
    passages = [Passage(id=str(i), text=text) for i, text in enumerate(texts)]
    annotator = make_annotator()
    annotator.learn(passages)
    found = annotate(annotator, *passages)
    assert len(found) == len(texts)
    for text, phrases in zip(texts, found, strict=True):
        assert np.isfinite(phrases.information).all()
        covered = "".join(text[a:b] for a, b in zip(phrases.starts, phrases.ends, strict=True))
        assert covered.split() == text.split() or "".join(covered.split()) == "".join(text.split())
        import pyarrow as pa

        (kept,) = decode(pa.array([encode(phrases)], pa.binary()))
        assert kept is not None
        assert kept.starts.tolist() == phrases.starts.tolist()
        assert kept.information == pytest.approx(phrases.information, rel=1e-3)
        assert kept.clauses.tolist() == phrases.clauses.tolist()
