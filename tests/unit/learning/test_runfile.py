from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from orchestrator.training.paid.rows import Failed
from orchestrator.training.qtable.rows import calls_of, open_run, read_run
from tests.unit.learning.runs import asked, begin, replied

ROWS = (begin(), asked("q1", {0.1: "a", 1.0: "b"}), replied("a", "A"), replied("b", "B"))


def write(path: Path) -> bytes:
    with open_run(path) as run:
        run.write(*ROWS)
    return path.read_bytes()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.run.jsonl"
    write(path)
    found = read_run(path)
    assert found.begin == ROWS[0]
    assert list(found.questions.values()) == [ROWS[1]]
    assert (found.replies["a"], found.replies["b"]) == ROWS[2:]
    assert found.spent == Decimal("0.5")


def test_questions_are_those_of_the_last_begin_and_answers_of_all(tmp_path: Path) -> None:
    path = tmp_path / "t.run.jsonl"
    write(path)
    with open_run(path) as run:
        run.write(begin("openai:y"), asked("q2", {1.0: "b"}))
    found = read_run(path)
    assert list(found.questions) == ["q2"]
    assert set(found.replies) == {"a", "b"}


def test_a_failure_is_paid_for_and_forgotten_when_it_is_made_good(tmp_path: Path) -> None:
    path = tmp_path / "t.run.jsonl"
    failed = Failed(call="c", error="SchemaViolation", message="m", cost=Decimal("0.125"))
    with open_run(path) as run:
        run.write(*ROWS, failed)
        assert list(run.content.failures) == ["c"]
        run.write(replied("c", "C"))
        assert not run.content.failures
        assert run.content.spent == Decimal("0.875")


def test_a_call_that_two_actions_need_is_one() -> None:
    first = asked("q1", {0.0: None, 0.05: "a", 0.1: "a", 1.0: "b"})
    found = calls_of([first, asked("q2", {1.0: "b"})])
    assert list(found) == ["a", "b"]
    assert found["a"] == (first, first.arms[1])
    assert found["b"] == (first, first.arms[3])
