"""Uploads over HTTP: files that tenants add to the index, and the state of their ingests."""

from __future__ import annotations

from typing import Annotated, Any

import anyio
from anyio import to_thread
from fastapi import APIRouter, Depends, Path, Query, Request, Response

from orchestrator.api.adding.files import LOCATION, allowed, arriving
from orchestrator.api.bodies import check_type, chunks
from orchestrator.api.context import Context, Posology, Tenant
from orchestrator.api.examples import fails, shows
from orchestrator.api.problems import RequestProblem
from orchestrator.api.routes.jobs import answered
from orchestrator.api.routes.listing import MAX_ID
from orchestrator.ingest.uploads.names import MAX_NAME, check_name
from orchestrator.ingest.uploads.uploads import MIB, Arrival, unknown_ingest
from orchestrator.logs.events import note
from posology import errors
from posology.published.ingests import IngestOutput, IngestPage

router = APIRouter(prefix="/v1/index", tags=["literature"])

#: the only media type: a browser asks the service before it sends this one across sites, and it answers no
_TYPE = "application/octet-stream"
#: characters of a name that are looked at
_LONGEST = 4 * MAX_NAME
_INGEST = "ingest_0199a1b2c3d45f6e7a8b9c0d1e2f"
_OUTPUT: dict[str, Any] = {
    "id": _INGEST,
    "tenant": "acme",
    "name": "abstracts.jsonl.gz",
    "bytes": 1_048_576,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "state": "waiting",
    "phase": None,
    "done": 0,
    "total": None,
    "runs": 0,
    "submitted": "2026-01-15T09:30:00Z",
    "started": None,
    "ended": None,
    "written": 0,
    "unchanged": 0,
    "replaced": 0,
    "bad": 0,
    "rejected": [],
    "unread": None,
    "error": None,
}
_RUNNING = {
    **_OUTPUT,
    "state": "running",
    "phase": "encoding",
    "done": 512,
    "total": 2_000,
    "runs": 1,
    "started": "2026-01-15T09:30:01Z",
}
_ENDED = {
    **_RUNNING,
    "state": "succeeded",
    "phase": None,
    "done": 2_000,
    "ended": "2026-01-15T09:32:10Z",
    "written": 1_999,
    "bad": 1,
    "rejected": [{"line": 7, "record": "pmid:1", "reason": "has no abstract"}],
}
#: a fetch that was just asked for
FETCHING = {**_OUTPUT, "name": "request.fetch", "bytes": 168}
NOT_ALLOWED = errors.IngestNotAllowed(
    "the tenant acme may not add literature to the index: ask the operator of this service",
    tenant="acme",
)
_ABSENT = unknown_ingest(_INGEST)
IngestId = Annotated[
    str, Path(max_length=MAX_ID, description="Id of the ingest.", examples=[_INGEST])
]


@router.post(
    "/files",
    operation_id="uploadFile",
    summary="Upload a file to ingest",
    status_code=202,
    response_model=IngestOutput,
    responses={
        202: shows(
            "The ingest of the file.",
            _OUTPUT,
            headers=LOCATION,
        ),
        200: shows(
            "The ingest of the same file, which was uploaded before and has not ended.",
            _RUNNING,
            model=IngestOutput,
        ),
        **fails(
            400,
            NOT_ALLOWED,
            408,
            413,
            415,
            429,
            507,
            errors.InvalidQuery(
                "name: begin with a letter or digit, and do not end with a dot or space (got '.a.csv')",
                field="name",
            ),
            errors.BadFile(
                "not a format that ingest reads: save it as CSV (UTF-8)", path="refs.xlsx"
            ),
        ),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "The file as it is; a compressed one (`.gz`) as well.",
            "content": {
                _TYPE: {
                    "schema": {"type": "string", "format": "binary"},
                    "example": '{"id": "pmid:1", "text": "Aspirin lowered the risk of stroke."}\n',
                }
            },
        }
    },
)
async def upload(
    request: Request,
    api: Posology,
    tenant: Annotated[str, Depends(allowed)],
    *,
    name: Annotated[
        str,
        Query(
            max_length=_LONGEST,
            description="Name of the file, without folders; its suffix tells the format. A text or PDF of the same "
            "name replaces the one before.",
            examples=["abstracts.jsonl.gz"],
        ),
    ],
) -> Response:
    """Add the records of a file to the index, which all tenants share.

    The body is the file, and one request sends one. The response comes when the file is complete and waits to be
    ingested; `GET` its `Location` for the progress. An interrupted upload leaves nothing behind: send it again.
    """
    checked = check_name(name)
    check_type(request, (_TYPE,))
    _check_encoding(request)
    async with api.files.of(tenant), arriving(api, tenant, checked) as (uploads, arrival):
        await _receive(request, api, arrival)
        await to_thread.run_sync(_recognise, arrival)
        made, new = await uploads.complete(arrival)
    if new:
        note("file uploaded", tenant=tenant, ingest=made.id, bytes=made.bytes)
    return answered(made, 202 if new else 200, {"Location": f"{router.prefix}/ingests/{made.id}"})


