"""One definition of a request: every surface has its fields, types and descriptions."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import pytest
import typer
from annotated_types import Ge, Le
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient

from orchestrator.api.routes.batches import row_defaults
from orchestrator.cli.app import app
from orchestrator.cli.question_options import option
from orchestrator.question.request import (
    ALONE,
    NO_DEFAULT,
    AskRequest,
    JobRequest,
)
from orchestrator.question.sent import FeedbackRequest, FiltersRequest
from orchestrator.settings import Settings
from orchestrator.tables.served.request import TableRequest
from orchestrator.watches.request import WatchRequest
from posology.errors import InvalidQuery
from posology.published.base import descriptions
from strategies import STRATEGIES

#: all fields that a request has on the command line or in a query: filters stand one by one
FIELDS = {**JobRequest.model_fields, **FiltersRequest.model_fields}
COMMANDS = {
    # --index is the command's own, and takes the name of a collection, too
    "ask": {"question", "deadline_seconds", "collection"} | ALONE,
    "submit": {"question"},
    "watch": {"question", *WatchRequest.without},
    "batch": NO_DEFAULT,
    "estimate": NO_DEFAULT | {"collection"},
}


def described(name: str) -> str:
    return {**descriptions(JobRequest), **descriptions(FiltersRequest)}[name]


@pytest.mark.parametrize("field", ["model", "support_model"])
def test_only_the_operator_names_a_file_of_a_model(field: str) -> None:
    settings = Settings(POSOLOGY_MODEL="gguf:/srv/a.gguf")
    asked = {"question": "Is it so?", "support": "model"}
    JobRequest.parse({**asked, field: "gguf:/srv/a.gguf"}).settled(settings)
    with pytest.raises(InvalidQuery, match="operator's choice"):
        JobRequest.parse({**asked, field: "gguf:/srv/b.gguf"}).settled(settings)


@pytest.mark.parametrize("model", [JobRequest, WatchRequest, FiltersRequest, FeedbackRequest])
def test_every_field_is_described_with_its_default(model: Any) -> None:
    texts = descriptions(model)
    for name, field in model.model_fields.items():
        assert texts[name], name
        assert field.is_required() or "Default: " in texts[name], name
        if type(field.default) in (int, float):
            assert f"Default: {field.default:g}" in texts[name]
        for bound in field.metadata:
            if name != "max_cost_usd" and isinstance(bound, Le) and "index" not in name:
                assert f"{bound.le:.10g}" in texts[name], name


def test_a_description_names_every_strategy_and_mode() -> None:
    assert all(name in described("strategy") for name in STRATEGIES)
    schema = JobRequest.model_json_schema()["properties"]["mode"]
    assert all(mode in described("mode") for mode in schema["enum"])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_commands_options_are_the_fields_of_a_request(command: str) -> None:
    found = typer.main.get_command(app)
    options = {p.name: p for p in found.commands[command].params}  # type: ignore[attr-defined]
    for name in FIELDS.keys() - COMMANDS[command] - {"filters"}:
        shown = options[name].help
        assert shown.removesuffix(" Repeat for several.") == described(name)
        assert options[name].default in (None, False)


@pytest.mark.parametrize("name", ["k", "keep", "max_tokens", "partition_size", "deadline_seconds"])
def test_an_options_bounds_are_the_fields_bounds(name: str) -> None:
    bounds = {type(bound): bound for bound in FIELDS[name].metadata}
    made = option(name)
    assert (made.min, made.max) == (bounds[Ge].ge, bounds[Le].le)


def test_a_batchs_query_parameters_are_the_fields_of_a_request() -> None:
    parameters = inspect.signature(row_defaults).parameters
    assert set(parameters) == FIELDS.keys() - NO_DEFAULT - {"filters"}
    for name, parameter in parameters.items():
        *_, query = parameter.annotation.__metadata__
        assert query.description == described(name)


def test_defaults_in_a_query_are_a_request() -> None:
    service = FastAPI()

    @service.get("/")
    def read(found: Annotated[dict[str, Any], Depends(row_defaults)]) -> dict[str, Any]:
        return JobRequest.parse({"question": "Why?", **found}).model_dump(exclude_unset=True)

    client = TestClient(service)
    assert client.get("/").json() == {"question": "Why?"}
    query = (
        "mode=bm25&keep=0.5&strategy=compressed&retracted=true&index_version=3&partition_size=2"
        "&compressor=pruner&since=2010&mesh=Aspirin&mesh=Humans&unknown=1&k=3"
    )
    assert client.get(f"/?{query}").json() == {
        "question": "Why?",
        "mode": "bm25",
        "keep": 0.5,
        "strategy": "compressed",
        "retracted": True,
        "index_version": 3,
        "partition_size": 2,
        "compressor": "pruner",
        "k": 3,
        "filters": {"since": 2010, "mesh": ["Aspirin", "Humans"]},
    }
    assert client.get("/?k=0").status_code == 422
    assert client.get("/?since=1").status_code == 422


def test_a_job_asks_what_a_question_in_process_asks() -> None:
    only = JobRequest.model_fields.keys() - AskRequest.model_fields.keys()
    assert only == {"deadline_seconds", "collection"} | ALONE
    for name, field in AskRequest.model_fields.items():
        assert repr(JobRequest.model_fields[name]) == repr(field)


@pytest.mark.parametrize("asked", [JobRequest, TableRequest])
def test_a_request_to_the_queue_names_no_file_of_its_own(asked: Any) -> None:
    """A key is no right to have the workers open any file."""
    own = Settings(model="gguf:/models/own.gguf")
    given = {"question": "Does it?"} if asked is JobRequest else {"documents": ["pmid:1"]}
    with pytest.raises(InvalidQuery, match="operator's choice"):
        asked.model_validate({**given, "model": "gguf:/etc/passwd"}).settled(own)
    for model in ({}, {"model": own.model}):
        assert asked.model_validate({**given, **model}).settled(own).model == own.model
