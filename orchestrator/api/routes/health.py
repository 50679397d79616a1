"""Whether the service lives, whether it can serve, and its figures."""

from __future__ import annotations

from typing import Literal

import anyio
from fastapi import APIRouter, Depends, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from orchestrator.api import problems
from orchestrator.api.context import Context, Posology, operator
from orchestrator.api.documents import fails, shows
from orchestrator.api.routes.jobs import answered
from orchestrator.jobs import metrics
from posology.errors import StoreUnavailable
from posology.published.base import Published

router = APIRouter(tags=["operations"])


class Alive(Published):
    """The process runs."""

    status: Literal["ok"] = "ok"


class Ready(Published):
    """The service can do what it is asked."""

    status: Literal["ok"] = "ok"
    workers: int
    """workers that live"""


@router.get(
    "/healthz",
    operation_id="isAlive",
    summary="Whether the process lives",
    response_model=Alive,
    responses={200: shows("It does.", {"status": "ok"}), **fails()},
)
async def healthz() -> Response:
    """Asks nothing of anybody else: a store that is away is no reason to restart this process."""
    return answered(Alive())


@router.get(
    "/readyz",
    operation_id="isReady",
    summary="Whether jobs can be taken and worked on",
    response_model=Ready,
    responses={
        200: shows("They can.", {"status": "ok", "workers": 2}),
        **fails(),
    },
)
async def readyz(api: Posology) -> Response:
    """Redis must answer, and at least one worker must live; the problem's `failing` says what fails."""
    try:
        with anyio.fail_after(api.limits.health):
            workers = await metrics.live_workers(api.jobs())
    except (StoreUnavailable, TimeoutError):
        return _unready("redis", "Redis does not answer")
    if not workers:
        return _unready("workers", "no worker has told of itself lately: jobs wait")
    return answered(Ready(workers=workers))


@router.get(
    "/metrics",
    operation_id="readMetrics",
    summary="Figures for Prometheus",
    dependencies=[Depends(operator)],
    response_class=Response,
    responses={
        200: {
            "description": "In Prometheus's text format. Figures of HTTP are this process's, "
            "all others are the whole installation's.",
            "content": {
                "text/plain": {
                    "schema": {"type": "string"},
                    "example": 'posology_jobs{state="queued"} 3.0\n',
                }
            },
        },
        **fails(),
    },
)
async def read_metrics(api: Posology) -> Response:
    """Without Redis there are fewer figures, and `posology_store_up` is 0.

    They are of all tenants. Where the API wants keys, the key is the one of `POSOLOGY_METRICS_KEY`.
    """
    registry = CollectorRegistry()
    registry.register(metrics.JobsCollector(await _snapshot(api)))
    text = generate_latest(registry) + generate_latest(api.traffic.registry)
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


async def _snapshot(api: Context) -> metrics.Snapshot | None:
    try:
        with anyio.fail_after(2 * api.limits.health):
            return await metrics.read(api.jobs())
    except (StoreUnavailable, TimeoutError):
        return None


def _unready(what: str, detail: str) -> Response:
    return problems.response(
        503, "NotReady", "The service cannot serve now", detail, failing=[what]
    )
