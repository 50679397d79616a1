from __future__ import annotations

import pytest
from hypothesis import given

from posology.text.sentences import split
from posology.types import Passage
from strategies.compression.checked import bears_out, check
from tests.support.compression import medical

SOURCE = Passage(
    id="p:1",
    title="Dexamethasone in 6,425 patients",
    text=(
        "Mortality at 28 days was 12.4% with dexamethasone 6 mg once daily and 22.9% without it (p < 0.001). "
        "Dexamethasone did not reduce mortality in patients without oxygen. "
        "Apixaban 5 mg twice daily reduced strokes. "
        "There was no evidence that IL-6 predicts length of stay, or that oxygen prolongs admission. "
        "Not only fever but also oxygen requirement fell quickly."
    ),
)


@pytest.mark.parametrize(
    "sentence",
    [
        "Apixaban 5 mg twice daily reduced strokes.",
        "At 28 days, mortality was 12.4% against 22.9%.",
        "6425 patients took part.",
        "Dexamethasone did not reduce mortality in those without oxygen.",
        "Dexamethasone was given at 6 mg daily.",
        "IL-6 was not shown to predict length of stay.",
        "Fever and oxygen requirement fell quickly.",
        "It was a trial.",
    ],
)
def test_what_the_source_says_stands(sentence: str) -> None:
    assert bears_out(SOURCE, sentence)


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("Mortality was 14.2% at 28 days.", "a number that is not there"),
        ("Fourteen died.", "a number in words that is not there"),
        ("Dexamethasone was given at 6 g daily.", "another unit"),
        ("Mortality was 12.4 with dexamethasone.", "a percent sign that is missing"),
        ("The difference was significant (p > 0.001).", "another comparison"),
        ("Rivaroxaban reduced strokes.", "a drug that is not there"),
        ("IL-8 was measured.", "a name that is not there"),
        ("Dexamethasone reduced mortality in patients without oxygen.", "a denial that is missing"),
        ("Apixaban did not reduce strokes.", "a denial that is not there"),
        ("Oxygen prolongs the admission.", "a denial that governs it is missing"),
    ],
)
def test_what_it_does_not_say_is_left_out(sentence: str, why: str) -> None:
    assert not bears_out(SOURCE, sentence), why
    checked = check(f"It was a trial. {sentence}", SOURCE)
    assert (checked.text, checked.dropped) == ("It was a trial.", 1)


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("esomeprazole", "Omeprazole was given."),
        ("methylprednisolone", "Patients received prednisolone."),
        ("levocetirizine", "Cetirizine was given."),
    ],
)
def test_a_drug_is_not_the_one_that_its_name_ends_with(named: str, sentence: str) -> None:
    text = f"Patients were treated with {named} at home."
    assert not bears_out(Passage(id="p:2", text=text), sentence)


def test_a_drug_is_known_in_the_plural_and_in_compounds() -> None:
    passage = Passage(id="p:2", text="Statins and warfarin-treated adults were compared.")
    assert bears_out(passage, "A statin was given.")
    assert bears_out(passage, "Warfarin was given.")
    assert bears_out(passage, "Adults were statin-treated.")


def test_nothing_is_denied_of_a_source_that_denies_nothing() -> None:
    glad = Passage(id="p:2", text="Aspirin lowered mortality in adults.")
    assert check("It helped adults. It did not help children.", glad).added == (
        "It did not help children.",
    )
    assert bears_out(SOURCE, "It did not help everybody.")


def test_a_fragment_without_its_denial_is_no_quote() -> None:
    assert check("reduce mortality in patients without oxygen", SOURCE).text == ""


@pytest.mark.parametrize("summary", ["", " \n", "…", "<" * 8_000])
def test_nothing_stands_of_nothing(summary: str) -> None:
    for source in (SOURCE, Passage(id="p:2", text="<" * 9_000)):
        assert check(summary, source).text == ""


@given(text=medical)
def test_a_passage_bears_out_its_own_sentences(text: str) -> None:
    passage = Passage(id="p:1", text=text)
    for sentence in split(text):
        assert bears_out(passage, sentence.of(text))
    assert check(text, passage).dropped == 0
