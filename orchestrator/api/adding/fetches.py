"""Fetches from literature services over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from orchestrator.api.adding.fetching import request_fetch
from orchestrator.api.adding.files import LOCATION, allowed
from orchestrator.api.adding.uploads import FETCHING, NOT_ALLOWED
from orchestrator.api.bodies import read_json
from orchestrator.api.context import Posology
from orchestrator.api.examples import fails, shows, takes
from orchestrator.api.routes.jobs import answered
from orchestrator.ingest.live.request import FetchRequest
from posology import errors
from posology.published.ingests import IngestOutput

router = APIRouter(prefix="/v1/index/fetches", tags=["literature"])

_REQUEST = {"query": "aspirin AND stroke", "service": "pubmed", "max_records": 100}


@router.post(
    "",
    operation_id="fetchLiterature",
    summary="Fetch literature to ingest",
    status_code=202,
    response_model=IngestOutput,
    responses={
        202: shows(
            "The ingest of the fetched records.",
            FETCHING,
            headers=LOCATION,
        ),
        200: shows(
            "The ingest of the same fetch, which was asked for before and has not ended.",
            FETCHING,
            model=IngestOutput,
        ),
        **fails(
            400,
            NOT_ALLOWED,
            413,
            415,
            429,
            507,
            errors.InvalidQuery("max_records must be ≤ 500 here", field="max_records"),
        ),
    },
    openapi_extra=takes(FetchRequest, _REQUEST),
)
async def fetch(
    request: Request, api: Posology, tenant: Annotated[str, Depends(allowed)]
) -> Response:
    """Fetch records from PubMed or Europe PMC into the index, which all tenants share.

    The fetch is made by the process that ingests; `GET` its `Location` for the progress and, in the end, for its
    provenance. It is free of charge, and counts in the tenant's fetches of an hour.
    """
    asked = await read_json(request, FetchRequest, limit=api.limits.job_bytes)
    made, new = await request_fetch(api, tenant, asked)
    return answered(made, 202 if new else 200, {"Location": f"/v1/index/ingests/{made.id}"})
