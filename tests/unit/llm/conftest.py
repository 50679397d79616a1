"""A call to ask with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from posology.query import make_query
from posology.types import Call, Message, PromptId, Role, Stage


@pytest.fixture
def make_call() -> Callable[..., Call]:
    def make(**changes: Any) -> Call:
        call = Call(
            stage=Stage.ANSWER,
            model="openai:gpt-4o-mini",
            query=make_query("Does aspirin prevent stroke?"),
            excerpts=(),
            messages=(
                Message(role=Role.SYSTEM, content="Answer from the passages."),
                Message(role=Role.USER, content="Does aspirin prevent stroke?"),
            ),
            prompt=PromptId(name="answer", digest="0" * 16),
            max_tokens=200,
        )
        return replace(call, **changes)

    return make
