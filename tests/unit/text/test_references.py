"""References to passages in a text, whatever their ids hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.text.quoting.references import references, without_references

COMMA, BRACKET = "file:papers/Smith, Jones 2019.pdf#3", "file:papers/Doe [final].pdf#1"
SICI = "doi:10.1002/(sici)1097-0258(19970615)16:11<1237::aid-sim535>3.0.co;2-1"
IDS = ("pmid:1", "pmid:12", COMMA, BRACKET, SICI)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It helps [pmid:1].", [("[pmid:1]", ("pmid:1",))]),
        ("It helps [pmid:1,pmid:12 ; 2015].", [("[pmid:1,pmid:12 ; 2015]", ("pmid:1", "pmid:12", "2015"))]),
        (f"It helps [{COMMA}].", [(f"[{COMMA}]", (COMMA,))]),
        (f"It [pmid:1] helps [{BRACKET}, {SICI}].", [("[pmid:1]", ("pmid:1",)), (f"[{BRACKET}, {SICI}]", (BRACKET, SICI))]),
        ("Of [95% CI, 1 to 2], [pmid:13] and [ pmid:1 ].", [("[ pmid:1 ]", ("pmid:1",))]),
        ("Of [[pmid:1] and [] and [pmid:1", [("[pmid:1]", ("pmid:1",))]),
        ("None.", []),
    ],
)  # fmt: skip
def test_references_are_found_by_the_ids_of_passages(
    text: str, found: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert [(text[one.start : one.end], one.items) for one in references(text, IDS)] == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It helps [pmid:1].", "It helps."),
        (f"It [{COMMA}; 2015] helps [pmid:1] [pmid:12]", "It helps"),
        ("It [pmid:1]helps.", "It helps."),
        ("It helps [pmid:13].", "It helps [pmid:13]."),
    ],
)
def test_a_text_is_read_without_its_references(text: str, words: str) -> None:
    assert without_references(text, IDS) == words


def test_nothing_is_named_without_ids() -> None:
    assert list(references("It helps [pmid:1].", ())) == []


@given(
    st.lists(st.text("a,;[] #.", min_size=1, max_size=8).map(str.strip).filter(bool), max_size=5)
)
def test_every_id_is_read_as_it_is_written(ids: list[str]) -> None:
    text = f"It helps [{', '.join(dict.fromkeys(ids))}]."
    named = {item for one in references(text, ids) for item in one.items}
    if len(ids) == 1:
        assert named == set(ids)
    assert all(text[one.start] == "[" for one in references(text, ids))
