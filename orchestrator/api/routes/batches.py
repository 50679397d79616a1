"""Batches over HTTP: upload questions, read their rows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from inspect import Parameter, Signature
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from orchestrator.api import documents
from orchestrator.api.context import Posology, Tenant
from orchestrator.api.documents import BATCH, BATCH_OUTPUT, ROWS, fails, shows
from orchestrator.api.routes.jobs import MAX_ID, Key, answered
from orchestrator.api.uploads import TYPES, received
from orchestrator.jobs.batches import MAX_ROWS, Batches
from orchestrator.jobs.store import MAX_PAGE
from orchestrator.question.request import ROW_ONLY, FiltersRequest, JobRequest
from posology import errors
from posology.published.jobs import BatchOutput, BatchRow, BatchRowPage

router = APIRouter(prefix="/v1/batches", tags=["batches"])

BatchId = Annotated[str, Path(max_length=MAX_ID, description="The batch's id.", examples=[BATCH])]
_MISSING = errors.BatchNotFound(f"there is no batch {BATCH} (any more)", batch=BATCH)
_NDJSON = "application/x-ndjson"
_ROWS = {"schema": {"type": "string"}, "example": '{"id": 7, "question": "Does aspirin help?"}\n'}


def row_defaults(**given: Any) -> dict[str, Any]:
    """Return the fields of a request that rows may omit; its query parameters are made of these fields."""
    found = {name: value for name, value in given.items() if value is not None}
    filters = {name: found.pop(name) for name in FiltersRequest.model_fields if name in found}
    return {**found, "filters": filters} if filters else found


def _parameters() -> Iterator[Parameter]:
    for model in (JobRequest, FiltersRequest):
        for name, field in model.model_fields.items():
            if name not in (*ROW_ONLY, "filters"):
                kind: Any = field.annotation
                query: Any = Query(description=field.description)
                taken: Any = Annotated[kind | None, *field.metadata, query]
                yield Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=taken)


# FastAPI reads the parameters of a dependency from its signature
row_defaults.__dict__["__signature__"] = Signature(list(_parameters()))


@router.post(
    "",
    operation_id="submitBatch",
    summary="Put many questions into the queue",
    status_code=202,
    response_model=BatchOutput,
    responses={
        202: shows(
            "The batch; the same one where the key stood for it already.",
            BATCH_OUTPUT,
            headers={
                "Location": {"schema": {"type": "string"}, "description": "Path of the batch."}
            },
        ),
        **fails(
            400,
            documents.EXHAUSTED,
            documents.NOT_ALLOWED,
            errors.UnpricedModel(model="openai:my-own"),
            errors.IdempotencyConflict(
                f"the idempotency key '7' was used for other rows, {BATCH}: use a new key",
                job=BATCH,
            ),
            413,
            415,
            errors.UnknownModel(
                "no provider 'x': choose openai, anthropic or offline", model="x:y"
            ),
        ),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "JSON Lines: each a JobRequest with an optional `id` of its own, a JSON "
            "scalar. With `Content-Encoding: gzip` packed.",
            "content": dict.fromkeys(TYPES, _ROWS),
        }
    },
)
async def submit(
    request: Request,
    api: Posology,
    tenant: Tenant,
    *,
    key: Key = None,
    defaults: Annotated[dict[str, Any], Depends(row_defaults)],
) -> Response:
    """Submit JSON Lines, one question in each line, as jobs under one id.

    A query parameter is the default of the rows that omit its field. An invalid row becomes a rejected row; the
    others are submitted. Nothing is submitted before the upload is complete. Send an interrupted submission again
    with the same idempotency key: it is completed, and no row is submitted twice.
    """
    async with received(request, api.limits) as upload:
        made = await api.batches().submit(upload, tenant=tenant, key=key, defaults=defaults)
    return answered(made, 202, {"Location": f"{router.prefix}/{made.id}"})


@router.get(
    "/{batch}",
    operation_id="getBatch",
    summary="A batch as it is now",
    response_model=BatchOutput,
    responses={200: shows("The batch.", BATCH_OUTPUT), **fails(_MISSING)},
)
async def get(api: Posology, tenant: Tenant, batch: BatchId) -> Response:
    """How many of its jobs are in which state, and what it has cost so far."""
    return answered(await api.batches().get(batch, tenant=tenant))


@router.get(
    "/{batch}/rows",
    operation_id="listBatchRows",
    summary="Rows of a batch, in the order of the input",
    response_model=BatchRowPage,
    responses={
        200: documents.also(
            shows(
                "A page of rows; with `Accept: application/x-ndjson` all rows after `after` as JSON Lines.",
                {"rows": ROWS, "next": None},
                headers={
                    "Link": {
                        "schema": {"type": "string"},
                        "description": "The next page as `rel=next`; absent on the last.",
                    }
                },
            ),
            _NDJSON,
            json.dumps(ROWS[0]) + "\n",
        ),
        **fails(_MISSING),
    },
)
async def rows(
    api: Posology,
    tenant: Tenant,
    batch: BatchId,
    *,
    after: Annotated[
        int, Query(ge=-1, le=MAX_ROWS, description="Number of the last row that is known.")
    ] = -1,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Rows on a page, at most.")] = 100,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """Each as it is now: a row has a result or an error once it is over, and neither before."""
    found = await api.batches().rows(batch, tenant=tenant, after=after, limit=limit)
    if _NDJSON in accept or "application/jsonl" in accept:
        lines = _lines(api.batches(), tenant, batch, found, limit)
        return StreamingResponse(lines, media_type=_NDJSON)
    last = found[-1].row if len(found) == limit else None
    page = BatchRowPage(rows=tuple(found), next=last)
    headers = {}
    if last is not None:
        query = urlencode({"after": last, "limit": limit})
        headers["Link"] = f'<{router.prefix}/{batch}/rows?{query}>; rel="next"'
    return answered(page, headers=headers)


async def _lines(
    batches: Batches, tenant: str, batch: str, found: list[BatchRow], limit: int
) -> AsyncIterator[str]:
    while found:
        yield "".join(row.model_dump_json() + "\n" for row in found)
        if len(found) < limit:
            return
        found = await batches.rows(batch, tenant=tenant, after=found[-1].row, limit=limit)
