"""Webhooks over HTTP: endpoints of a tenant, and failed messages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from orchestrator.api.bodies import read_json
from orchestrator.api.context import Context, Posology, Tenant
from orchestrator.api.examples import JOB, fails, shows, takes
from orchestrator.api.routes.jobs import answered
from orchestrator.api.routes.listing import MAX_ID
from orchestrator.webhooks.request import WebhookRequest
from orchestrator.webhooks.store import MAX_OVERLAP, MAX_PAGE, OVERLAP, WebhookStore
from posology import errors
from posology.published.webhooks.endpoints import (
    WebhookCreated,
    WebhookFailures,
    WebhookList,
    WebhookOutput,
    WebhookRedelivery,
    WebhookTest,
)

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])

_ID = "wh_0199a1b2c3d45f6e7a8b9c0d1e2f"
_MESSAGE = "msg_5f0c2a9e5b7d48361f0c2a9e5b7d"
_EVENTS = ["job.ended", "batch.ended", "budget.nearly_spent", "answer.affected", "watch.changed"]
_EXAMPLE: dict[str, Any] = {
    "id": _ID,
    "tenant": "acme",
    "url": "https://example.org/posology",
    "events": _EVENTS,
    "created": "2026-01-15T09:30:00Z",
    "disabled": None,
    "paused": None,
    "secrets": 1,
    "queued": 0,
    "delivered": 12,
    "failed": 1,
    "tried": "2026-01-15T10:02:00Z",
    "status": 204,
    "error": None,
}
_CREATED = {**_EXAMPLE, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwTKQ9r8GKYqo="}
_FAILURES = {
    "failures": [
        {
            "message": _MESSAGE,
            "type": "job.ended",
            "timestamp": "2026-01-12T09:30:00Z",
            "subject": JOB,
            "tries": 10,
            "failed": "2026-01-15T13:05:00Z",
            "status": 500,
            "error": "status 500: Internal Server Error",
        }
    ],
    "next": None,
}
_MISSING = errors.WebhookNotFound(f"there is no endpoint {_ID}", webhook=_ID)
WebhookId = Annotated[
    str, Path(max_length=MAX_ID, description="Id of the endpoint.", examples=[_ID])
]


def _webhooks(api: Context) -> WebhookStore:
    return WebhookStore(api.jobs(), api.settings.webhooks_allowed)


@router.post(
    "",
    operation_id="createWebhook",
    summary="Create an endpoint of webhooks",
    status_code=201,
    response_model=WebhookCreated,
    responses={
        201: shows("The endpoint with its secret, which is shown only once.", _CREATED),
        **fails(
            400,
            413,
            415,
            errors.InvalidQuery(
                "url: this cannot be the address of an endpoint: its host is not a public address",
                field="url",
            ),
        ),
    },
    openapi_extra=takes(WebhookRequest, {"url": _EXAMPLE["url"]}),
)
async def create(request: Request, api: Posology, tenant: Tenant) -> Response:
    """Let an address receive signed messages (Standard Webhooks) about ended jobs and batches, budgets, changed evidence and watches.

    A tenant has at most 5 endpoints.
    """
    asked = await read_json(request, WebhookRequest, limit=api.limits.job_bytes)
    made, secret = await _webhooks(api).create(asked.url, tenant=tenant, events=asked.events)
    return answered(WebhookCreated(**dict(made), secret=secret), 201)


@router.get(
    "",
    operation_id="listWebhooks",
    summary="List the endpoints of webhooks",
    response_model=WebhookList,
    responses={200: shows("The endpoints.", {"webhooks": [_EXAMPLE]}), **fails()},
)
async def list_(api: Posology, tenant: Tenant) -> Response:
    """Return all endpoints of the tenant, oldest first, without their secrets."""
    return answered(WebhookList(webhooks=await _webhooks(api).all(tenant=tenant)))


@router.get(
    "/{webhook}",
    operation_id="getWebhook",
    summary="Get an endpoint of webhooks",
    response_model=WebhookOutput,
    responses={200: shows("The endpoint.", _EXAMPLE), **fails(_MISSING)},
)
async def get(api: Posology, tenant: Tenant, webhook: WebhookId) -> Response:
    """Return an endpoint, with the numbers of its messages and its last attempt."""
    return answered(await _webhooks(api).get(webhook, tenant=tenant))


@router.delete(
    "/{webhook}",
    operation_id="deleteWebhook",
    summary="Delete an endpoint of webhooks",
    status_code=204,
    response_class=Response,
    responses={
        204: {"description": "The endpoint and its messages are deleted."},
        **fails(_MISSING),
    },
)
async def delete(api: Posology, tenant: Tenant, webhook: WebhookId) -> Response:
    """Delete an endpoint and the messages that it has not received. An attempt under way may still reach it."""
    await _webhooks(api).delete(webhook, tenant=tenant)
    return Response(status_code=204)


@router.post(
    "/{webhook}/rotate",
    operation_id="rotateWebhook",
    summary="Give an endpoint a new secret",
    response_model=WebhookCreated,
    responses={
        200: shows("The endpoint with its new secret, which is shown only once.", _CREATED),
        **fails(_MISSING),
    },
)
async def rotate(
    api: Posology,
    tenant: Tenant,
    webhook: WebhookId,
    *,
    overlap_seconds: Annotated[
        float,
        Query(
            ge=0,
            le=MAX_OVERLAP,
            allow_inf_nan=False,
            description="Seconds for which messages have signatures by the old secret, too, 0 to 2592000. Default: 86400.",
        ),
    ] = OVERLAP,
) -> Response:
    """Replace the secret. For a while both sign each message, so that a receiver can change at its own time."""
    made, secret = await _webhooks(api).rotate(webhook, tenant=tenant, overlap=overlap_seconds)
    return answered(WebhookCreated(**dict(made), secret=secret))


@router.post(
    "/{webhook}/pause",
    operation_id="pauseWebhook",
    summary="Pause an endpoint",
    response_model=WebhookOutput,
    responses={
        200: shows("The endpoint.", {**_EXAMPLE, "paused": "2026-01-15T10:05:00Z"}),
        **fails(_MISSING),
    },
)
async def pause(api: Posology, tenant: Tenant, webhook: WebhookId) -> Response:
    """Let the messages of an endpoint wait. Those that are 5 days old, or beyond 4,000, are given up all the same."""
    return answered(await _webhooks(api).pause(webhook, tenant=tenant))


@router.post(
    "/{webhook}/resume",
    operation_id="resumeWebhook",
    summary="Resume a paused endpoint",
    response_model=WebhookOutput,
    responses={200: shows("The endpoint.", _EXAMPLE), **fails(_MISSING)},
)
async def resume(api: Posology, tenant: Tenant, webhook: WebhookId) -> Response:
    """Send the messages of a paused endpoint again, those that waited first."""
    return answered(await _webhooks(api).pause(webhook, tenant=tenant, paused=False))


@router.post(
    "/{webhook}/test",
    operation_id="testWebhook",
    summary="Send a test message",
    status_code=202,
    response_model=WebhookTest,
    responses={202: shows("The message is queued.", {"message": _MESSAGE}), **fails(_MISSING)},
)
async def test(api: Posology, tenant: Tenant, webhook: WebhookId) -> Response:
    """Queue a message of type `webhook.test`. `GET` the endpoint a moment later for the result."""
    return answered(WebhookTest(message=await _webhooks(api).test(webhook, tenant=tenant)), 202)


@router.get(
    "/{webhook}/failures",
    operation_id="listWebhookFailures",
    summary="List failed messages",
    response_model=WebhookFailures,
    responses={200: shows("A page of messages.", _FAILURES), **fails(_MISSING)},
)
async def failures(
    api: Posology,
    tenant: Tenant,
    webhook: WebhookId,
    *,
    after: Annotated[
        int,
        Query(ge=-1, le=10**6, description="`next` of the previous page. Default: -1, the first."),
    ] = -1,
    limit: Annotated[
        int, Query(ge=1, le=MAX_PAGE, description=f"Maximum number, 1 to {MAX_PAGE}. Default: 50.")
    ] = 50,
) -> Response:
    """Return messages that were given up, newest first. The last 500 are kept."""
    return answered(await _webhooks(api).failures(webhook, tenant=tenant, after=after, limit=limit))


@router.post(
    "/{webhook}/redeliver",
    operation_id="redeliverWebhook",
    summary="Resend failed messages",
    status_code=202,
    response_model=WebhookRedelivery,
    responses={202: shows("The messages are queued.", {"queued": 1}), **fails(_MISSING)},
)
async def redeliver(api: Posology, tenant: Tenant, webhook: WebhookId) -> Response:
    """Queue the messages that were given up again, oldest first and with their ids, and enable the endpoint."""
    queued = await _webhooks(api).redeliver(webhook, tenant=tenant)
    return answered(WebhookRedelivery(queued=queued), 202)
