"""Examples, problems and bodies of the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from orchestrator.api import problems
from posology import errors
from posology.errors import PosologyError
from posology.published.problems import MEDIA_TYPE, urn

JSON = "application/json"
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
ANSWER: dict[str, Any] = {
    "status": "refused",
    "question": REQUEST["question"],
    "form": "yes_no_maybe",
    "model": "offline:extractive",
    "answer": None,
    "choice": None,
    "refusal": "No passage was found for this question.",
    "evidence": [],
    "dropped_quotes": 0,
    "notes": [],
    "conflicts": [],
    "coverage": None,
    "strategy": "direct",
    "decision": {
        "dose": {"strategy": "direct"},
        "policy": "router",
        "reason": "no passage was found",
    },
    "spending": QUEUED["spending"],
    "retrieved": [],
    "index": "index@17",
    "retrieval_seconds": 0.02,
    "seconds": 0.02,
}
#: schema of one event; OpenAPI 3.1 cannot describe a stream
EVENT: dict[str, Any] = {
    "schema": {
        "type": "object",
        "required": ["id", "event", "data"],
        "properties": {
            "id": {"type": "string", "description": "Id of the event."},
            "event": {"type": "string", "description": "Type of the event."},
            "data": {
                "type": "string",
                "description": "The event as JSON.",
                "contentMediaType": JSON,
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
    "state": "running",
    "cancelled": None,
    "total": 2,
    "rejected": 1,
    "states": {"queued": 1},
    "known_cost_usd": "0",
    "unknown_costs": 0,
    "over": False,
}
CANCELLED_BATCH: dict[str, Any] = {
    **BATCH_OUTPUT,
    "state": "cancelled",
    "cancelled": "2026-01-15T09:31:00Z",
    "states": {"cancelled": 1},
    "over": True,
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
            "message": "the question is empty",
            "exit_code": 3,
            "details": {"field": "question", "line": 2},
            "spending": None,
        },
    },
]

#: problems of HTTP itself, by status: name, title, detail
_OF_HTTP: Mapping[int, tuple[str, str, str]] = {
    400: (
        "MalformedBody",
        "The body cannot be read",
        "the body is not JSON: EOF at line 1 column 0",
    ),
    408: (
        "UploadTooSlow",
        "The upload took too long",
        "the batch must arrive within 300 s: split it",
    ),
    413: (
        "BodyTooLarge",
        "The body is too large",
        "the body has more than 1048576 bytes: split it",
    ),
    429: (
        "TooManyEstimates",
        "Too many estimates are under way",
        "1 of this tenant are under way: retry later",
    ),
    415: (
        "UnsupportedMediaType",
        "The media type of the body is not supported",
        "unsupported Content-Type 'text/html': send application/json",
    ),
    500: (
        "Defect",
        "A defect of Posology",
        "this is a defect of the service: report it with the instance id",
    ),
    403: (
        "NotYourTenant",
        "The API key belongs to another tenant",
        "X-Posology-Tenant names another tenant than the API key's: omit the header",
    ),
    507: (
        "DiskFull",
        "The service has no room for the file",
        "the disk for uploads is full or read-only: ask the operator of this service",
    ),
    503: ("StoreUnavailable", "Redis is unreachable", "try again"),
}
#: example of an exhausted budget
EXHAUSTED = errors.BudgetExhausted(
    "the day's budget of $5 has $0.0003 left, and this call may cost $0.0012: raise the limit by at least "
    "$0.0009, or wait until 2026-01-16 00:00 UTC",
    scope="day",
    cap=Decimal(5),
    spent=Decimal("4.9997"),
    reserved=Decimal(0),
    asked=Decimal("0.0012"),
    resets=datetime(2026, 1, 16, tzinfo=UTC),
)
NOT_ALLOWED = errors.ModelNotAllowed(
    "the tenant acme may not use openai:gpt-6-sol: choose an allowed model, or have it allowed",
    model="openai:gpt-6-sol",
)
FULL = errors.QueueFull(
    "199,990 of 200,000 jobs of acme wait, and this submission has 100: wait for jobs to end, send fewer, or ask "
    "for a higher limit",
    limit="queued",
    allowed=200_000,
    used=199_990,
    asked=100,
    retry_after=30.0,
)
#: beginnings of exports by media type
_EXPORTS: dict[str, Any] = {
    "text/markdown": "## Does aspirin reduce the risk of preeclampsia?\n",
    "text/csv": "question,status,choice,answer,source\r\n",
    "application/x-research-info-systems": "TY  - JOUR\nAN  - 10051933\nER  - \n",
    "application/x-bibtex": "@article{pmid_10051933,\n  pmid = {10051933},\n}\n",
    "application/vnd.citationstyles.csl+json": [{"id": "pmid:10051933", "type": "article-journal"}],
}
_MEANINGS = {
    400: "The body cannot be read.",
    401: "The API key is missing or not valid.",
    402: "The tenant's remaining budget is too small.",
    403: "The tenant may not do this.",
    404: "The id is unknown or expired.",
    408: "The body took too long to arrive.",
    409: "The request conflicts with the current state.",
    413: "The body is too large.",
    415: "The media type of the body is not supported.",
    422: "A field of the request is invalid; `field` names it.",
    429: "The tenant has too much under way; `Retry-After` says when to retry.",
    500: "A defect of the service.",
    502: "A dependency of the service failed.",
    503: "The service is temporarily unavailable; `Retry-After` says when to retry.",
    504: "The deadline of the job has passed.",
    507: "The service has no room for the body.",
}


def fails(*kinds: int | PosologyError) -> Responses:
    """Return the problem responses of an operation; every operation may answer 422, 500 and 503.

    Args:
        kinds: errors as examples, or statuses of HTTP's own problems.
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
        scheme = {"schema": {"type": "string"}, "description": "Authentication scheme: Bearer."}
        found["headers"] = {"WWW-Authenticate": scheme}
    if status in (429, 503):
        seconds = {"schema": {"type": "integer"}, "description": "Seconds to wait before a retry."}
        found["headers"] = {"Retry-After": seconds}
    return found


