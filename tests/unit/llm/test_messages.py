"""Texts of messages, in all the forms that servers with OpenAI's API have for them."""

from __future__ import annotations

from typing import Any

import pytest

from posology.llm.providers.replies.messages import Said, said_in


def call(arguments: Any) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "Reply", "arguments": arguments}}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "yes"}, "yes"),
        ({"content": None}, ""),
        ({}, ""),
        ({"content": [{"type": "text", "text": "yes"}]}, "yes"),
        ({"content": [{"type": "output_text", "text": "y"}, {"type": "text", "text": "es"}]}, "yes"),
        ({"content": ["y", "es"]}, "yes"),
        ({"content": []}, ""),
        ({"content": {"type": "text", "text": "yes"}}, "yes"),
        ({"content": [{"type": "thinking", "thinking": "no"}, {"type": "text", "text": "yes"}]}, "yes"),
        ({"content": [{"type": "reasoning", "text": "no"}, {"type": "text", "text": "yes"}]}, "yes"),
        ({"content": [{"thought": True, "text": "no"}, {"text": "yes"}]}, "yes"),
        ({"content": {"verdict": True}}, '{"verdict": true}'),
        ({"content": {"text": "yes", "type": "trial"}}, '{"text": "yes", "type": "trial"}'),
        ({"content": None, "tool_calls": [call('{"verdict": true}')]}, '{"verdict": true}'),
        ({"content": "", "tool_calls": [call({"verdict": True})]}, '{"verdict": true}'),
        # two calls are no reply, nor is one beside a text
        ({"content": None, "tool_calls": [call("{}"), call("{}")]}, ""),
        ({"content": "yes", "tool_calls": [call("{}")]}, "yes"),
    ],
)  # fmt: skip
def test_the_text_is_found(message: dict[str, Any], text: str) -> None:
    said = said_in(message)
    assert said is not None
    assert (said.text, said.refused, said.misplaced) == (text, False, "")


@pytest.mark.parametrize(
    "content", [7, True, [1], [{"type": "image_url", "image_url": {}}], [{"type": "text", "text": 7}]]
)  # fmt: skip
def test_other_content_is_no_text(content: Any) -> None:
    assert said_in({"content": content}) is None


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "refusal": "I cannot."},
        {"content": "yes", "refusal": "I cannot."},
        {"content": [{"type": "refusal", "refusal": "I cannot."}]},
    ],
)
def test_a_refusal_is_the_text(message: dict[str, Any]) -> None:
    assert said_in(message) == Said(text="I cannot.", refused=True)


@pytest.mark.parametrize("content", [None, "", " \n", []])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
@pytest.mark.parametrize("reasoning", ['{"a": 1}', 'So: {"a": 1}\n', '```json\n{"a": 1}\n```'])
def test_an_object_in_the_field_of_reasoning_is_misplaced(
    content: Any, field: str, reasoning: str
) -> None:
    said = said_in({"content": content, field: reasoning})
    assert said is not None
    assert f"in its field {field}," in said.misplaced
    assert not said.text.strip()


def test_an_object_in_a_part_of_reasoning_is_misplaced_too() -> None:
    said = said_in(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "{}"}]}]}
    )
    assert said is not None
    assert "in a part of its content," in said.misplaced


@pytest.mark.parametrize(
    "message",
    [
        {"content": "yes", "reasoning_content": '{"a": 1}'},
        {"content": "", "reasoning_content": 'Of the form {"a": 1}, so'},
        {"content": "", "reasoning_content": None},
        {"content": "", "reasoning": {"effort": "low"}},
    ],
)
def test_other_reasoning_is_not(message: dict[str, Any]) -> None:
    said = said_in(message)
    assert said is not None
    assert said.misplaced == ""
