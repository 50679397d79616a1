from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from posology.testing.models.language_model import save_tiny_language_model
from posology.text.sentences import split
from strategies.compression import make
from strategies.compression.parts import Parts
from strategies.compression.self_information.annotator import NgramScorer
from strategies.compression.self_information.cache import RememberedScorer
from strategies.compression.wording.phrases import Segments, segment
from tests.support.compression import WRITTEN, compressible


class Shelf:
    """Keeps in a dict, and counts."""

    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}
        self.puts = 0

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {key: self.kept[key] for key in keys if key in self.kept}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        self.puts += len(values)
        self.kept = {**values, **self.kept}


class Counting(NgramScorer):
    """Counts the texts that it is asked for."""

    asked = 0

    def bits(self, texts: Sequence[str], segments: Sequence[Segments]) -> list[np.ndarray]:
        self.asked += len(texts)
        return super().bits(texts, segments)


def told(scorer: RememberedScorer | NgramScorer, *texts: str) -> list[list[float]]:
    segments = [segment(text, split(text)) for text in texts]
    return [bits.tolist() for bits in scorer.bits(texts, segments)]


@pytest.fixture
def scorer() -> Counting:
    scorer = Counting()
    scorer.learn(WRITTEN)
    return scorer


def test_a_text_is_asked_for_once(scorer: Counting) -> None:
    shelf = Shelf()
    first = told(RememberedScorer(scorer, shelf), WRITTEN[0], WRITTEN[1], WRITTEN[0])
    assert (scorer.asked, shelf.puts) == (2, 2)
    again = told(RememberedScorer(scorer, shelf), WRITTEN[1], WRITTEN[2], WRITTEN[0])
    assert (scorer.asked, shelf.puts) == (3, 3)
    assert again[0] == first[1]
    assert again[2] == first[0] == first[2]


def test_what_is_remembered_is_what_was_told(scorer: Counting) -> None:
    remembered = told(RememberedScorer(scorer, Shelf()), *WRITTEN)
    for one, other in zip(remembered, told(scorer, *WRITTEN), strict=True):
        assert one == pytest.approx(other, rel=1e-3)


def test_models_do_not_share_what_they_told(scorer: Counting) -> None:
    shelf = Shelf()
    told(RememberedScorer(scorer, shelf), WRITTEN[0])
    told(RememberedScorer(NgramScorer(order=2), shelf), WRITTEN[0])
    assert len(shelf.kept) == 2


def test_glued_sentences_are_remembered_by_where_they_part(scorer: Counting) -> None:
    text = "It bound the promoter.The gene was not expressed."
    shelf = Shelf()
    remembered = RememberedScorer(scorer, shelf)
    whole = segment(text, split("x" * len(text)))
    parted = segment(text, split(text))
    assert len(whole.starts) != len(parted.starts)
    for found in (whole, parted, whole):
        (bits,) = remembered.bits([text], [found])
        assert len(bits) == len(found.starts)
    assert shelf.puts == 2


def test_it_passes_on_what_its_model_learns(scorer: Counting) -> None:
    remembered = RememberedScorer(NgramScorer(), Shelf())
    remembered.restore(scorer.dump())
    assert told(remembered, WRITTEN[0])[0] == pytest.approx(told(scorer, WRITTEN[0])[0], rel=1e-3)
    remembered.learn(())
    assert remembered.dump() == NgramScorer().dump()
    assert remembered.name == scorer.name


def test_a_causal_model_filters_words_and_is_asked_once(tmp_path: Path) -> None:
    """End to end with the files of a model of Hugging Face, of random weights."""
    shelf = Shelf()
    folder = save_tiny_language_model(tmp_path)
    parts = Parts(models={"selective_context_word": str(folder)}, memory=lambda: shelf)
    retrieval = compressible(WRITTEN[:3])
    lefts = []
    for _ in range(2):
        compressor = make("selective_context_word", parts)
        compressed = compressor(retrieval, 0.5)  # type: ignore[call-arg, arg-type]
        lefts.append(compressed)
    assert lefts[0] == lefts[1]
    assert shelf.puts == 3
