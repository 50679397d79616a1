"""Effort by stage, and the room that it takes in a reply's bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from posology.errors import InvalidQuery
from posology.llm.models.effort import (
    STAGES,
    check_effort,
    effort_of,
    larger_bound,
    parse_effort,
    reasoning_tokens,
)
from posology.types import Effort, Stage
from tests.support.calls import a_call


@pytest.mark.parametrize(
    ("model", "answer", "extract"),
    [
        ("openai:gpt-6-luna", "low", "none"),
        ("openai:gpt-5-mini", "low", "minimal"),
        ("openai:o3", "low", "low"),
        ("anthropic:claude-haiku-5-5", "low", "none"),
        ("anthropic:claude-opus-5-5", "low", "low"),
        ("openai:gpt-4o", None, None),
        ("anthropic:claude-haiku-4-5", None, None),
        ("openai:unheard-of", None, None),
    ],
)
def test_answers_reason_a_little_and_extracts_as_little_as_can_be(
    model: str, answer: Effort | None, extract: Effort | None
) -> None:
    assert effort_of(model, Stage.ANSWER) == effort_of(model, Stage.REDUCE) == answer
    for stage in (Stage.EXTRACT, Stage.COMPRESS, Stage.LABEL):
        assert effort_of(model, stage) == extract


def test_a_request_sets_all_stages_or_some() -> None:
    assert parse_effort("high") == dict.fromkeys(STAGES, "high")
    assert parse_effort(" answer = Medium ,extract=none") == {
        Stage.ANSWER: "medium",
        Stage.EXTRACT: "none",
    }
    asked = "answer=high"
    assert effort_of("openai:gpt-6-luna", Stage.ANSWER, asked) == "high"
    assert effort_of("openai:gpt-6-luna", Stage.REDUCE, asked) == "low"
    # a level of a server whose models the table lacks is sent as it is
    assert effort_of("openai:unheard-of", Stage.ANSWER, asked) == "high"
    # a setting for all models: the highest level that this one has, up to the one asked for
    assert effort_of("openai:gpt-5", Stage.ANSWER, "max") == "high"
    assert effort_of("openai:gpt-5", Stage.ANSWER, "none") == "minimal"
    # a parameter that the model would refuse is not sent
    assert effort_of("openai:gpt-4o", Stage.ANSWER, "none") is None


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "most",
        "answer=",
        "answer=most",
        "embed=low",
        "answer=low,answer=low",
        "=low",
        "answer=low,",
    ],
)
def test_what_is_no_effort_is_refused(asked: str) -> None:
    with pytest.raises(InvalidQuery) as caught:
        parse_effort(asked)
    assert caught.value.field == "effort"


def test_a_level_that_the_model_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(InvalidQuery, match="minimal, low, medium, high") as caught:
        check_effort("openai:gpt-5", "xhigh")
    assert caught.value.field == "effort"
    check_effort("openai:gpt-5", "none")
    check_effort("openai:unheard-of", "xhigh")
    check_effort("openai:gpt-5", None)
    with pytest.raises(InvalidQuery, match="takes no effort"):
        check_effort("openai:gpt-4o", "high")


def test_room_grows_with_effort_and_there_is_none_without_reasoning() -> None:
    levels: list[Effort] = ["none", "low", "medium", "high", "xhigh", "max"]
    rooms = [reasoning_tokens("openai:gpt-6-luna", level) for level in levels]
    assert rooms == sorted(set(rooms))
    assert rooms[0] == 0
    assert reasoning_tokens("openai:gpt-4o", None) == 0
    # these follow an effort, and do not think unless a request asks them to
    assert reasoning_tokens("anthropic:claude-opus-4-7", "max") == 0
    assert reasoning_tokens("openai:gpt-5", "minimal") > 0
    assert reasoning_tokens("openai:unheard-of", None) == 0


def test_a_second_call_has_a_larger_bound_where_the_model_may_have_reasoned() -> None:
    call = replace(a_call(), max_tokens=1_000)
    assert larger_bound(replace(call, model="openai:gpt-4o")) is None
    assert larger_bound(replace(call, model="openai:gpt-6-luna", effort="none")) is None
    assert larger_bound(replace(call, model="openai:gpt-6-luna", effort="low")) == 4_000
    assert larger_bound(replace(call, model="openai:unheard-of")) == 4_000
    full = replace(call, model="openai:gpt-6-luna", effort="max", max_tokens=128_000)
    assert larger_bound(full) is None
