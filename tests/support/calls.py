"""A call of a model to ask with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posology.query import make_query
from posology.types import Call, Message, PromptId, Role, Stage

ASKED = "Does aspirin prevent stroke?"
CALL = Call(
    stage=Stage.ANSWER,
    model="openai:gpt-4o-mini",
    query=make_query(ASKED),
    excerpts=(),
    messages=(
        Message(role=Role.SYSTEM, content="Answer from the passages."),
        Message(role=Role.USER, content=ASKED),
    ),
    prompt=PromptId(name="answer", digest="0" * 16),
    max_tokens=200,
)


def a_call(**changes: Any) -> Call:
    return replace(CALL, **changes)


def asks(*contents: str) -> tuple[Message, ...]:
    """Messages of a user."""
    return tuple(Message(role=Role.USER, content=content) for content in contents)


def call_to(model: str, text: str = ASKED, *, system: str | None = None, **changes: Any) -> Call:
    """A call of a model, with a message of the system if one is given."""
    first = () if system is None else (Message(role=Role.SYSTEM, content=system),)
    return a_call(
        **{"model": model, "messages": (*first, *asks(text)), "max_tokens": 100, **changes}
    )
