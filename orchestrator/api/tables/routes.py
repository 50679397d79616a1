"""Evidence tables over HTTP: articles of the index and fields in, a table out."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Path, Query, Request, Response

from orchestrator.api import examples
from orchestrator.api.adding.files import disk
from orchestrator.api.bodies import read_json
from orchestrator.api.context import Context, Posology, Tenant
from orchestrator.api.examples import fails, shows
from orchestrator.api.problems import RequestProblem
from orchestrator.api.routes.jobs import NO_COLLECTION, answered
from orchestrator.api.routes.listing import MAX_ID
from orchestrator.api.tables.adding import add_table
from orchestrator.rendering.tables import MEDIA, TableForm, export_table
from orchestrator.tables.served.request import TableRequest
from orchestrator.tables.served.tables import Tables
from posology import errors
from posology.published.tables.forms import TableOutput
from posology.published.tables.orders import TableOrder, TablePage

router = APIRouter(prefix="/v1/tables", tags=["tables"])

_TABLE = "table_0199a1b2c3d45f6e7a8b9c0d1e2f"
_REQUEST = {
    "preset": "pico",
    "documents": ["pmid:10051933", "pmid:10051934"],
    "model": "openai:gpt-6-luna",
    "max_cost_usd": "0.5",
}
_OUTPUT: dict[str, Any] = {
    "id": _TABLE,
    "tenant": "acme",
    "state": "waiting",
    "model": "openai:gpt-6-luna",
    "fields": ["population", "intervention", "comparator", "outcome", "effect", "design", "n", "funding"],
    "index": "index@17",
    "documents": 2,
    "done": 0,
    "cells": 0,
    "values": None,
    "runs": 0,
    "submitted": "2026-01-15T09:30:00Z",
    "started": None,
    "ended": None,
    "spent_usd": "0",
    "cap_usd": "0.5",
    "estimate": {
        "documents": 2,
        "read": 0,
        "calls": 2,
        "free": False,
        "input_tokens": 2_100,
        "output_tokens": 830,
        "low_usd": "0.0003",
        "expected_usd": "0.0009",
        "worst_usd": "0.006",
        "spent_usd": "0",
        "cap_usd": "0.5",
        "balances": [],
    },
    "error": None,
}  # fmt: skip
_ENDED = {
    **_OUTPUT,
    "state": "succeeded",
    "done": 2,
    "cells": 16,
    "values": 11,
    "runs": 1,
    "started": "2026-01-15T09:30:01Z",
    "ended": "2026-01-15T09:30:09Z",
    "spent_usd": "0.00084",
}
_FILE: dict[str, Any] = {
    "model": "openai:gpt-6-luna",
    "fields": [{"name": "n", "question": "How many were randomised?", "kind": "number", "choices": []}],
    "rows": [
        {
            "document": "pmid:10051933",
            "title": "Aspirin and preeclampsia",
            "retracted": False,
            "decision": None,
            "reasons": [],
            "error": None,
            "cells": [
                {
                    "field": "n",
                    "value": "9364",
                    "reason": None,
                    "refused": None,
                    "confidence": "high",
                    "backing": "supported",
                    "probability": None,
                    "quotes": [
                        {
                            "passage": "pmid:10051933",
                            "section": None,
                            "page": None,
                            "start": 0,
                            "end": 32,
                            "quote": "We randomised 9364 women to one.",
                        }
                    ],
                    "others": [],
                }
            ],
        }
    ],
    "left_out": [],
    "estimate": None,
    "spent_usd": "0.00084",
}  # fmt: skip
#: beginnings of the other formats
_BEGINNINGS = {
    TableForm.CSV: "document,title,n\r\n",
    TableForm.XLSX: "PK",
    TableForm.MARKDOWN: "| document | title | n |\n",
}
_FILES = shows("The table as a file.", _FILE)
for _form, _beginning in _BEGINNINGS.items():
    _FILES = examples.also(_FILES, MEDIA[_form], _beginning)
_ABSENT = errors.TableNotFound(f"there is no table {_TABLE}, or it has expired", table=_TABLE)
_UNFINISHED = errors.TableUnfinished(
    "the table is running: request its file when it has ended", table=_TABLE
)
_LOCATION = {"Location": {"schema": {"type": "string"}, "description": "Path of the table."}}
TableId = Annotated[str, Path(max_length=MAX_ID, description="Id of the table.", examples=[_TABLE])]


@router.post(
    "",
    operation_id="createTable",
    summary="Request an evidence table",
    status_code=202,
    response_model=TableOrder,
    responses={
        202: shows("The table, which waits to be read.", _OUTPUT, headers=_LOCATION),
        200: shows(
            "The same table, which was requested before and is in progress or complete.",
            _ENDED,
            model=TableOrder,
            headers=_LOCATION,
        ),
        **fails(
            400,
            examples.EXHAUSTED,
            examples.NOT_ALLOWED,
            413,
            415,
            429,
            507,
            errors.PassageNotFound(
                "index@17 does not hold pmid:1", index="index", passage="pmid:1"
            ),
            errors.InvalidQuery("two fields have the name 'n'", field="fields"),
            NO_COLLECTION,
            errors.UnpricedModel(model="openai:my-own"),
        ),
    },
    openapi_extra=examples.takes(TableRequest, _REQUEST),
)
async def create(request: Request, api: Posology, tenant: Tenant) -> Response:
    """Request a table of articles of the index: a row for each, a column for each field, quotes behind each value.

    A `search` finds passages, each of which stands for its whole article. The response has the estimated cost; the calls are
    made afterwards, within the tenant's limits and `max_cost_usd`. `GET` its `Location` for the progress. The same request
    again makes no second table: one that ended early continues with its replies, and pays for none of them twice.
    """
    tables = _tables(api)
    asked = await read_json(request, TableRequest, limit=api.limits.job_bytes)
    order, added = await add_table(api, tables, tenant, asked.settled(api.settings))
    location = {"Location": f"{router.prefix}/{order.id}"}
    return answered(order, 202 if added else 200, location)


@router.get(
    "",
    operation_id="listTables",
    summary="List tables",
    response_model=TablePage,
    responses={200: shows("The tenant's tables, newest first.", {"tables": [_ENDED]}), **fails()},
)
async def page(api: Posology, tenant: Tenant) -> Response:
    """List the tables that have not expired: those that wait, and at most 200 that have ended."""
    found = await _tables(api).all(tenant)
    return answered(TablePage(tables=tuple(found)))


@router.get(
    "/{table}",
    operation_id="getTable",
    summary="Get the state of a table",
    response_model=TableOrder,
    responses={200: shows("The table.", _ENDED), **fails(_ABSENT)},
)
async def get(api: Posology, tenant: Tenant, table: TableId) -> Response:
    """Return how far a table is and its cost so far. `GET` its `file` for the cells."""
    return answered(await _found(api, tenant, table))


@router.get(
    "/{table}/file",
    operation_id="getTableFile",
    summary="Download a table",
    response_model=TableOutput,
    responses={200: _FILES, **fails(_ABSENT, _UNFINISHED)},
)
async def file(
    api: Posology,
    tenant: Tenant,
    table: TableId,
    *,
    form: Annotated[
        TableForm,
        Query(alias="format", description="Format: csv, xlsx, markdown or json. Default: csv."),
    ] = TableForm.CSV,
) -> Response:
    """Return a table that has ended. One that ended early has the rows that were read; the others have an error."""
    order = await _found(api, tenant, table)
    with disk():
        out = await _tables(api).table(order) if order.over else None
    if out is None:
        raise errors.TableUnfinished(
            "the table ended without rows: its error says why"
            if order.over
            else f"the table is {order.state.value}: request its file when it has ended",
            table=table,
        )
    try:
        content = await to_thread.run_sync(export_table, out, form)
    except errors.ConfigurationError:
        raise errors.InvalidQuery(
            "format: this service cannot write workbooks: request csv", field="format"
        ) from None
    suffix = "md" if form is TableForm.MARKDOWN else form.value
    name = f'attachment; filename="{order.id}.{suffix}"'
    return Response(content, media_type=MEDIA[form], headers={"Content-Disposition": name})


@router.delete(
    "/{table}",
    operation_id="cancelTable",
    summary="Cancel a table",
    response_model=TableOrder,
    responses={
        200: shows("The table.", {**_OUTPUT, "state": "cancelling"}),
        **fails(_ABSENT),
    },
)
async def cancel(api: Posology, tenant: Tenant, table: TableId) -> Response:
    """Cancel a table: no further call is made, and its file has the rows that were read. One that has ended stays as it is."""
    order = await _found(api, tenant, table)
    return answered(await _tables(api).cancel(order))


def _tables(api: Context) -> Tables:
    """Return the tables of all tenants.

    Raises:
        RequestProblem: none is configured.
    """
    if (tables := api.tables) is None:
        raise RequestProblem(
            503,
            "NoTables",
            "This service reads no tables",
            "this request needs a folder: the operator must set POSOLOGY_UPLOADS",
        )
    return tables


async def _found(api: Context, tenant: str, table: str) -> TableOrder:
    """Return a table of a tenant.

    Raises:
        TableNotFound: the tenant has none of that id, or it has expired.
        RequestProblem: no place for tables is configured.
    """
    return await _tables(api).get(table, tenant=tenant)
