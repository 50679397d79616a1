"""A call of a model to ask with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posology.query import make_query
from posology.types import Call, Message, PromptId, Role, Stage

QUESTION = "Does aspirin prevent stroke?"
CALL = Call(
    stage=Stage.ANSWER,
    model="openai:gpt-4o-mini",
    query=make_query(QUESTION),
    excerpts=(),
    messages=(
        Message(role=Role.SYSTEM, content="Answer from the passages."),
        Message(role=Role.USER, content=QUESTION),
    ),
    prompt=PromptId(name="answer", digest="0" * 16),
    max_tokens=200,
)


def a_call(**changes: Any) -> Call:
    return replace(CALL, **changes)


def asks(*contents: str) -> tuple[Message, ...]:
    """Messages of a user."""
    return tuple(Message(role=Role.USER, content=content) for content in contents)
