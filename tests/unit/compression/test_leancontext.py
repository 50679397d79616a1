from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posology.types import Compressed, Retrieval, Sentence
from prompts.fence import OMISSION, shown
from strategies.compression.leancontext import LeanContext
from strategies.compression.reduction import Nothing
from tests.support.compression import WRITTEN, compressible, contexts

TOP = LeanContext.top()
TWO = ("Alpha is one. Beta is two. Gamma is three.", "Delta is four. Epsilon is five.")


def pointed(texts: tuple[str, ...], *likeness: float) -> Retrieval:
    """A retrieval whose sentences have these cosines to the query, in the order of the text."""
    retrieval = compressible(texts, dim=2)
    left = list(likeness)
    passages = []
    for one in retrieval.passages:
        own, left = left[: len(one.sentences)], left[len(one.sentences) :]
        rows = [[round(127 * c), round(127 * (1 - c * c) ** 0.5)] for c in own]
        passages.append(replace(one, sentence_vectors=np.array(rows, np.int8)))
    assert not left
    return replace(
        retrieval, passages=tuple(passages), query_vector=np.array([1, 0], dtype=np.float32)
    )


def words(compressed: Compressed) -> list[str]:
    return [s.of(e.passage.text) for e in compressed.excerpts for s in e.sentences]


def test_the_nearest_sentences_of_all_passages_are_kept_in_the_text_s_order() -> None:
    retrieval = pointed(TWO, 0.1, 0.9, 0.3, 0.8, -0.9)
    assert words(TOP(retrieval, 0.4)) == ["Beta is two.", "Delta is four."]
    assert words(TOP(retrieval, 0.6)) == ["Beta is two.", "Gamma is three.", "Delta is four."]


def test_a_passage_of_which_nothing_is_left_is_left_out() -> None:
    compressed = TOP(pointed(TWO, 0.1, 0.2, 0.3, 0.4, 0.9), 0.2)
    assert [e.passage.id for e in compressed.excerpts] == ["t:1"]
    assert (compressed.kept, compressed.sentences) == (1, 5)


def test_of_equally_near_sentences_those_of_the_better_passage_are_kept() -> None:
    assert words(TOP(pointed(TWO, *[0.5] * 5), 0.4)) == ["Alpha is one.", "Beta is two."]


def test_the_whole_range_of_cosines_counts() -> None:
    """Not products in 8 bits, where 127 × 127 runs over."""
    assert words(TOP(pointed(TWO, -1.0, -0.5, 1.0, 0.0, 0.5), 0.2)) == ["Gamma is three."]


@pytest.mark.parametrize(
    ("keep", "kept"), [(0.0, 0), (0.01, 1), (0.07, 7), (0.1, 10), (0.101, 11), (0.35, 35), (1, 100)]
)
def test_a_share_is_rounded_up_to_whole_sentences(keep: float, kept: int) -> None:
    retrieval = compressible([" ".join(f"Line {i} is here." for i in range(100))])
    assert TOP(retrieval, keep).kept == kept


@settings(deadline=None)
@given(texts=contexts, seed=st.integers(0, 99))
def test_what_is_kept_stays_when_more_is_kept(texts: list[str], seed: int) -> None:
    retrieval = compressible(texts, seed=seed)
    before: set[tuple[str, Sentence]] = set()
    for keep in (0.0, 0.1, 0.3, 0.6, 1.0):
        compressed = TOP(retrieval, keep)
        left = {(e.passage.id, s) for e in compressed.excerpts for s in e.sentences}
        assert before <= left
        assert len(left) == compressed.kept
        before = left


@settings(deadline=None)
@given(texts=contexts, seed=st.integers(0, 99), keep=st.sampled_from((0.1, 0.4)))
def test_the_reducer_s_spans_stand_among_the_kept_sentences(
    texts: list[str], seed: int, keep: float
) -> None:
    retrieval = compressible(texts, seed=seed)
    whole = TOP(retrieval, keep)
    both = LeanContext()(retrieval, keep)
    assert {s for e in whole.excerpts for s in e.sentences} <= {
        s for e in both.excerpts for s in e.sentences
    }
    assert both.kept == whole.kept


def test_a_share_of_everything_between_leaves_no_mark() -> None:
    for keep in (0.0, 0.25, 1.0):
        compressed = LeanContext(share=1.0)(compressible(WRITTEN), keep)
        assert [shown(e) for e in compressed.excerpts] == list(WRITTEN)


def test_sentences_next_to_each_other_have_no_mark_between_them() -> None:
    compressed = TOP(pointed(TWO, 0.1, 0.9, 0.8, 0.2, 0.3), 0.4)
    (excerpt,) = compressed.excerpts
    assert shown(excerpt) == f"{OMISSION.lstrip()}Beta is two. Gamma is three."


def test_a_share_of_words_is_between_nothing_and_all() -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        LeanContext(share=1.5)


def test_without_a_reducer_it_is_named_otherwise() -> None:
    assert TOP.name != LeanContext().name
    assert isinstance(TOP.reducer, Nothing)
