from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.settings import Settings
from orchestrator.training.qtable.questions import Examples, read_examples
from posology.types import Form


def read(*rows: dict[str, Any] | bytes) -> Examples:
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    return read_examples(lines, Settings())


def test_questions_are_read_with_their_right_answers() -> None:
    found = read(
        {"question": "One?", "id": 7},
        b"",
        {"question": "Two?", "answer": " aspirin "},
        {"question": "Three?", "form": "yes_no", "answers": ["yes", "yes"]},
        {"question": "Four?", "options": {"A": "x", "B": "y"}, "answers": []},
    )
    assert not found.bad
    assert [(one.line, one.references) for one in found.good] == [
        (1, ()),
        (3, ("aspirin",)),
        (4, ("yes",)),
        (5, ()),
    ]
    assert [one.query.form for one in found.good[2:]] == [Form.YES_NO, Form.CHOICE]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (b"{no json", "not JSON"),
        (b"[1]", "got list"),
        (b"\xff", "not UTF-8"),
        ({"answer": "x"}, "question"),
        ({"question": " "}, "empty"),
        ({"question": "q", "k": 3}, "'k'"),
        ({"question": "q", "answer": 1}, "string"),
        ({"question": "q", "answers": "x"}, "list"),
        ({"question": "q", "answers": [" "]}, "empty"),
        ({"question": "q", "answers": ["\ud800"]}, "Unicode"),
        ({"question": "q", "answer": "x", "answers": ["y"]}, "not both"),
        ({"question": "q", "answer": "x" * 10_001}, "10,000"),
        ({"question": "q", "answers": [str(n) for n in range(101)]}, "100"),
        ({"question": "q", "form": "yes_no", "options": {"A": "x", "B": "y"}}, "no options"),
    ],
)
def test_a_bad_line_is_told_with_its_number_and_the_rest_goes_on(row: Any, said: str) -> None:
    found = read({"question": "Before?"}, row, {"question": "After?"})
    assert [one.line for one in found.good] == [1, 3]
    assert [one.line for one in found.bad] == [2]
    assert said in found.bad[0].reason


def test_a_question_that_stands_there_twice_is_asked_once() -> None:
    found = read({"question": "Same?", "answer": "a"}, {"question": " Same? ", "answer": "b"})
    assert [one.references for one in found.good] == [("a",)]
    assert "line 1" in found.bad[0].reason


def test_questions_of_another_form_are_others() -> None:
    found = read({"question": "Same?"}, {"question": "Same?", "form": "yes_no"})
    assert len({one.digest for one in found.good}) == 2
