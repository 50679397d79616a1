"""Watches over HTTP: a standing question, its last answer and its changes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from orchestrator.api import examples
from orchestrator.api.adding.uploads import NOT_ALLOWED
from orchestrator.api.bodies import read_json
from orchestrator.api.context import Posology, Tenant
from orchestrator.api.examples import fails, shows
from orchestrator.api.routes.jobs import NO_COLLECTION, answered
from orchestrator.api.routes.listing import MAX_ID
from orchestrator.api.watches.creating import create_watch
from orchestrator.watches.request import WatchRequest
from orchestrator.watches.store import WatchStore
from posology import errors
from posology.published.watches.forms import WatchList, WatchOutput
from posology.types import WatchState

router = APIRouter(prefix="/v1/watches", tags=["watches"])

_ID = "watch_0199a1b2c3d45f6e7a8b9c0d1e2f"
_LISTED: dict[str, Any] = {
    "id": _ID,
    "tenant": "acme",
    "state": "active",
    "question": examples.REQUEST["question"],
    "every_seconds": 604_800,
    "created": "2026-01-15T09:30:00Z",
    "next": "2026-01-22T09:30:00Z",
    "checked": "2026-01-15T09:30:04Z",
    "changed": None,
    "asked": 1,
    "fetch": None,
    "job": None,
    "error": None,
}
_ANSWER: dict[str, Any] = {
    "job": examples.JOB,
    "answered": "2026-01-15T09:30:20Z",
    "index": "index@17",
    "status": "refused",
    "choice": None,
    "answer": None,
    "refusal": "No passage was found for this question.",
    "evidence": [],
    "conflicts": [],
}
_EXAMPLE = {
    **_LISTED,
    "request": examples.QUEUED["request"],
    "live": None,
    "answer": _ANSWER,
    "changes": [],
}
_MISSING = errors.WatchNotFound(f"there is no watch {_ID}, or its record has expired", watch=_ID)
_ENDED = errors.WatchEnded(f"watch {_ID} has ended: create another", watch=_ID)
WatchId = Annotated[str, Path(max_length=MAX_ID, description="Id of the watch.", examples=[_ID])]


@router.post(
    "",
    operation_id="createWatch",
    summary="Watch a question",
    status_code=201,
    response_model=WatchOutput,
    responses={
        201: shows("The watch, which is due at once.", {**_EXAMPLE, "answer": None, "asked": 0}),
        200: shows("The same watch, which exists already.", _EXAMPLE, model=WatchOutput),
        **fails(
            400,
            413,
            415,
            errors.InvalidQuery("the question is empty", field="question"),
            NOT_ALLOWED,
            NO_COLLECTION,
            errors.UnknownModel(
                "unknown model 'x:y': use openai:NAME, anthropic:NAME or offline:extractive",
                model="x:y",
            ),
        ),
    },
    openapi_extra=examples.takes(WatchRequest, {**examples.REQUEST, "every": "week"}),
)
async def create(request: Request, api: Posology, tenant: Tenant) -> Response:
    """Ask a question now, and again when a later check finds that its evidence in the index has changed.

    Each job is paid for within the tenant's limits and `max_cost_usd`; checks are free. A tenant has at most 100 watches.
    With `live`, a tenant that may add literature has it fetched into the index before each check.
    """
    asked = await read_json(request, WatchRequest, limit=api.limits.job_bytes)
    made, new = await create_watch(request, api, tenant, asked)
    return answered(made, 201 if new else 200)


@router.get(
    "",
    operation_id="listWatches",
    summary="List watches",
    response_model=WatchList,
    responses={200: shows("The watches.", {"watches": [_LISTED]}), **fails()},
)
async def list_(api: Posology, tenant: Tenant) -> Response:
    """List all watches, oldest first, without answers and changes. Those that have ended stay for 7 days."""
    return answered(WatchList(watches=await WatchStore(api.jobs()).all(tenant=tenant)))


@router.get(
    "/{watch}",
    operation_id="getWatch",
    summary="Get a watch",
    response_model=WatchOutput,
    responses={200: shows("The watch.", _EXAMPLE), **fails(_MISSING)},
)
async def get(api: Posology, tenant: Tenant, watch: WatchId) -> Response:
    """Return a watch with its last answer and the last 20 changes, newest first."""
    return answered(await WatchStore(api.jobs()).get(watch, tenant=tenant))


@router.post(
    "/{watch}/pause",
    operation_id="pauseWatch",
    summary="Pause a watch",
    response_model=WatchOutput,
    responses={
        200: shows("The watch.", {**_EXAMPLE, "state": "paused"}),
        **fails(_MISSING, _ENDED),
    },
)
async def pause(api: Posology, tenant: Tenant, watch: WatchId) -> Response:
    """Check a watch no more until it is resumed. A job under way goes on."""
    return answered(await WatchStore(api.jobs()).turn(watch, WatchState.PAUSED, tenant=tenant))


@router.post(
    "/{watch}/resume",
    operation_id="resumeWatch",
    summary="Resume a paused watch",
    response_model=WatchOutput,
    responses={200: shows("The watch.", _EXAMPLE), **fails(_MISSING, _ENDED)},
)
async def resume(api: Posology, tenant: Tenant, watch: WatchId) -> Response:
    """Check a watch again, at once if a check was missed."""
    return answered(await WatchStore(api.jobs()).turn(watch, WatchState.ACTIVE, tenant=tenant))


@router.delete(
    "/{watch}",
    operation_id="endWatch",
    summary="End a watch",
    response_model=WatchOutput,
    responses={
        200: shows("The watch.", {**_EXAMPLE, "state": "ended", "next": None}),
        **fails(_MISSING),
    },
)
async def end(api: Posology, tenant: Tenant, watch: WatchId) -> Response:
    """End a watch. Its record expires in 7 days; a job under way goes on."""
    return answered(await WatchStore(api.jobs()).turn(watch, WatchState.ENDED, tenant=tenant))
