from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import ConfigurationError, ScorerUnavailable
from posology.seams import Compressor
from posology.types import Compressed, Retrieval
from strategies.compression import make
from strategies.compression.parts import Parts
from strategies.compression.selective_context import (
    DEFAULT_KEEP,
    SelectiveContext,
    SelectiveSentences,
    SelectiveWords,
)
from strategies.compression.self_information.annotator import NgramScorer
from tests.support.compression import WRITTEN, compressible, contexts

PHRASES, SENTENCES = SelectiveContext(), SelectiveSentences()


def _learned() -> NgramScorer:
    scorer = NgramScorer()
    scorer.learn(WRITTEN)
    return scorer


WORDS = SelectiveWords(_learned)
keeps = st.floats(0, 1)
every = pytest.mark.parametrize("compressor", [PHRASES, SENTENCES, WORDS], ids=lambda c: c.name)


def shown(compressed: Compressed) -> list[str]:
    return [s.of(e.passage.text) for e in compressed.excerpts for s in e.sentences]


def words(compressed: Compressed) -> int:
    return sum(len(part.split()) for part in shown(compressed))


def total(retrieval: Retrieval) -> int:
    return sum(len(one.passage.text.split()) for one in retrieval.passages)


def informed(retrieval: Retrieval, tells: Callable[[str], float]) -> Retrieval:
    """The same with phrases that tell what a function says of their words."""
    passages = []
    for one in retrieval.passages:
        assert one.phrases is not None
        spans = zip(one.phrases.starts.tolist(), one.phrases.ends.tolist(), strict=True)
        bits = np.array([tells(one.passage.text[a:b]) for a, b in spans], np.float32)
        passages.append(replace(one, phrases=replace(one.phrases, information=bits)))
    return replace(retrieval, passages=tuple(passages))


@every
def test_unless_told_half_is_left(compressor: Compressor) -> None:
    retrieval = compressible(WRITTEN)
    assert DEFAULT_KEEP == 0.5
    assert compressor(retrieval, None) == compressor(retrieval, 0.5)
    assert compressor.expected_ratio(None) == 0.5


@pytest.mark.parametrize("compressor", [PHRASES, WORDS], ids=lambda c: c.name)
@given(texts=contexts, keep=keeps)
def test_no_more_than_the_share_of_words_is_left(
    compressor: Compressor, texts: list[str], keep: float
) -> None:
    retrieval = compressible(texts)
    assert words(compressor(retrieval, keep)) <= keep * total(retrieval) + 1e-6


@given(texts=contexts, keeps=st.lists(keeps, min_size=2, max_size=4).map(sorted))
def test_the_more_is_left_the_more_of_the_same(texts: list[str], keeps: list[float]) -> None:
    retrieval = compressible(texts)
    before: set[tuple[str, int]] = set()
    for keep in keeps:
        left = {
            (e.passage.id, at)
            for e in PHRASES(retrieval, keep).excerpts
            for s in e.sentences
            for at in range(s.start, s.end)
            # punctuation at a sentence's ends comes with what stands beside it
            if e.passage.text[at].isalnum()
        }
        assert before <= left
        before = left


def test_the_phrases_that_tell_the_most_are_left_wherever_they_stand() -> None:
    retrieval = informed(
        compressible(
            ["The trial was of septic shock in the ward.", "The rest of it was of no interest."]
        ),
        lambda phrase: 12 if "septic" in phrase else 9 if "ward" in phrase else 1,
    )
    assert shown(PHRASES(retrieval, 0.25)) == ["was of septic shock"]
    assert shown(PHRASES(retrieval, 0.45)) == ["was of septic shock in the ward."]


def test_it_is_not_aware_of_the_question() -> None:
    retrieval = compressible(WRITTEN)
    turned = replace(retrieval, query_vector=-retrieval.query_vector)
    for compressor in (PHRASES, SENTENCES, WORDS):
        assert compressor(retrieval, 0.4) == compressor(turned, 0.4)


