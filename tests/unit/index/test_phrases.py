from __future__ import annotations

from itertools import accumulate

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.index.phrases import MAX_LENGTH, MAX_WORDS, decode, encode
from posology.index.schema import STORED, Meta, Row, arrow_schema, from_arrow, to_arrow
from posology.testing.models.embedder import HashEmbedder
from posology.text.sentences import split
from posology.types import Passage, Phrases

#: gap before, length, words, bits, whether a clause begins, whether it is protected
PHRASE = st.tuples(
    st.integers(0, 3),
    st.integers(1, 400),
    st.integers(1, MAX_WORDS),
    st.floats(0, 80, width=16),
    st.booleans(),
    st.booleans(),
)


def make(drawn: list[tuple[int, int, int, float, bool, bool]]) -> Phrases:
    ends = list(accumulate(gap + length for gap, length, *_ in drawn))
    new = [begins for *_, begins, _ in drawn]
    return Phrases(
        starts=np.array([e - d[1] for e, d in zip(ends, drawn, strict=True)], dtype=np.int32),
        ends=np.array(ends, dtype=np.int32),
        words=np.array([d[2] for d in drawn], dtype=np.int32),
        information=np.array([d[3] for d in drawn], dtype=np.float32),
        clauses=np.array(list(accumulate([0, *new[1:]]))[: len(drawn)], dtype=np.int32),
        protected=np.array([d[5] for d in drawn], dtype=np.bool_),
    )


def same(one: Phrases, other: Phrases) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        and getattr(one, name).dtype == getattr(other, name).dtype
        for name in Phrases.__dataclass_fields__
    )


@given(st.lists(st.none() | st.lists(PHRASE, max_size=6), max_size=5))
def test_phrases_come_back_as_they_went_in(passages: list[list | None]) -> None:  # type: ignore[type-arg]
    phrases = [None if drawn is None else make(drawn) for drawn in passages]
    blobs = [None if one is None else encode(one) for one in phrases]
    assert all(
        b is None or len(b) == 10 * len(p or ()) for b, p in zip(blobs, passages, strict=True)
    )
    for one, found in zip(phrases, decode(pa.array(blobs, pa.binary())), strict=True):
        assert (one is None) == (found is None)
        if one is not None and found is not None:
            assert same(one, found)


def test_clauses_are_numbered_from_0_without_gaps() -> None:
    phrases = make([(0, 5, 1, 1.0, True, False)] * 4)
    gaps = Phrases(
        **{
            name: getattr(phrases, name)
            for name in Phrases.__dataclass_fields__
            if name != "clauses"
        },
        clauses=np.array([7, 7, 9, 20], dtype=np.int32),
    )
    (found,) = decode(pa.array([encode(gaps)], pa.binary()))
    assert found is not None
    assert found.clauses.tolist() == [0, 0, 1, 2]


def test_a_passage_of_millions_of_characters_keeps_its_offsets() -> None:
    (found,) = decode(pa.array([encode(make([(9_000_000, 5, 1, 1.0, True, True)]))], pa.binary()))
    assert found is not None
    assert (found.starts.tolist(), found.ends.tolist()) == ([9_000_000], [9_000_005])


@pytest.mark.parametrize("drawn", [(0, MAX_LENGTH + 1, 1), (0, 5, MAX_WORDS + 1)])
def test_a_phrase_that_is_too_long_is_refused(drawn: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="65535"):
        encode(make([(*drawn, 1.0, True, False)]))


def test_half_a_phrase_is_refused() -> None:
    with pytest.raises(ValueError, match="cut off"):
        decode(pa.array([b"123"], pa.binary()))


def test_a_table_of_rows_with_and_without_phrases_is_read() -> None:
    passages = [Passage(id=str(i), text="Aspirin helps. It is cheap.") for i in range(3)]
    sentences = [split(p.text) for p in passages]
    encoded = HashEmbedder(dim=16).embed_passages(passages, sentences)
    phrases = [make([(0, 7, 1, 9.5, True, False), (1, 6, 1, 4.25, False, True)]), None, make([])]
    rows = [
        Row(passage=p, sentences=s, encoded=e, digest="", phrases=f)
        for p, s, e, f in zip(passages, sentences, encoded, phrases, strict=True)
    ]
    meta = Meta(format=3, embedder="e", dim=16, splitter=1, created="", annotator="a")
    found = from_arrow(to_arrow(rows, arrow_schema(meta)).select(list(STORED)))
    assert found[1].phrases is None
    for i in (0, 2):
        one, other = phrases[i], found[i].phrases
        assert one is not None
        assert other is not None
        assert same(one, other)