def _example(kind: int | PosologyError) -> tuple[str, dict[str, Any]]:
    if isinstance(kind, PosologyError):
        name = type(kind).__name__
        title = (type(kind).__doc__ or "").splitlines()[0].rstrip(".")
        status = problems.status_of(type(kind)) or 500
        details = problems.members(kind.details)
        fields = {
            "detail": kind.message,
            **json.loads(json.dumps(details, default=problems.as_text)),
        }
    else:
        (name, title, detail), status = _OF_HTTP[kind], kind
        fields = {"detail": detail}
    return name, {"type": urn(name), "title": title, "status": status, **fields}


def shows(description: str, example: Any, **rest: Any) -> dict[str, Any]:
    """Return a JSON response with its example."""
    # as text, because FastAPI drops nulls; `openapi.document` reads it again
    content = {JSON: {"example": json.dumps(example)}}
    return {"description": description, "content": content, **rest}


def also(response: dict[str, Any], media: str, example: Any) -> dict[str, Any]:
    """Return the response with another media type in addition: text, or a JSON array by the example of one."""
    array = {"type": "array", "items": {"type": "object"}}
    schema = array if isinstance(example, list) else {"type": "string"}
    content = {"schema": schema, "example": example}
    return {**response, "content": {**response["content"], media: content}}


def exported(response: dict[str, Any]) -> dict[str, Any]:
    """Return the response with the media types of exports in addition."""
    for media, example in _EXPORTS.items():
        response = also(response, media, example)
    return response


def takes(model: type[BaseModel], example: Any) -> dict[str, Any]:
    """Return a JSON body that a route reads itself."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    content = {JSON: {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}
