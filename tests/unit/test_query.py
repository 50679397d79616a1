from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import InvalidQuery
from posology.query import MAX_QUESTION, make_query
from posology.types import Form

OPTIONS = {"A": "warfarin", "B": "apixaban"}


def test_accents_of_a_question_are_composed() -> None:
    assert make_query("Is it Sjo\u0308gren?").text == "Is it Sjögren?"


def test_free_question_is_stripped() -> None:
    query = make_query("  Does it work? \n")
    assert query.text == "Does it work?"
    assert query.form is Form.FREE
    assert query.choices == ()


def test_options_make_a_choice_question() -> None:
    query = make_query("Which one?", options=OPTIONS)
    assert query.form is Form.CHOICE
    assert query.choices == ("A", "B")
    assert [option.text for option in query.options] == ["warfarin", "apixaban"]


@pytest.mark.parametrize(
    ("form", "choices"), [("yes_no", ("yes", "no")), ("yes_no_maybe", ("yes", "no", "maybe"))]
)
def test_verdict_questions(form: str, choices: tuple[str, ...]) -> None:
    assert make_query("Is it?", form=form).choices == choices


@pytest.mark.parametrize(
    ("text", "form", "options", "field"),
    [
        ("", "free", None, "question"),
        (" \n\t", "free", None, "question"),
        ("x" * (MAX_QUESTION + 1), "free", None, "question"),
        ("lone \ud800 surrogate", "free", None, "question"),
        ("Is it?", "essay", None, "form"),
        ("Which?", "choice", None, "options"),
        ("Which?", "yes_no", OPTIONS, "options"),
        ("Which?", "choice", {"A": "one"}, "options"),
        ("Which?", "choice", {"B": "one", "A": "two"}, "options"),
        ("Which?", "choice", {"A": "one", "C": "two"}, "options"),
        ("Which?", "choice", dict(zip("ABCDEF", "uvwxyz", strict=True)), "options"),
        ("Which?", "choice", {"A": "one", "B": "  "}, "options"),
        ("Which?", "choice", {"A": "one", "B": "x" * 1_001}, "options"),
    ],
)
def test_bad_questions_name_their_field(
    text: str, form: str, options: dict[str, str] | None, field: str
) -> None:
    with pytest.raises(InvalidQuery) as caught:
        make_query(text, form=form, options=options)
    assert caught.value.field == field
    assert caught.value.exit_code == 3


def test_a_choice_without_options_says_how_to_write_them() -> None:
    with pytest.raises(InvalidQuery, match="--option A=TEXT"):
        make_query("Which?", form="choice")


@given(st.text(max_size=200))
def test_any_text_is_a_question_or_a_typed_error(text: str) -> None:
    try:
        query = make_query(text)
    except InvalidQuery:
        assert not text.strip() or not text.isprintable()
    else:
        assert query.text == text.strip() != ""
