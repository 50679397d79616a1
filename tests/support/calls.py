"""Calls to ask with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posology.query import make_query
from posology.types import Call, Message, PromptId, Role, Stage

ASKED = "Does aspirin prevent stroke?"


def call_to(model: str, text: str = ASKED, *, system: str | None = None, **changes: Any) -> Call:
    """Return a call for an answer, with a message of the system if one is given."""
    messages = [Message(role=Role.USER, content=text)]
    if system is not None:
        messages.insert(0, Message(role=Role.SYSTEM, content=system))
    call = Call(
        stage=Stage.ANSWER,
        model=model,
        query=make_query(ASKED),
        excerpts=(),
        messages=tuple(messages),
        prompt=PromptId(name="answer", digest="0" * 16),
        max_tokens=100,
    )
    return replace(call, **changes)
