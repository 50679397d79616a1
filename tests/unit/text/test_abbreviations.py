from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posology.text.abbreviations import (
    LONGEST,
    SHORTEST,
    Abbreviation,
    abbreviations,
    is_short_form,
    long_form,
)
from posology.text.sentences import split
from tests.support.growth import MOST, growth


def found(text: str) -> list[tuple[str, str]]:
    return [(one.short, one.long) for one in abbreviations(text, split(text))]


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (
            "Patients with acute myocardial infarction (AMI) were enrolled.",
            [("AMI", "acute myocardial infarction")],
        ),
        (
            "The heat shock transcription factor (HSF) binds.",
            [("HSF", "heat shock transcription factor")],
        ),
        (
            "We measured tumour necrosis factor alpha (TNF-α; pg/ml).",
            [],
        ),
        (
            "We measured C-reactive protein (CRP; mg/l) and interleukin 6 (IL-6).",
            [("CRP", "C-reactive protein"), ("IL-6", "interleukin 6")],
        ),
        (
            "AMI (acute myocardial infarction) is frequent.",
            [("AMI", "acute myocardial infarction")],
        ),
        ("Half of them (50 %) and others (see above) died (Table 2).", []),
        (
            "Angiotensin-converting enzyme (ACE) was raised.",
            [("ACE", "Angiotensin-converting enzyme")],
        ),
        # a definition does not cross a sentence
        ("He had a myocardial infarction. (MI) was not written.", []),
        ("They gave aspirin (ASA).", []),
        ("", []),
    ],
)
def test_what_a_text_defines(text: str, pairs: list[tuple[str, str]]) -> None:
    assert found(text) == pairs


def test_the_shortest_run_of_words_is_taken() -> None:
    assert long_form("MI", "many men with a myocardial infarction") == "myocardial infarction"


def test_the_first_letter_begins_a_word() -> None:
    assert long_form("RA", "severe arthritis") is None


def test_each_definition_comes_once() -> None:
    text = "Deep vein thrombosis (DVT) is common. Deep vein thrombosis (DVT) recurs."
    assert abbreviations(text, split(text)) == (
        Abbreviation(short="DVT", long="Deep vein thrombosis"),
    )


WORDS = st.lists(st.from_regex(r"[a-z]{3,9}", fullmatch=True), min_size=2, max_size=6)


@given(WORDS, WORDS)
@settings(deadline=None)
def test_initials_in_brackets_are_found(context: list[str], words: list[str]) -> None:
    short = "".join(word[0] for word in words).upper()
    text = f"{' '.join(context)} {' '.join(words)} ({short})"
    ((got, long),) = found(text)
    assert got == short
    # never longer than what the initials are of, and its letters are in order
    assert " ".join(words).endswith(long) or long.endswith(" ".join(words)[-len(long) :])
    assert len(long.split()) <= len(words)


@given(st.text(max_size=300))
@settings(deadline=None)
def test_any_text_will_do(text: str) -> None:
    for pair in abbreviations(text, split(text)):
        assert SHORTEST <= len(pair.short) <= LONGEST
        assert is_short_form(pair.short)
        assert pair.long in text
        assert pair.short in text
        assert len(pair.long) > len(pair.short)


def test_many_brackets_in_one_sentence_take_time_in_proportion() -> None:
    def look(brackets: int) -> None:
        text = "the heat shock factor (HSF) x " * brackets
        assert found(text) == [("HSF", "heat shock factor")]

    assert growth(look, 500) < MOST
