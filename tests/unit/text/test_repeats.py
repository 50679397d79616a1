"""What a model says twice is shown once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.text.repeats import echoes, endless, once, unlooped
from tests.support.growth import MOST, growth

CLAUSE = "aspirin reduces the risk of preeclampsia"
LONG = "Patients with a feeding tube were older and had fewer visits than patients without one, as was seen"


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("It helps. Costs rose. IT  helps!", "It helps. Costs rose."),
        ("The risk was lower. Also, risk is lower.", "The risk was lower."),
        # numbers, signs, negations and directions count
        ("It was 5 mg. It was 50 mg.", None),
        ("It was < 5 mg. It was 5 mg.", None),
        ("It helps. It does not help.", None),
        ("A is better than B. B is better than A.", None),
        ("It fell by 5 kg. It fell to 5 kg.", None),
        (f"Yes, {CLAUSE}, {CLAUSE}, {CLAUSE}.", f"Yes, {CLAUSE}."),
        # a reply that was cut within a round
        (f"Yes, {CLAUSE}, {CLAUSE}, {CLAUSE}, aspirin reduces the", f"Yes, {CLAUSE}."),
        (f"{CLAUSE}, and it is safe, " * 4, f"{CLAUSE}, and it is safe."),
        # twice may be meant
        (f"In women, {CLAUSE}, {CLAUSE}.", None),
        ("In A, five of ten died, in B, five of ten died, in C, five of ten died.", None),
        ("Doses were 5 mg, 5 mg, 5 mg.", None),
        ("", None),
    ],
)
def test_repetitions_are_left_out(text: str, short: str | None) -> None:
    assert once(text) == (text if short is None else short)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"text": "Yes. ' + f"{CLAUSE}, " * 20, True),
        # in the middle of a round
        ('{"text": "Yes. ' + f"{CLAUSE}, " * 20 + CLAUSE[:11], True),
        ('{"text": "Yes."' + " " * 600, True),
        # a round of two sentences that differ in a number: their common words stand in it twice
        ('{"text": "' + "".join(f"{LONG} in {n % 2 + 1} years. " for n in range(8)), True),
        ('{"text": "' + "".join(f"{LONG} in {n} years. " for n in range(8)), False),
        # a few rounds may end by themselves
        ('{"text": "Yes. ' + f"{CLAUSE}, " * 7, False),
        ('{"text": "Yes. ' + f"{CLAUSE}, " * 20 + "but it is not safe in ", False),
        ('{"text": "Yes. ' + " ".join(f"Trial {n} found it." for n in range(60)), False),
        ('{"verdicts": [' + '"supported", ' * 20, False),
        ('{"cells": [' + '{"value": null, "sentences": []}, ' * 40, False),
        ("", False),
        ("a", False),
    ],
)
def test_a_reply_without_an_end_is_known_while_it_is_written(text: str, found: bool) -> None:
    assert endless(text) is found


@pytest.mark.parametrize(
    ("reply", "question", "again"),
    [
        ("what", "Hobson argued that imperialism was an international what?", True),
        (
            "Some people describe what as imperialism.",
            "Some people describe what as imperialism?",
            True,
        ),
        ("What drug lowers the risk of stroke?", "Which drug lowers the risk of stroke?", False),
        # answers with words of the question alone
        ("Plasma fibrinogen is raised.", "Is plasma fibrinogen raised or lowered?", False),
        ("Yes, aspirin lowers the risk.", "Does aspirin lower the risk, and when?", False),
        (
            "Symptoms matter when a trial is considered",
            "Trials: do symptoms matter when a trial is considered?",
            False,
        ),
        ("", "What lowers the risk?", False),
    ],
)
def test_a_question_that_is_asked_again(reply: str, question: str, again: bool) -> None:
    assert echoes(reply, question) is again


@given(st.text(max_size=200))
def test_a_text_without_repetitions_stays_as_it_is_and_a_second_pass_changes_nothing(
    text: str,
) -> None:
    short = once(text)
    assert len(short) <= len(text) + 1
    assert unlooped(short) in (short, unlooped(unlooped(short)))


@given(st.text(min_size=1, max_size=50), st.text(max_size=50))
def test_what_is_endless_ends_in_equal_parts(part: str, before: str) -> None:
    text = before + part * (480 // len(part) + 8)
    assert endless(text) is ("{" not in part)


@pytest.mark.parametrize("part", [" ", "and ", "a, ", "It helps. ", "a b c, d, "])
def test_the_time_grows_with_the_text(part: str) -> None:
    assert growth(lambda n: once(part * n), 500) < MOST
