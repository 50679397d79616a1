"""Remarks under an estimate."""

from __future__ import annotations

import pytest

from orchestrator.cli.money.estimate_view import reasons


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai:gpt-6-luna", True),
        ("anthropic:claude-opus-5-5", True),
        ("openai:gpt-4o-mini", False),
        ("anthropic:claude-haiku-4-5", False),
        ("offline:extractive", False),
        ("openai:unheard-of", False),
    ],
)
def test_a_model_that_reasons_is_named(model: str, expected: bool) -> None:
    assert reasons(model) is expected
