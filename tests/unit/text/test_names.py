from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.text.names import (
    MORE,
    MOST,
    byline,
    group,
    joined,
    kept,
    parts_of,
    people,
    person,
    short,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Smith JA", "Smith, JA"),
        ("Smith, John A.", "Smith, John A."),
        ("Smith, John A., Jr.", "Smith, John A. Jr."),
        ("Smith JA Jr", "Smith, JA Jr"),
        ("van der Berg J.-P.", "van der Berg, J.-P."),
        ("  Müller \n Ö ", "Müller, Ö"),
        ("Salt Group,", "Salt Group"),
        ("Salt, Sand and Clay Group,", "Salt Sand and Clay Group"),
        ("Salt Study Group", "Salt Study Group"),
        ("Madonna", "Madonna"),
        ("others", MORE),
        (" ", ""),
    ],
)
def test_names_have_one_form(text: str, name: str) -> None:
    assert person(text) == name
    assert person(name) == name


@pytest.mark.parametrize(
    ("text", "natural"),
    [
        ("John A. Smith", "Smith, John A."),
        ("Ludwig van der Berg", "van der Berg, Ludwig"),
        ("World Health Organization", "World Health Organization"),
        ("Society for Salt", "Society for Salt"),
    ],
)
def test_the_order_is_changed_only_where_it_is_known(text: str, natural: str) -> None:
    assert person(text, natural=True) == natural
    assert person(text) == text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        # PubMed's CSV, Scopus, Web of Science, Zotero, Rayyan, Europe PMC, APA
        ("Smith J, Doe A", ("Smith, J", "Doe, A")),
        ("Smith J.; Doe A.", ("Smith, J.", "Doe, A.")),
        ("Smith, John (5712); Doe, Anna (99)", ("Smith, John", "Doe, Anna")),
        ("Smith, J. and Doe, A.", ("Smith, J.", "Doe, A.")),
        ("Smith J, Doe A, Roe B.", ("Smith, J", "Doe, A", "Roe, B.")),
        ("Smith, J., Doe, A., & Roe, B.", ("Smith, J.", "Doe, A.", "Roe, B.")),
        ("John Smith, Anna Doe and X Roe", ("Smith, John", "Doe, Anna", "Roe, X")),
        ("Smith, John", ("Smith, John",)),
        ("de la Cruz, Ana", ("de la Cruz, Ana",)),
        ("Salt and Sand Study Group", ("Salt and Sand Study Group",)),
        ("Smith J|Doe A\nRoe B", ("Smith, J", "Doe, A", "Roe, B")),
        ("Smith J, et al.", ("Smith, J", MORE)),
        ("", ()),
        (" ; ", ()),
    ],
)
def test_one_text_of_several_names(text: str, names: tuple[str, ...]) -> None:
    assert people(text) == names


@given(st.text(max_size=60))
def test_any_text_gives_names_without_white_space_around_them(text: str) -> None:
    for name in people(text):
        assert name
        assert name == " ".join(name.split())
        # by which citations tell the parts
        assert joined(*parts_of(name)) == name


def test_thousands_of_authors_are_cut_as_medline_cuts_them() -> None:
    names = kept(f"Smith{n}, J" for n in range(MOST + 1))
    assert len(names) == MOST + 1
    assert names[-1] == MORE
    assert kept(["A, B", "", "A, B"]) == ("A, B",)


@pytest.mark.parametrize(
    ("names", "line"),
    [
        ((), ""),
        (("Smith, John Albert",), "Smith JA"),
        (("Smith, John", "Doe, Anna-Lena"), "Smith J and Doe AL"),
        (("Smith, JA Jr", "Doe, A", "Roe, B"), "Smith JA et al."),
        (("Salt Study Group", MORE), "Salt Study Group et al."),
    ],
)
def test_a_line_names_the_first(names: tuple[str, ...], line: str) -> None:
    assert byline(names) == line


def test_a_group_has_no_comma_and_no_initials() -> None:
    name = group("Department of Salt, Sand and Clay")
    assert short(name) == name == "Department of Salt Sand and Clay"
