"""A reply whose words give another verdict than its choice is marked."""

from __future__ import annotations

import pytest

from posology.query import make_query
from posology.types import Form
from strategies.verdict import verdict_of

YES_NO = make_query("Does it?", form=Form.YES_NO_MAYBE)
OPTIONS = make_query("Which?", options={"A": "Aspirin", "B": "Aspirin and heparin", "C": "Neither"})


@pytest.mark.parametrize(
    ("text", "choice", "worded"),
    [
        ("Yes, it does.", "no", "yes"),
        ("No. It does not.", "yes", "no"),
        ("**Yes** – it does", "no", "yes"),
        ("yes", "maybe", "yes"),
        ("Yes, it does.", "yes", None),
        ("No difference was found.", "yes", None),
        ("It does. Yes.", "no", None),
        ("", "no", None),
    ],
)
def test_yes_and_no(text: str, choice: str, worded: str | None) -> None:
    found = verdict_of(YES_NO, choice, text)
    assert (found.choice, found.worded, bool(found.notes)) == (choice, worded, worded is not None)


@pytest.mark.parametrize(
    ("text", "worded"),
    [
        ("B. It does.", "B"),
        ("(C) is right.", "C"),
        ("The answer is B.", "B"),
        ("Aspirin and heparin.", "B"),
        ("A.", None),
        ("Aspirin.", None),
        ("Aspirin and heparin are worse than aspirin.", None),
        ("A meta-analysis found it.", None),
        ("Both helped.", None),
        ("B. coli grew in all of them.", None),
        ("B. aspirin and heparin", "B"),
        ("B. because it helped", "B"),
        ("Option B helps more.", "B"),
        ("The best option is a statin.", None),
        ("Option B is right, since it helped.", "B"),
        ("b) it helped.", "B"),
    ],
)
def test_options(text: str, worded: str | None) -> None:
    assert verdict_of(OPTIONS, "A", text).worded == worded


@pytest.mark.parametrize(
    ("question", "text", "worded"),
    [
        ("Is mesothelioma caused by asbestos?", "Mesothelioma is caused by asbestos [p:1].", "yes"),
        ("Does aspirin reduce the risk of stroke?", "Aspirin reduced the risk of stroke.", "yes"),
        ("Does aspirin reduce the risk of stroke?", "Aspirin did not reduce stroke risk.", None),
        ("Does aspirin reduce strokes?", "Aspirin does not reduce strokes in adults.", "no"),
        ("Is aspirin not effective for pain?", "Aspirin is effective for pain.", "no"),
        # less, or more
        ("Does aspirin reduce the risk of stroke?", "Aspirin may reduce the risk of stroke.", None),
        ("Can aspirin potentially damage it?", "Aspirin potentially damages it.", "yes"),
        ("Does aspirin reduce strokes?", "Aspirin reduces strokes, but not in women.", None),
        ("Does aspirin reduce strokes?", "Aspirin rarely reduces strokes.", None),
        ("Is aspirin better than heparin?", "Heparin is better than aspirin.", None),
        ("Does aspirin reduce the risk of stroke?", "Aspirin raised the risk of stroke.", None),
        ("Does it help?", "It helps.", None),
        ("Does aspirin reduce strokes?", "", None),
    ],
)
def test_a_sentence_that_restates_the_question_gives_a_verdict(
    question: str, text: str, worded: str | None
) -> None:
    asked = make_query(question, form=Form.YES_NO_MAYBE)
    assert verdict_of(asked, "maybe", text).worded == worded
    assert verdict_of(asked, worded or "no", text).notes == ()
    # to be marked is not to be taken
    assert verdict_of(asked, None, text).choice is None


def test_without_a_verdict_of_its_own_a_reply_has_that_of_its_first_words() -> None:
    found = verdict_of(YES_NO, None, "Yes, it does.")
    assert (found.choice, found.worded) == ("yes", None)
    assert found.notes == ("The reply has no verdict of its own: “yes” is how its answer begins.",)
    other = verdict_of(YES_NO, None, "It does.")
    assert (other.choice, other.worded) == (None, None)
    assert other.notes == ("The model gave no verdict of yes, no, maybe.",)
    assert verdict_of(make_query("Why?"), "yes", "Yes.").notes == ()
