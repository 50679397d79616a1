from __future__ import annotations

from posology.corpus.gaps import PICTURE, Gaps, pictured, told, without_figures
from posology.types import UNREADABLE, Passage


def test_places_are_counted_by_kind_with_the_words_before_the_first() -> None:
    gaps = Gaps()
    sign = gaps.sign("formula")
    assert gaps.sign("formula") == sign
    assert gaps.shown(f"All of {sign} was {sign} or {PICTURE}.") == "All of � was � or �."
    assert gaps.shown("plain and µ") == "plain and µ"
    (wrong,) = gaps.remarks("a:1")
    assert wrong.record == "a:1"
    assert wrong.reason == (
        "3 places could not be read, � in the text: formula (2, first after “All of”); "
        "picture in a line of text (after “All of � was � or”)"
    )


def test_many_kinds_are_summed_up() -> None:
    gaps = Gaps()
    assert len({gaps.sign(f"k{i}") for i in range(3_000)}) < 1_100
    gaps.shown("".join(gaps.sign(f"k{i}") for i in range(9)))
    (wrong,) = gaps.remarks("a:1")
    assert wrong.reason.endswith("; other kinds (4)")
    assert "k0 (at the start)" in wrong.reason


def test_nothing_is_said_of_what_was_read_whole() -> None:
    gaps = Gaps()
    passage = Passage(id="a#1", text="5 µg.", parent="a", section="In \ue000")
    (only,) = told(iter([passage]), gaps, record="a")
    assert isinstance(only, Passage)
    assert (only.text, only.section) == ("5 µg.", f"In {UNREADABLE}")


def test_the_text_of_pictures() -> None:
    assert pictured(" ≥ ") == "≥"
    assert pictured("plus or minus") == " plus or minus "
    for nothing in (None, "", "Graphic", "inline-graphic 3", "Equation (2)", "img/ge.gif"):
        assert pictured(nothing) == PICTURE
    assert without_figures(f"{PICTURE} {PICTURE}.") == "."
    assert without_figures(f"p {PICTURE} 0.05") == f"p {PICTURE} 0.05"
