from __future__ import annotations

from typing import Any

import pytest

from orchestrator.question.request import AskRequest, JobRequest
from orchestrator.settings import load_settings
from posology.errors import InvalidQuery
from posology.types import Form


def test_defaults_come_from_the_settings() -> None:
    request = AskRequest.parse({"question": "Why?"}).to_request(load_settings())
    assert request.model == "offline:extractive"
    assert request.max_tokens is None
    assert request.k == 8
    assert request.query.form is Form.FREE


def test_what_is_given_wins() -> None:
    given = {
        "question": "Which?",
        "options": {"A": "one", "B": "two"},
        "model": "openai:x",
        "k": 3,
        "mode": "dense",
        "max_tokens": 100,
    }
    request = AskRequest.parse(given).to_request(load_settings())
    assert request.query.choices == ("A", "B")
    assert (request.model, request.k, request.mode, request.max_tokens) == (
        "openai:x", 3, "dense", 100,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({}, "question"),
        ({"question": 5}, "question"),
        ({"question": "Why?", "k": 0}, "k"),
        ({"question": "Why?", "k": 1000}, "k"),
        ({"question": "Why?", "mode": "magic"}, "mode"),
        ({"question": "Why?", "form": "essay"}, "form"),
        ({"question": "Why?", "budget": 1}, "budget"),
        ({"question": "Why?", "max_tokens": 63}, "max_tokens"),
        ({"question": "Why?", "max_tokens": 10**30}, "max_tokens"),
        ("Why?", "request"),
        (None, "request"),
        # what can be neither written nor shown
        ({"question": "a\0b"}, "question"),
        ({"question": "a", "options": {"A": "\ud800", "B": "x"}}, "options.A"),
        ({"question": "a", "model": "openai:\ud800"}, "model"),
        ({"question": "a", "model": "openai:" + "x" * 200}, "model"),
    ],
)
def test_a_wrong_request_names_its_field(data: Any, field: str) -> None:
    for request in (AskRequest, JobRequest):
        with pytest.raises(InvalidQuery) as caught:
            request.parse(data)
        assert caught.value.field == field


def test_a_question_that_does_not_fit_its_form_is_refused() -> None:
    request = AskRequest.parse({"question": "Which?", "form": "choice"})
    with pytest.raises(InvalidQuery, match="options"):
        request.to_request(load_settings())


def test_without_a_bound_each_stage_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = JobRequest.parse({"question": "Why?"})
    assert asked.to_request(load_settings()).max_tokens is None
    monkeypatch.setenv("POSOLOGY_MAX_TOKENS", "9000")
    assert asked.to_request(load_settings()).max_tokens == 9000
    assert asked.settled(load_settings()).max_tokens == 9000


@pytest.mark.parametrize("given", [{}, {"max_tokens": 100}])
def test_what_is_settled_means_the_same_whatever_is_configured_later(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    asked = JobRequest.parse({"question": "Why?", **given})
    request = asked.to_request(load_settings())
    settled = asked.settled(load_settings())
    monkeypatch.setenv("POSOLOGY_MAX_TOKENS", "9000")
    monkeypatch.setenv("POSOLOGY_MODEL", "openai:other")
    read = JobRequest.model_validate_json(settled.model_dump_json())
    assert read.as_settled() == request


def test_what_was_never_settled_is_not_read_as_if_it_were() -> None:
    with pytest.raises(ValueError, match="model"):
        JobRequest.parse({"question": "Why?"}).as_settled()
