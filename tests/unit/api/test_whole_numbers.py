"""Whole numbers in JSON: 3.0 is an integer by JSON Schema, as the published schemas say; "3" and 3.5 are none."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from orchestrator.api.bodies import parse_json
from orchestrator.api.chat.request import ChatRequest
from orchestrator.api.mcp.tools import OFFERS
from orchestrator.question.request import JobRequest, SearchRequest
from orchestrator.settings import Settings
from posology.errors import InvalidQuery

ASKED = {"model": "posology", "messages": [{"role": "user", "content": "Does it?"}]}


@pytest.mark.parametrize("k", [3, 3.0, "3", 3.5, True, -3.0, 1e300])
def test_a_tool_takes_what_its_schema_allows(k: Any) -> None:
    offer, sent = OFFERS["search"], {"query": "salt", "k": k}
    schema = offer.tool("search").input_schema
    if jsonschema.Draft202012Validator(schema).is_valid(sent):
        found = offer.parse(sent)
        assert isinstance(found, SearchRequest)
        assert (found.k, type(found.k)) == (3, int)
    else:
        with pytest.raises(InvalidQuery, match="k"):
            offer.parse(sent)
    assert (k == 3 and not isinstance(k, str)) is jsonschema.Draft202012Validator(schema).is_valid(
        sent
    )


def test_so_do_the_bodies_of_requests() -> None:
    body = {"question": "?", "k": 8.0, "max_cost_usd": 0.25, "filters": {"since": 2000.0}}
    found = parse_json(json.dumps(body).encode(), JobRequest)
    assert (found.k, str(found.max_cost_usd)) == (8, "0.25")
    assert found.filters is not None
    assert found.filters.since == 2000
    for wrong in ("8", 8.5):
        with pytest.raises(InvalidQuery, match="k"):
            parse_json(json.dumps(body | {"k": wrong}).encode(), JobRequest)


@pytest.mark.parametrize(
    ("more", "job"),
    [
        ({"max_tokens": 512.0}, {"max_tokens": 512}),
        ({"max_completion_tokens": 512.0, "n": 1.0}, {"max_tokens": 512}),
        ({"posology": {"k": 4.0, "filters": {"since": 1990.0}}}, {"k": 4}),
    ],
)
def test_so_do_chat_completions(more: dict[str, Any], job: dict[str, Any]) -> None:
    asked = parse_json(json.dumps(ASKED | more).encode(), ChatRequest)
    found = asked.to_job(Settings(), deadline=60)
    assert {name: getattr(found, name) for name in job} == job


@pytest.mark.parametrize("value", ["512", 512.5, 5.0, True])
def test_other_numbers_are_refused_as_before(value: Any) -> None:
    with pytest.raises(InvalidQuery, match="max_"):
        parse_json(json.dumps(ASKED | {"max_tokens": value}).encode(), ChatRequest).to_job(
            Settings(), deadline=60
        )
