"""What the OpenAPI document says beyond what follows from the code: examples, problems, bodies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from orchestrator.api import problems
from orchestrator.question.request import FeedbackRequest, JobRequest
from orchestrator.settings import Auth
from posology import errors
from posology.budget.tenants.store import refused
from posology.errors import PosologyError
from posology.published.jobs import JobEvent
from posology.published.problems import MEDIA_TYPE, Problem, urn

_JSON = "application/json"
Responses = dict[int | str, dict[str, Any]]

JOB = "job_0199a1b2c3d45f6e7a8b9c0d1e2f"
REQUEST = {
    "question": "Does aspirin reduce the risk of preeclampsia?",
    "form": "yes_no_maybe",
    "k": 8,
}
SUMMARY: dict[str, Any] = {
    "id": JOB,
    "tenant": "acme",
    "state": "queued",
    "question": REQUEST["question"],
    "form": "yes_no_maybe",
    "model": "offline:extractive",
    "strategy": None,
    "created": "2026-01-15T09:30:00Z",
    "started": None,
    "ended": None,
    "deadline": "2026-01-15T09:45:00Z",
    "runs": 0,
    "losses": 0,
    "progress": None,
    "batch": None,
    "row": None,
    "known_cost_usd": "0",
    "unknown_costs": 0,
    "charged_usd": "0",
    "reserved_usd": "0",
    "cap_usd": None,
}
_USAGE = {
    "input": 0,
    "cache_read": 0,
    "cache_write_5m": 0,
    "cache_write_1h": 0,
    "output": 0,
    "reasoning": 0,
}
QUEUED: dict[str, Any] = {
    **SUMMARY,
    "request": {
        **REQUEST,
        "options": None,
        "model": "offline:extractive",
        "mode": "fused",
        "retracted": False,
        "max_tokens": None,
        "strategy": None,
        "partition_size": None,
        "max_cost_usd": None,
        "deadline_seconds": 900.0,
    },
    "decision": None,
    "result": None,
    "error": None,
    "cancellation": None,
    "spending": {
        "attempts": [],
        "usage": _USAGE,
        "usage_complete": True,
        "cost_usd": "0",
        "charged_usd": "0",
    },
    "feedback": None,
}
CANCELLED: dict[str, Any] = {
    **QUEUED,
    "state": "cancelled",
    "ended": "2026-01-15T09:30:04Z",
    "cancellation": {
        "calls_planned": None,
        "calls_made": 0,
        "calls_saved": None,
        "cost_saved_usd": None,
    },
}
#: OpenAPI 3.1 has no words for a stream; this is each of its events
EVENT: dict[str, Any] = {
    "schema": {
        "type": "object",
        "required": ["id", "event", "data"],
        "properties": {
            "id": {"type": "string"},
            "event": {"type": "string"},
            "data": {
                "type": "string",
                "contentMediaType": _JSON,
                "contentSchema": {"$ref": "#/components/schemas/JobEvent"},
            },
        },
    },
    "example": {
        "id": "1768469400000-0",
        "event": "state",
        "data": '{"id":"1768469400000-0","type":"state","at":"2026-01-15T09:30:00Z",'
        '"data":{"state":"queued"}}',
    },
}
BATCH = "batch_0199a1b2c3d45f6e7a8b9c0d1e2f"
BATCH_OUTPUT: dict[str, Any] = {
    "id": BATCH,
    "tenant": "acme",
    "created": "2026-01-15T09:30:00Z",
    "total": 2,
    "rejected": 1,
    "states": {"queued": 1},
    "known_cost_usd": "0",
    "unknown_costs": 0,
    "over": False,
}
ROWS: list[dict[str, Any]] = [
    {"row": 0, "id": 7, "job": JOB, "state": "queued", "result": None, "error": None},
    {
        "row": 1,
        "id": None,
        "job": None,
        "state": None,
        "result": None,
        "error": {
            "type": "InvalidQuery",
            "message": "the question is empty: give it some words",
            "exit_code": 3,
            "details": {"field": "text", "line": 2},
            "spending": None,
        },
    },
]

#: problems of HTTP itself, by status
_OF_HTTP: Mapping[int, tuple[str, str, str]] = {
    400: (
        "MalformedBody",
        "The body cannot be read",
        "the body is no JSON: EOF at line 1 column 0",
    ),
    413: (
        "BodyTooLarge",
        "The body is longer than is allowed",
        "the body is longer than 1048576 bytes: send less at once",
    ),
    415: (
        "UnsupportedMediaType",
        "The body is of a media type that is not accepted here",
        "send the body as application/json, and say so in Content-Type",
    ),
    500: (
        "Defect",
        "A defect of Posology",
        "this is a fault of the service: report it with the instance's id",
    ),
    403: (
        "NotYourTenant",
        "The API key is of another tenant",
        "X-Posology-Tenant names another tenant than the API key's: leave it out",
    ),
    503: ("StoreUnavailable", "Redis is out of reach", "try again"),
}
#: what a tenant is told that has no money left
EXHAUSTED = errors.BudgetExhausted(
    "the day's budget of $5 has $0.0003 left, and this call may cost $0.0012: raise the limit, or wait "
    "until 2026-01-16 00:00 UTC",
    scope="day",
    cap=Decimal(5),
    spent=Decimal("4.9997"),
    reserved=Decimal(0),
    asked=Decimal("0.0012"),
    resets=datetime(2026, 1, 16, tzinfo=UTC),
)
NOT_ALLOWED = errors.ModelNotAllowed(
    "the tenant acme may not use openai:gpt-4o: choose an allowed model, or have it allowed",
    model="openai:gpt-4o",
)
_MEANINGS = {
    400: "The body cannot be read.",
    401: "The API key is missing or not valid.",
    402: "The tenant's limits do not pay for it.",
    403: "The API key may not do this.",
    404: "There is none of that id (any more).",
    409: "What is asked does not fit what there is.",
    413: "The body is longer than is allowed.",
    415: "The body is of another media type.",
    422: "Something in the request is wrong; `field` says what.",
    500: "A defect of the service.",
    503: "The service cannot do this now; `Retry-After` says when to try again.",
}


def fails(*kinds: int | PosologyError) -> Responses:
    """The problems that an operation may answer with; 422, 500 and 503 may come from every one.

    Args:
        kinds: errors to show as examples, or statuses of HTTP's own problems.
    """
    shown: dict[int, dict[str, Any]] = {}
    generic = errors.InvalidQuery("limit: Input should be at most 500", field="limit")
    for kind in (*kinds, generic, 500, 503):
        name, example = _example(kind)
        shown.setdefault(example["status"], {}).setdefault(name, {"value": example})
    return {status: _problem(status, examples) for status, examples in sorted(shown.items())}


def _problem(status: int, examples: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    found: dict[str, Any] = {
        "description": _MEANINGS[status],
        "content": {MEDIA_TYPE: {"schema": schema, "examples": dict(examples)}},
    }
    if status == 401:
        found["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    if status == 503:
        seconds = {"schema": {"type": "integer"}, "description": "Seconds."}
        found["headers"] = {"Retry-After": seconds}
    return found


def _example(kind: int | PosologyError) -> tuple[str, dict[str, Any]]:
    if isinstance(kind, PosologyError):
        name = type(kind).__name__
        title = (type(kind).__doc__ or "").splitlines()[0].rstrip(".")
        status = problems.status_of(type(kind)) or 500
        fields = {"detail": kind.message, **json.loads(json.dumps(kind.details, default=str))}
    else:
        (name, title, detail), status = _OF_HTTP[kind], kind
        fields = {"detail": detail}
    return name, {"type": urn(name), "title": title, "status": status, **fields}


def shows(description: str, example: Any, **rest: Any) -> dict[str, Any]:
    """A response in JSON with its example."""
    # as text, since FastAPI drops what is null; `document` reads it again
    content = {_JSON: {"example": json.dumps(example)}}
    return {"description": description, "content": content, **rest}


def also(response: dict[str, Any], media: str, example: str) -> dict[str, Any]:
    """The same response as text of another media type, too."""
    text = {"schema": {"type": "string"}, "example": example}
    return {**response, "content": {**response["content"], media: text}}


def takes(model: type[BaseModel], example: Any) -> dict[str, Any]:
    """A body in JSON that a route reads by itself."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    content = {_JSON: {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if app.openapi_schema is None:
        made = FastAPI.openapi(app)
        _, extra = models_json_schema(
            [
                (JobRequest, "validation"),
                (FeedbackRequest, "validation"),
                (Problem, "serialization"),
                (JobEvent, "serialization"),
            ],
            ref_template="#/components/schemas/{model}",
        )
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        for name, schema in extra["$defs"].items():
            schemas.setdefault(name, schema)
        # FastAPI's own form of an error, which is never sent
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        for path in made["paths"].values():
            for operation in path.values():
                _secure(operation, optional=app.state.context.settings.auth is not Auth.KEYS)
                for response in operation["responses"].values():
                    content = response.get("content", {}).get(_JSON, {})
                    if "example" in content:
                        content["example"] = json.loads(content["example"])
        app.openapi_schema = made
    return app.openapi_schema


def _secure(operation: dict[str, Any], *, optional: bool) -> None:
    """Say what an operation that takes a key answers without a valid one."""
    if "security" not in operation:
        return
    if optional:
        operation["security"].append({})
    refusals: list[int | PosologyError] = [refused()]
    if operation["tags"] != ["operations"]:
        refusals += [403, errors.TenantDisabled("the tenant acme is disabled", tenant="acme")]
    found = {status: shown for status, shown in fails(*refusals).items() if status in (401, 403)}
    for status, shown in found.items():
        known = operation["responses"].setdefault(str(status), shown)
        if known is not shown:
            content = known["content"][MEDIA_TYPE]
            content["examples"] = shown["content"][MEDIA_TYPE]["examples"] | content["examples"]


def main() -> None:
    """Write the document to ``docs/openapi.json`` of the working directory."""
    from orchestrator.api.app import create_app
    from orchestrator.settings import Settings

    text = json.dumps(create_app(Settings()).openapi(), indent=2, ensure_ascii=False)
    Path("docs/openapi.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
