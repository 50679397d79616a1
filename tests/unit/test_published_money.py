"""Money has one published form."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.api import problems
from orchestrator.api.app import create_app
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from posology import errors
from posology.published.base import dollars_text
from posology.published.calls import ErrorBody


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "0"),
        ("0.00", "0"),
        ("0E-17", "0"),
        ("-0.00", "0"),
        ("1E+3", "1000"),
        ("100", "100"),
        ("0.000480", "0.00048"),
        ("1E-9", "0.000000001"),
        ("-2.50", "-2.5"),
        ("12345678901234567890123456789.10", "12345678901234567890123456789.1"),
    ],
)
def test_dollars_have_one_form(amount: str, text: str) -> None:
    assert dollars_text(Decimal(amount)) == text


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12))
def test_no_amount_is_changed_and_equal_amounts_are_equal_texts(amount: Decimal) -> None:
    text = dollars_text(amount)
    assert Decimal(text) == amount
    assert "E" not in text
    assert dollars_text(amount * Decimal("1.000")) == text


def test_requests_and_errors_use_it() -> None:
    request = JobRequest.model_validate({"question": "Is it?", "max_cost_usd": "0.50"})
    assert request.model_dump(mode="json")["max_cost_usd"] == "0.5"
    error = errors.BudgetExhausted(
        "no", scope="day", cap=Decimal("5.00"), spent=Decimal("0E-9"), reserved=Decimal(0),
        asked=Decimal("1E-7"), resets=None,
    )  # fmt: skip
    body = ErrorBody(
        type="BudgetExhausted", message="no", exit_code=11, details=error.details, spending=None
    )
    wanted = {"cap": "5", "spent": "0", "asked": "0.0000001"}
    assert wanted.items() <= body.model_dump(mode="json")["details"].items()
    sent = problems.of_error(error).body
    for name, text in wanted.items():
        assert f'"{name}":"{text}"'.encode() in bytes(sent)


def amounts(node: Any) -> list[str]:
    if isinstance(node, list):
        return [found for one in node for found in amounts(one)]
    if not isinstance(node, dict):
        return []
    own = [v for k, v in node.items() if k.endswith("_usd") and isinstance(v, str)]
    return own + [found for one in node.values() for found in amounts(one)]


def test_every_example_of_the_document_shows_it() -> None:
    found = amounts(create_app(Settings()).openapi())
    assert len(found) > 20
    assert [text for text in found if dollars_text(Decimal(text)) != text] == []
