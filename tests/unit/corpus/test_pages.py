from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.corpus.pieces import Piece, pack
from posology.types import Pages


def pages(*stretches: tuple[int, int]) -> Pages:
    found = Pages.of(stretches)
    assert found is not None
    return found


def test_stretches_of_one_page_are_one_and_empty_ones_go() -> None:
    assert pages((1, 0), (1, 4), (2, 9), (3, 9)) == Pages(numbers=(1, 3), starts=(0, 9))
    assert Pages.of([]) is None


@pytest.mark.parametrize(("numbers", "starts"), [((), ()), ((1,), (1,)), ((1, 2), (0,))])
def test_pages_begin_at_the_texts_beginning(
    numbers: tuple[int, ...], starts: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="as many"):
        Pages(numbers=numbers, starts=starts)


def test_a_quote_may_stand_on_several_pages() -> None:
    found = pages((1, 0), (2, 10), (1, 20))
    assert found.span(0, 10) == (1, 1)
    assert found.span(9, 11) == (1, 2)
    assert found.span(10, 20) == (2, 2)
    assert found.span(12, 30) == (1, 2)
    assert Pages.read(found.flat) == found
    assert Pages.read(None) is None


@given(
    st.lists(
        st.tuples(st.lists(st.tuples(st.integers(1, 4), st.text("ab. ", max_size=9)), max_size=4)),
        max_size=6,
    ),
    st.integers(1, 5),
)
def test_every_character_keeps_its_page_when_paragraphs_are_packed(
    paragraphs: list[tuple[list[tuple[int, str]]]], limit: int
) -> None:
    wanted: list[tuple[str, int]] = []
    pieces = []
    for (stretches,) in paragraphs:
        text, starts = "", []
        for number, part in stretches:
            starts.append((number, len(text)))
            text += part
            wanted += ((char, number) for char in part if char.strip())
        pieces.append(Piece(text=text, pages=Pages.of(starts)))
    found = []
    for piece in pack(pieces, limit=limit):
        assert piece.pages is not None
        for i, char in enumerate(piece.text):
            if char.strip():
                (number, last) = piece.pages.span(i, i + 1)
                assert number == last
                found.append((char, number))
    assert found == wanted