def test_a_clause_is_not_shown_without_its_negation() -> None:
    retrieval = informed(
        compressible(
            [
                (
                    "The new drug did not for most of the older patients in the wards of the region reduce "
                    "the rate of septic mortality."
                )
            ]
        ),
        lambda phrase: 15 if "mortality" in phrase else 1,
    )
    for keep in np.linspace(0.1, 0.9, 9):
        left = " ".join(shown(PHRASES(retrieval, float(keep))))
        assert "mortality" not in left or "did not" in left
    assert "mortality" in " ".join(shown(PHRASES(retrieval, 0.8)))


@given(texts=contexts, keep=keeps)
def test_numbers_stay_with_their_units(texts: list[str], keep: float) -> None:
    retrieval = compressible(texts)
    for compressor in (PHRASES, WORDS):
        for part in shown(compressor(retrieval, keep)):
            for number, unit in (("40–75", "years"), ("20", "mg"), ("5", "mg/kg"), ("120", "of")):
                if re.search(rf"(?<![\d.–]){number}\Z", part):
                    pytest.fail(f"{number} {unit} was parted: {part}")


def test_sentences_that_tell_the_most_are_left_whole() -> None:
    retrieval = informed(
        compressible(["It was seen. Septic shock recurred often.", "It was. Renal failure came."]),
        lambda phrase: 10 if re.search("Septic|shock|Renal|failure", phrase) else 1,
    )
    compressed = SENTENCES(retrieval, 0.5)
    assert shown(compressed) == ["Septic shock recurred often.", "Renal failure came."]
    assert (compressed.kept, compressed.sentences) == (2, 4)


@every
def test_what_nothing_is_known_of_is_left(compressor: Compressor) -> None:
    """Phrases are of the index; words are asked for, so that those of an index without any are filtered, too."""
    retrieval = compressible(WRITTEN[:4], annotate=None)
    compressed = compressor(retrieval, 0.3)
    if compressor is WORDS:
        assert 0 < words(compressed) <= 0.3 * total(retrieval)
    else:
        assert shown(compressed) == list(WRITTEN[:4])
    assert compressor(retrieval, 0.0).excerpts == ()


@every
def test_passages_with_phrases_are_filtered_beside_one_without(compressor: Compressor) -> None:
    retrieval = compressible(WRITTEN)
    first, *others = retrieval.passages
    mixed = replace(retrieval, passages=(replace(first, phrases=None), *others))
    alone = replace(retrieval, passages=tuple(others))
    if compressor is not WORDS:
        assert compressor(mixed, 0.4).excerpts[1:] == compressor(alone, 0.4).excerpts
        assert shown(compressor(mixed, 0.4))[0] == WRITTEN[0]


def test_words_that_tell_the_most_are_left() -> None:
    """Of what it learned, "septic" is the only word that it does not know."""
    scorer = NgramScorer()
    scorer.learn(["The patient was in the ward and the nurse was in the ward."] * 5)
    retrieval = compressible(["The patient was in the septic ward and the nurse was in the ward."])
    # 5 of 14 words: one, and two marks of omission that count as two each
    assert shown(SelectiveWords(lambda: scorer)(retrieval, 0.4)) == ["septic"]
    assert shown(SelectiveWords(lambda: scorer)(retrieval, 0.3)) == []


def test_the_language_model_is_made_once_and_only_when_it_is_asked() -> None:
    made = []

    def scorer() -> NgramScorer:
        made.append(1)
        return _learned()

    compressor = SelectiveWords(scorer)
    retrieval = compressible(WRITTEN)
    compressor(retrieval, 1.0)
    compressor(retrieval, 0.0)
    compressor(compressible(()), 0.5)
    assert made == []
    compressor(retrieval, 0.5)
    compressor(retrieval, 0.6)
    assert made == [1]
    assert compressor.seconds(retrieval, 1.0) == 0 < compressor.seconds(retrieval, 0.5)


def test_words_need_a_language_model() -> None:
    with pytest.raises(ConfigurationError, match="POSOLOGY_COMPRESSOR_MODEL"):
        make("selective_context_word")
    assert make("selective_context_word", Parts(scorer=_learned)).name == "selective_context_word"


def test_a_model_that_is_not_there_is_an_error_when_it_is_asked(tmp_path: object) -> None:
    missing = Parts(models={"selective_context_word": f"{tmp_path}/none"})
    compressor = cast("Compressor", make("selective_context_word", missing))
    with pytest.raises(ScorerUnavailable):
        compressor(compressible(WRITTEN), 0.5)
