from __future__ import annotations

import json
from pathlib import Path

import pytest

from posology.query import MAX_QUESTION
from posology.text.follow_ups import continued, stands_alone

FIRST = "Does low-dose aspirin prevent pre-eclampsia?"
PAIRS = Path(__file__).parents[3] / "evals" / "data" / "follow_ups.jsonl"


@pytest.mark.parametrize(
    "question",
    [
        "And in children?", "What about ibuprofen?", "What dose?", "Does it also help in twin pregnancies?", "Is that safe?",
        "Who should not take it?", "How large was the effect?", "What are the alternatives?", "Which antibiotics interact with it?",
        "Any side effects?", "Does the same hold for older women?", "why?", "",
    ],
)  # fmt: skip
def test_what_continues_a_question(question: str) -> None:
    assert not stands_alone(question)
    assert continued([FIRST, question]) == [FIRST, question]


@pytest.mark.parametrize(
    "question",
    [
        "Does coffee raise blood pressure?", "What is sepsis?", "How is gout treated?", "metformin lactic acidosis",
        "Is it safe to give ibuprofen with warfarin?", "Does it matter which statin is used after a heart attack?",
        "Do SGLT2 inhibitors lower the risk that heart failure worsens?", "Does aspirin prevent pre-eclampsia in women who had it before?",
        "Do statins do what they promise in people over 80?",
    ],
)  # fmt: skip
def test_what_stands_alone(question: str) -> None:
    assert stands_alone(question)
    assert continued([FIRST, question]) == [question]


def test_a_chain_goes_back_to_the_last_question_that_stands_alone() -> None:
    turns = ["How is gout treated?", FIRST, "And in twins?", " At what dose? "]
    assert continued(turns) == [FIRST, "And in twins?", "At what dose?"]
    assert continued(["And in twins?"]) == ["And in twins?"]


def test_a_chain_has_an_end() -> None:
    assert len(continued(["And then?"] * 50)) == 4
    assert continued(["a" * MAX_QUESTION, "And in twins?"]) == ["And in twins?"]


def test_the_written_pairs() -> None:
    """A fall of these would be seen in ``python -m evals.follow_ups`` as answers that are not found."""
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    assert all(stands_alone(row["then"]) for row in rows if row["alone"])
    missed = [row["then"] for row in rows if not row["alone"] and stands_alone(row["then"])]
    assert len(missed) <= 5
