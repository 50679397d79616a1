"""Batches over HTTP: submission, state and rows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from orchestrator.api import examples
from orchestrator.api.context import Posology, Tenant
from orchestrator.api.examples import BATCH, BATCH_OUTPUT, CANCELLED_BATCH, ROWS, fails, shows
from orchestrator.api.routes.jobs import (
    NO_COLLECTION,
    Accept,
    Exported,
    Key,
    answered,
    export_of,
)
from orchestrator.api.routes.listing import MAX_ID, NEXT_LINK, Cursor, next_link
from orchestrator.api.uploads import TYPES, received
from orchestrator.jobs.batches import MAX_ROWS, Batches
from orchestrator.jobs.store import MAX_PAGE
from orchestrator.question.request import NO_DEFAULT, JobRequest
from orchestrator.question.sent import FiltersRequest
from orchestrator.rendering.exports import export_pages
from orchestrator.rendering.kinds import MEDIA
from posology import errors
from posology.published.base import descriptions
from posology.published.jobs import BatchOutput, BatchPage, BatchRow, BatchRowPage
from posology.types import BatchState

router = APIRouter(prefix="/v1/batches", tags=["batches"])

BatchId = Annotated[str, Path(max_length=MAX_ID, description="Id of the batch.", examples=[BATCH])]
_MISSING = errors.BatchNotFound(f"there is no batch {BATCH}, or it has expired", batch=BATCH)
_NDJSON = "application/x-ndjson"
_ROWS = {"schema": {"type": "string"}, "example": '{"id": 7, "question": "Does aspirin help?"}\n'}


def row_defaults(**given: Any) -> dict[str, Any]:
    """Return the fields of a request that rows may omit; its query parameters are made of these fields."""
    found = {name: value for name, value in given.items() if value is not None}
    filters = {name: found.pop(name) for name in FiltersRequest.model_fields if name in found}
    return {**found, "filters": filters} if filters else found


def _parameters() -> Iterator[Parameter]:
    for model in (JobRequest, FiltersRequest):
        texts = descriptions(model)
        for name, field in model.model_fields.items():
            if name not in (*NO_DEFAULT, "filters"):
                kind: Any = field.annotation
                query: Any = Query(description=texts.get(name))
                taken: Any = Annotated[kind | None, *field.metadata, query]
                yield Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=taken)


# FastAPI reads the parameters of a dependency from its signature
row_defaults.__dict__["__signature__"] = Signature(list(_parameters()))


@router.post(
    "",
    operation_id="submitBatch",
    summary="Submit a batch",
    status_code=202,
    response_model=BatchOutput,
    responses={
        202: shows(
            "The batch; an existing one if the idempotency key was used for it before.",
            BATCH_OUTPUT,
            headers={
                "Location": {"schema": {"type": "string"}, "description": "Path of the batch."}
            },
        ),
        **fails(
            400,
            examples.EXHAUSTED,
            examples.NOT_ALLOWED,
            errors.UnpricedModel(model="openai:my-own"),
            errors.IdempotencyConflict(
                f"the idempotency key '7' was used for other rows, {BATCH}: use a new key",
                job=BATCH,
            ),
            NO_COLLECTION,
            408,
            413,
            415,
            examples.FULL,
            errors.UnknownModel(
                "unknown model 'x:y': use openai:NAME, anthropic:NAME or offline:extractive",
                model="x:y",
            ),
        ),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "JSON Lines. Each line is a JobRequest with an optional `id`, a JSON scalar that its output "
            "row repeats. Use `Content-Encoding: gzip` for compressed bodies.",
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
    async with api.uploads.of(tenant), received(request, api.limits) as upload:
        made = await api.batches().submit(upload, tenant=tenant, key=key, defaults=defaults)
    return answered(made, 202, {"Location": f"{router.prefix}/{made.id}"})


@router.get(
    "",
    operation_id="listBatches",
    summary="List batches",
    response_model=BatchPage,
    responses={
        200: shows(
            "A page of batches, newest first.",
            {"batches": [BATCH_OUTPUT], "next": None},
            headers=NEXT_LINK,
        ),
        **fails(),
    },
)
async def page(
    api: Posology,
    tenant: Tenant,
    *,
    state: Annotated[
        BatchState | None,
        Query(description="State of the batches: running, ended or cancelled. Default: all."),
    ] = None,
    cursor: Cursor = None,
    limit: Annotated[
        int,
        Query(ge=1, le=MAX_PAGE, description="Maximum batches on a page, 1 to 500. Default: 50."),
    ] = 50,
) -> Response:
    """List batches, newest first. With `state`, a page may be short although more follow: only `next` tells."""
    found = await api.batches().page(tenant=tenant, state=state, cursor=cursor, limit=limit)
    if found.next is None:
        return answered(found)
    query: dict[str, str | int] = {"cursor": found.next, "limit": limit}
    if state is not None:
        query["state"] = state.value
    return answered(found, headers=next_link(router.prefix, query))


@router.get(
    "/{batch}",
    operation_id="getBatch",
    summary="Get a batch",
    response_model=BatchOutput,
    responses={200: shows("The batch.", BATCH_OUTPUT), **fails(_MISSING)},
)
async def get(api: Posology, tenant: Tenant, batch: BatchId) -> Response:
    """Return the number of jobs in each state, and the cost so far."""
    return answered(await api.batches().get(batch, tenant=tenant))


@router.delete(
    "/{batch}",
    operation_id="cancelBatch",
    summary="Cancel a batch",
    response_model=BatchOutput,
    responses={
        200: shows(
            "The batch. Each of its jobs has ended or settles its calls in flight.", CANCELLED_BATCH
        ),
        202: shows(
            "The batch. Some of its jobs are not cancelled yet: send the request again.",
            {
                **CANCELLED_BATCH,
                "states": {"cancelled": 50_000, "queued": 50_000},
                "total": 100_001,
                "over": False,
            },
            model=BatchOutput,
        ),
        **fails(_MISSING),
    },
)
async def cancel(api: Posology, tenant: Tenant, batch: BatchId) -> Response:
    """Cancel the jobs of a batch that have not ended; the others stay as they are. No further row is submitted.

    A large batch may take several requests, each of about ten seconds: repeat the request until it returns 200. A
    batch whose rows have all ended stays as it is.
    """
    found = await api.batches().cancel(batch, tenant=tenant, seconds=api.limits.cancellation)
    return answered(found, 202 if found.open else 200)


@router.get(
    "/{batch}/rows",
    operation_id="listBatchRows",
    summary="List the rows of a batch",
    response_model=BatchRowPage,
    responses={
        200: examples.exported(
            examples.also(
                shows(
                    "A page of rows. With `Accept: application/x-ndjson`: all rows after `after`, as JSON Lines; with "
                    "`format`: all of them as an export.",
                    {"rows": ROWS, "next": None},
                    headers=NEXT_LINK,
                ),
                _NDJSON,
                json.dumps(ROWS[0]) + "\n",
            )
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
        int,
        Query(ge=-1, le=MAX_ROWS, description="Number of the last known row. Default: -1, none."),
    ] = -1,
    limit: Annotated[
        int, Query(ge=1, le=MAX_PAGE, description="Maximum rows on a page, 1 to 500. Default: 100.")
    ] = 100,
    form: Exported = None,
    accept: Accept = "",
) -> Response:
    """Return rows in the order of the input. A row has a result or an error once it has ended.

    Exports have all rows after `after`: an evidence table (csv, table) has a row for each quote, and citations (ris, bibtex,
    csl) each quoted article once. Markdown is the table.
    """
    found = await api.batches().rows(batch, tenant=tenant, after=after, limit=limit)
    if _NDJSON in accept or "application/jsonl" in accept:
        every_line = lines(api.batches(), tenant, batch, found, limit)
        return StreamingResponse(every_line, media_type=_NDJSON)
    if chosen := export_of(form, accept):
        every = row_pages(api.batches(), tenant, batch, found, limit)
        return StreamingResponse(export_pages(every, chosen), media_type=MEDIA[chosen])
    last = found[-1].row if len(found) == limit else None
    page = BatchRowPage(rows=tuple(found), next=last)
    if last is None:
        return answered(page)
    query = {"after": last, "limit": limit}
    return answered(page, headers=next_link(f"{router.prefix}/{batch}/rows", query))


async def lines(
    batches: Batches, tenant: str, batch: str, found: list[BatchRow], limit: int
) -> AsyncIterator[str]:
    """Yield a page of rows and those after it as JSON lines, page by page."""
    async for page in row_pages(batches, tenant, batch, found, limit):
        yield "".join(row.model_dump_json() + "\n" for row in page)


async def row_pages(
    batches: Batches, tenant: str, batch: str, found: list[BatchRow], limit: int
) -> AsyncIterator[list[BatchRow]]:
    """Yield a page of rows, and the pages after it."""
    while found:
        yield found
        if len(found) < limit:
            return
        found = await batches.rows(batch, tenant=tenant, after=found[-1].row, limit=limit)
