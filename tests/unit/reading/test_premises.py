"""Texts that claims are judged beside."""

from __future__ import annotations

from posology.text.sentences import split
from posology.types import Excerpt, Passage
from strategies.support.check import premise, surroundings

TEXT = "Stroke is common. Aspirin lowered it by 20%. It was cheap."
EXCERPT = Excerpt(passage=Passage(id="a", title="Aspirin", text=TEXT), sentences=split(TEXT))


def test_a_premise_has_no_marks_of_a_record_and_no_empty_part() -> None:
    assert (
        premise("It fell.", title="[Aspirin in stroke.]", before="")
        == "Aspirin in stroke. It fell."
    )
    assert premise(" It fell. ") == "It fell."


def test_a_part_of_a_sentence_stands_for_the_whole_one() -> None:
    start = TEXT.index("lowered")
    title, before, text = surroundings(EXCERPT, start, start + 7)
    assert (title, before.strip()) == ("Aspirin", "Stroke is common.")
    assert text.strip() == "Aspirin lowered it by 20%."


def test_the_first_sentence_has_none_before_it() -> None:
    _, before, text = surroundings(EXCERPT, 0, TEXT.index("It was"))
    assert (before, text.strip()) == ("", TEXT[: TEXT.index("It was")].strip())


def test_a_part_between_shown_sentences_is_taken_as_it_is() -> None:
    shown = Excerpt(passage=EXCERPT.passage, sentences=(EXCERPT.sentences[0], EXCERPT.sentences[2]))
    start = TEXT.index("Aspirin")
    _, before, text = surroundings(shown, start, start + 7)
    assert (before.strip(), text) == ("Stroke is common.", "Aspirin")
