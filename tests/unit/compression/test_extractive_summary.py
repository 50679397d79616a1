from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.types import Compressed, Retrieval
from strategies.compression.extractive_summary import SENTENCES, ExtractiveSummary
from tests.support.compression import WRITTEN, compressible, contexts

SUMMARISE = ExtractiveSummary()


def placed(texts: list[str], vectors: list[list[float]]) -> Retrieval:
    """Sentences with these vectors, in the order of the text."""
    retrieval = compressible(texts, dim=2)
    rows = np.round(np.array(vectors) * 127).astype(np.int8)
    passages = []
    for one in retrieval.passages:
        own, rows = rows[: len(one.sentences)], rows[len(one.sentences) :]
        passages.append(replace(one, sentence_vectors=own))
    assert not len(rows)
    return replace(retrieval, passages=tuple(passages))


def shown(compressed: Compressed) -> list[str]:
    return [s.of(e.passage.text) for e in compressed.excerpts for s in e.sentences]


def test_the_sentence_in_the_middle_of_each_cluster_is_left_in_the_texts_order() -> None:
    retrieval = placed(
        ["Aa is. Bb is. Cc is.", "Dd is. Ee is. Ff is."],
        [[1, 0], [0.9, 0.1], [0, 1], [0.8, 0.2], [0.1, 0.9], [-0.1, 0.9]],
    )
    assert shown(SUMMARISE(retrieval, 0.3)) == ["Bb is.", "Cc is."]


def test_the_question_does_not_matter() -> None:
    retrieval = compressible(WRITTEN)
    turned = replace(retrieval, query_vector=-retrieval.query_vector)
    assert SUMMARISE(retrieval, 0.4) == SUMMARISE(turned, 0.4)


@pytest.mark.parametrize(("count", "left"), [(0, 0), (2, 2), (3, 3), (12, SENTENCES)])
def test_unless_told_three_sentences_of_the_whole_context_are_left(count: int, left: int) -> None:
    compressed = SUMMARISE(compressible(WRITTEN[:count]), None)
    assert (compressed.kept, compressed.sentences) == (left, count)
    assert len(shown(compressed)) == left


def test_where_sentences_are_alike_the_share_is_left_all_the_same() -> None:
    retrieval = placed(["Aa is. Bb is. Cc is. Dd is."], [[1, 0], [1, 0], [1, 0], [0, 1]])
    compressed = SUMMARISE(retrieval, 0.75)
    assert compressed.kept == 3
    assert "Dd is." in shown(compressed)


@given(texts=contexts, keep=st.floats(0, 1), seed=st.integers(0, 99))
def test_a_share_of_whole_sentences_is_left_the_same_every_time(
    texts: list[str], keep: float, seed: int
) -> None:
    retrieval = compressible(texts, seed=seed)
    compressed = SUMMARISE(retrieval, keep)
    count = sum(len(one.sentences) for one in retrieval.passages)
    assert compressed.kept == len(shown(compressed)) == math.ceil(round(keep * count, 9))
    assert SUMMARISE(compressible(texts, seed=seed), keep) == compressed


def test_its_time_grows_with_what_is_left() -> None:
    retrieval = compressible(WRITTEN)
    assert SUMMARISE.seconds(retrieval, None) < SUMMARISE.seconds(retrieval, 0.8)
