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
    ],
)
def test_options(text: str, worded: str | None) -> None:
    assert verdict_of(OPTIONS, "A", text).worded == worded


def test_without_a_verdict_of_its_own_a_reply_has_that_of_its_first_words() -> None:
    found = verdict_of(YES_NO, None, "Yes, it does.")
    assert (found.choice, found.worded) == ("yes", None)
    assert found.notes == ("The reply has no verdict of its own: “yes” is how its answer begins.",)
    other = verdict_of(YES_NO, None, "It does.")
    assert (other.choice, other.worded) == (None, None)
    assert other.notes == ("The model gave no verdict of yes, no, maybe.",)
    assert verdict_of(make_query("Why?"), "yes", "Yes.").notes == ()
