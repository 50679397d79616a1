"""Estimates over HTTP: the cost of questions before they are submitted."""

from __future__ import annotations

import json
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from orchestrator.api.bodies import no_json, parse_json, read_body, unless_left
from orchestrator.api.context import Context, Posology, Tenant
from orchestrator.api.examples import REQUEST, fails, shows
from orchestrator.api.routes.jobs import NO_COLLECTION, answered
from orchestrator.jobs.conversations import completed
from orchestrator.jobs.rows import Row, read_row
from orchestrator.question.estimates.rows import read_standing
from orchestrator.question.request import JobRequest
from posology import errors
from posology.published.estimates import EstimateOutput

router = APIRouter(prefix="/v1/estimate", tags=["estimates"])

#: maximum questions of one request
MAX_QUESTIONS = 1_000
#: maximum passages that all questions of one request retrieve together
MAX_PASSAGES = 10_000
#: maximum bytes of a body
_BYTES = 4 * 1024 * 1024

_TOTAL: dict[str, Any] = {
    "strategy": "direct",
    "questions": 1,
    "calls": 1,
    "input_tokens": 3350,
    "output_tokens": 190,
    "low_usd": "0.00048",
    "expected_usd": "0.000616",
    "worst_usd": "0.004812",
    "repeated_usd": "0.019248",
    "largest_worst_usd": "0.004812",
}
_EXAMPLE: dict[str, Any] = {
    "questions": [
        {
            "row": 0,
            "id": None,
            "question": REQUEST["question"],
            "model": "openai:gpt-6-luna",
            "free": False,
            "passages": 8,
            "decided": "direct",
            "strategies": [_TOTAL],
        }
    ],
    "bad": [],
    "totals": [_TOTAL],
    "decided": {**_TOTAL, "strategy": "as decided"},
    "balances": [
        {
            "tenant": "acme",
            "scope": "day",
            "cap_usd": "5",
            "spent_usd": "1.25",
            "reserved_usd": "0",
            "left_usd": "3.75",
            "resets": "2026-01-16T00:00:00Z",
            "expected_fits": True,
            "worst_fits": True,
        }
    ],
    "accuracy": None,
    "attempts": 4,
    "history": 0,
    "prices": "genai-prices 0.2.3",
    "seconds": 0.04,
}


@router.post(
    "",
    operation_id="estimate",
    summary="Estimate the cost of questions",
    response_model=EstimateOutput,
    responses={
        200: shows(
            "The estimate, and the rows that cannot be estimated with the reason.", _EXAMPLE
        ),
        **fails(
            400,
            413,
            415,
            429,
            errors.InvalidQuery("the question is empty", field="question"),
            errors.UnpricedModel(model="openai:my-own"),
            NO_COLLECTION,
        ),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "A question, or a list of questions, each with an optional `id`. "
            f"At most {MAX_QUESTIONS} questions and {MAX_PASSAGES} passages in total.",
            "content": {
                "application/json": {
                    "schema": {
                        "oneOf": [
                            {"$ref": "#/components/schemas/JobRequest"},
                            {
                                "type": "array",
                                "items": {
                                    "description": "A JobRequest; invalid items are reported in `bad`."
                                },
                                "minItems": 1,
                                "maxItems": MAX_QUESTIONS,
                            },
                        ]
                    },
                    "example": REQUEST,
                }
            },
        }
    },
)
async def estimate(request: Request, api: Posology, tenant: Tenant) -> Response:
    """Estimate low, expected and worst-case cost of each strategy. Calls no model and reserves nothing."""
    body = await _body(request)
    jobs = api.jobs()
    whole = isinstance(body, JobRequest)
    if isinstance(body, JobRequest):
        settled = body.settled(api.settings)
        asked = await completed(settled, tenant, jobs.get, jobs)
        rows = [Row(number=0, id=None, request=asked, error=None)]
    else:
        rows = await to_thread.run_sync(_rows, body, api)
    _check(rows)
    literature = await api.readable(tenant, _collection(rows))
    standing = await read_standing(jobs.redis, jobs.url, tenant)
    return answered(
        await unless_left(
            request,
            lambda: api.estimating()(rows, standing, whole=whole, literature=literature),
        )
    )


async def _body(request: Request) -> JobRequest | list[Any]:
    """Read one question, checked as for submission, or a list of unchecked items.

    Raises:
        RequestProblem: the body is too long or not JSON, or its media type is not JSON.
        InvalidQuery: naming the invalid field.
    """
    body = await read_body(request, limit=_BYTES)
    if not body.lstrip().startswith(b"["):
        return parse_json(body, JobRequest)
    try:
        items = await to_thread.run_sync(json.loads, body)
    except (ValueError, RecursionError) as error:
        raise no_json(str(error)) from None
    assert isinstance(items, list)
    if not 1 <= len(items) <= MAX_QUESTIONS:
        raise errors.InvalidQuery(
            f"the list must have 1 to {MAX_QUESTIONS} questions (got {len(items)})", field="request"
        )
    return items


def _rows(body: list[Any], api: Context) -> list[Row]:
    try:
        written = [json.dumps(item) for item in body]
    except RecursionError as error:
        raise no_json(str(error)) from None
    return [read_row(i, i + 1, raw, {}, api.settings) for i, raw in enumerate(written)]


def _collection(rows: list[Row]) -> str | None:
    """Return the collection of all rows; ``None``: the default index.

    Raises:
        InvalidQuery: they name several.
    """
    found = {row.request.collection for row in rows if row.request is not None}
    if len(found) > 1:
        raise errors.InvalidQuery(
            "the questions of one request must name one collection: send a request for each",
            field="collection",
        )
    return next(iter(found), None)


def _check(rows: list[Row]) -> None:
    passages = sum(row.request.k for row in rows if row.request is not None)
    if passages > MAX_PASSAGES:
        raise errors.InvalidQuery(
            f"all questions together may retrieve {MAX_PASSAGES} passages (got {passages}): send fewer questions",
            field="k",
        )
