from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posology.corpus.pieces import BREAK, Piece, pack, words
from posology.text.sentences import split
from tests.support.literature import words as some_words

_TEXT = st.text(st.sampled_from("abcXY. \n\t?!(]é—\U0001f48a\u2029"), max_size=200)
_PIECES = st.lists(
    st.builds(Piece, text=_TEXT, section=st.sampled_from([None, "A", "B"])), max_size=8
)


def bare(text: str) -> str:
    return "".join(text.split())


@given(pieces=_PIECES, limit=st.integers(1, 12))
@settings(deadline=None)
def test_every_character_comes_once_in_order_and_sections_never_mix(
    pieces: list[Piece], limit: int
) -> None:
    cut = list(pack(pieces, limit=limit))
    assert bare("".join(piece.text for piece in cut)) == bare("".join(p.text for p in pieces))
    for section in (None, "A", "B"):
        own = "".join(piece.text for piece in cut if piece.section == section)
        assert bare(own) == bare("".join(p.text for p in pieces if p.section == section))
    assert all(piece.text.strip() == piece.text != "" for piece in cut)


@given(pieces=_PIECES, limit=st.integers(1, 12))
@settings(deadline=None)
def test_a_passage_is_too_long_only_if_it_is_one_sentence(pieces: list[Piece], limit: int) -> None:
    whole = {s.of(p.text) for p in pieces for s in split(p.text)}
    for piece in pack(pieces, limit=limit):
        assert words(piece.text) <= limit or piece.text in whole


@given(pieces=_PIECES, limit=st.integers(1, 12))
@settings(deadline=None)
def test_neighbours_that_fit_together_are_together(pieces: list[Piece], limit: int) -> None:
    short = [piece for piece in pieces if words(piece.text) <= limit]
    for one, other in pairwise(pack(short, limit=limit)):
        begin = other.text.split(BREAK)[0]
        assert one.section != other.section or words(one.text) + words(begin) > limit


def test_paragraphs_are_kept_together_up_to_the_limit() -> None:
    texts = [some_words(60), some_words(80, 100), some_words(20, 200)]
    cut = list(pack([Piece(text=text, section="S") for text in texts]))
    assert [piece.text for piece in cut] == [BREAK.join(texts[:2]), texts[2]]
    assert {piece.section for piece in cut} == {"S"}


@pytest.mark.parametrize(("size", "parts"), [(150, 1), (160, 2), (310, 3), (1_500, 10)])
def test_a_long_paragraph_is_cut_into_about_equal_parts(size: int, parts: int) -> None:
    cut = [words(piece.text) for piece in pack([Piece(text=some_words(size))])]
    assert parts <= len(cut) <= parts + 1
    assert sum(cut) == size
    assert min(cut) >= size / len(cut) - 30
    assert max(cut) <= 150


def test_a_sentence_that_is_too_long_stays_whole() -> None:
    long = "All " + "a " * 400 + "end."
    cut = list(pack([Piece(text=f"Before it. {long} After it.")]))
    assert [piece.text for piece in cut] == ["Before it.", long, "After it."]


def test_nothing_gives_nothing() -> None:
    assert list(pack([])) == []
    assert list(pack([Piece(text=" \n"), Piece(text="")])) == []