@router.get(
    "/ingests",
    operation_id="listIngests",
    summary="List ingests",
    response_model=IngestPage,
    responses={
        200: shows("The tenant's ingests, newest first.", {"ingests": [_ENDED]}),
        **fails(),
    },
)
async def page(api: Posology, tenant: Tenant) -> Response:
    """List the ingests of uploaded files that have not expired: those that wait, and at most 1,000 that have ended."""
    uploads = api.uploaded
    found = [] if uploads is None else await uploads.all(tenant)
    return answered(IngestPage(ingests=tuple(found)))


@router.get(
    "/ingests/{ingest}",
    operation_id="getIngest",
    summary="Get an ingest",
    response_model=IngestOutput,
    responses={200: shows("The ingest.", _ENDED), **fails(_ABSENT)},
)
async def get(api: Posology, tenant: Tenant, ingest: IngestId) -> Response:
    """Return how far the ingest of an uploaded file is, and the records that cannot be read, with the reason."""
    uploads = api.uploaded
    if uploads is None:
        raise unknown_ingest(ingest)
    return answered(await uploads.get(ingest, tenant=tenant))


@router.delete(
    "/ingests/{ingest}",
    operation_id="cancelIngest",
    summary="Cancel an ingest",
    response_model=IngestOutput,
    responses={
        200: shows("The ingest, which had ended.", _ENDED),
        202: shows(
            "The ingest before its end. The process that ingests ends it soon.",
            _RUNNING,
            model=IngestOutput,
        ),
        **fails(_ABSENT),
    },
)
async def cancel(api: Posology, tenant: Tenant, ingest: IngestId) -> Response:
    """Cancel an ingest that waits or runs. Records that were written before stay in the index."""
    uploads = api.uploaded
    if uploads is None:
        raise unknown_ingest(ingest)
    found = await uploads.cancel(ingest, tenant=tenant)
    if not found.over:
        note("ingest cancelled", tenant=tenant, ingest=found.id)
    return answered(found, 200 if found.over else 202)


async def _receive(request: Request, api: Context, arrival: Arrival) -> None:
    """Write the body to the disk, piece by piece."""
    seconds = api.limits.file_seconds
    try:
        with anyio.fail_after(seconds):
            async for piece in chunks(request, limit=api.settings.upload_mib * MIB):
                await to_thread.run_sync(arrival.write, piece)
    except TimeoutError:
        raise RequestProblem(
            408,
            "UploadTooSlow",
            "The upload took too long",
            f"the file must arrive within {seconds:g} s: split it",
            headers={"Connection": "close"},
            limit=seconds,
        ) from None


def _recognise(arrival: Arrival) -> None:
    """Check the format by the name and the beginning; the file is parsed by the ingesting process alone.

    Raises:
        BadFile: it is empty, or of no known format.
        RequestProblem: the service lacks the package that reads it.
    """
    from posology.corpus.files import recognised

    arrival.file.flush()
    if not arrival.size:
        raise errors.BadFile("the file is empty", path=arrival.name)
    try:
        recognised(arrival.path)
    except errors.BadFile as bad:
        raise errors.BadFile(bad.reason, path=arrival.name) from None
    except errors.ReaderUnavailable:
        raise RequestProblem(
            415,
            "UnreadableFormat",
            "The service cannot read this format",
            "the service lacks the package that reads this format: convert the file, or ask the operator",
        ) from None


def _check_encoding(request: Request) -> None:
    given = request.headers.get("content-encoding", "identity").strip().lower()
    if given != "identity":
        raise RequestProblem(
            415,
            "UnsupportedEncoding",
            "The content encoding is not supported",
            "send the file as it is: a .gz file needs no Content-Encoding",
            headers={"Accept-Encoding": "identity"},
            accepted=["identity"],
        )
