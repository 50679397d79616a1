"""Filters from what comes in as JSON to what is told of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.cli.ask.explanation import filters_in_words
from orchestrator.cli.question_options import FilterOptions
from orchestrator.question.request import AskRequest, JobRequest
from orchestrator.settings import Settings
from posology.errors import InvalidQuery
from posology.types import Filters

GIVEN = {
    "since": 2010,
    "until": 2020,
    "publication_types": ["Meta-Analysis"],
    "journals": [" Lancet ", "BMJ"],
    "mesh": ["Aspirin"],
    "languages": ["eng"],
}
MEANT = Filters(
    since=2010,
    until=2020,
    publication_types=("Meta-Analysis",),
    journals=("Lancet", "BMJ"),
    mesh=("Aspirin",),
    languages=("eng",),
)


def test_a_request_carries_its_filters() -> None:
    data = {"question": "Why?", "filters": GIVEN}
    assert AskRequest.parse(data).to_request(Settings()).filters == MEANT
    # as the API reads it
    asked = JobRequest.model_validate_json(json.dumps(data), strict=True)
    settled = JobRequest.model_validate_json(asked.settled(Settings()).model_dump_json())
    assert settled.as_settled().filters == MEANT


@pytest.mark.parametrize("filters", [None, {}, {"journals": []}])
def test_nothing_given_restricts_nothing(filters: Any) -> None:
    request = AskRequest.parse({"question": "Why?", "filters": filters}).to_request(Settings())
    assert request.filters == Filters()
    assert not request.filters


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"since": 2011, "until": 2010}, "filters"),
        ({"since": 20}, "filters.since"),
        ({"until": 2101}, "filters.until"),
        ({"since": "soon"}, "filters.since"),
        ({"journals": [""]}, "filters.journals.0"),
        ({"journals": ["  "]}, "filters.journals.0"),
        ({"journals": ["x" * 401]}, "filters.journals.0"),
        ({"mesh": ["a"] * 51}, "filters.mesh"),
        ({"mesh": "Aspirin"}, "filters.mesh"),
        ({"languages": ["e\0g"]}, "filters.languages.0"),
        ({"languages": ["\ud800"]}, "filters.languages.0"),
        ({"authors": ["x"]}, "filters.authors"),
        ([], "filters"),
    ],
)
def test_filters_that_cannot_be_are_refused_by_field(filters: Any, field: str) -> None:
    with pytest.raises(InvalidQuery) as raised:
        AskRequest.parse({"question": "Why?", "filters": filters})
    assert raised.value.field == field


def test_json_is_taken_at_its_word() -> None:
    with pytest.raises(ValidationError):
        JobRequest.model_validate_json(
            '{"question": "a", "filters": {"since": "2010"}}', strict=True
        )


def test_options_that_are_not_given_are_not_sent() -> None:
    assert FilterOptions().given() == {}
    assert FilterOptions(journals=[]).given() == {}
    given = FilterOptions(since=2010, mesh=["Aspirin"]).given()
    assert given == {"since": 2010, "mesh": ["Aspirin"]}


def test_they_are_told_in_words() -> None:
    assert filters_in_words(None) == filters_in_words(Filters()) == ""
    assert filters_in_words(MEANT) == (
        " (published 2010 to 2020; of type Meta-Analysis; in the journal Lancet or BMJ; "
        "under the MeSH heading Aspirin; in the language eng)"
    )
