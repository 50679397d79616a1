from __future__ import annotations

import io

import pytest
from rich.console import Console

from orchestrator.cli.ask.progress import line, shown_replies
from posology.llm.calls import ReplyProgress
from posology.types import Stage
from tests.support.calls import CALL


@pytest.mark.parametrize(
    ("stage", "now", "words"),
    [
        (Stage.ANSWER, ReplyProgress(), "answering"),
        (
            Stage.ANSWER,
            ReplyProgress(prompt=2_913, read=1_240),
            "answering · 1,240 of 2,913 prompt tokens read",
        ),
        (Stage.EXTRACT, ReplyProgress(prompt=9, read=9, written=64), "reading · 64 tokens written"),
        (Stage.REDUCE, ReplyProgress(written=1), "combining · 1 token written"),
        (Stage.LABEL, ReplyProgress(written=1_200), "label · 1,200 tokens written"),
    ],
)
def test_a_line_says_what_the_server_does(stage: Stage, now: ReplyProgress, words: str) -> None:
    assert line(stage, now) == words


def test_a_terminal_shows_it_while_the_question_is_answered() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with shown_replies(console) as told:
        assert told is not None
        told(CALL, ReplyProgress(written=64))
    assert isinstance(console.file, io.StringIO)
    assert "answering · 64 tokens written" in console.file.getvalue()


def test_without_a_terminal_nothing_is_asked_for() -> None:
    with shown_replies(Console(file=io.StringIO())) as told:
        assert told is None
