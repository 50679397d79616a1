"""Liveness, readiness and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

import anyio
from anyio import to_thread
from fastapi import APIRouter, Depends, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from orchestrator.api import problems
from orchestrator.api.context import Context, Posology, operator
from orchestrator.api.examples import fails, shows
from orchestrator.api.routes.jobs import answered
from orchestrator.jobs import metrics
from posology.errors import StoreUnavailable
from posology.published.base import Published
from posology.published.ingests import IngestState
from posology.published.tables.orders import TableState
from posology.store import keys


class TablesCollector(Collector):
    """Tables in Prometheus's terms.

    Args:
        counts: number of tables that have not ended, by state.
    """

    def __init__(self, counts: Counter[TableState]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """Yield one family after the other."""
        states = GaugeMetricFamily(
            "posology_tables", "Evidence tables that have not ended, by state.", labels=["state"]
        )
        for state in (TableState.WAITING, TableState.RUNNING, TableState.CANCELLING):
            states.add_metric([state.value], self._counts[state])
        yield states


class UploadsCollector(Collector):
    """Uploads in Prometheus's terms.

    Args:
        counts: number of ingests by state.
        served: whether a process ingests.
    """

    def __init__(self, counts: Counter[IngestState], *, served: bool) -> None:
        self._counts = counts
        self._served = served

    def collect(self) -> Iterator[Metric]:
        """Yield one family after the other."""
        states = GaugeMetricFamily(
            "posology_ingests",
            "Ingests of uploaded files whose records are kept, by state.",
            labels=["state"],
        )
        for state in IngestState:
            states.add_metric([state.value], self._counts[state])
        yield states
        yield GaugeMetricFamily(
            "posology_ingesting_process_up",
            "Whether a process ingests uploaded files.",
            value=int(self._served),
        )


router = APIRouter(tags=["operations"])


class Alive(Published):
    """The process runs."""

    status: Literal["ok"] = "ok"
    """Always `ok`."""


class Ready(Published):
    """The service accepts and answers jobs."""

    status: Literal["ok"] = "ok"
    """Always `ok`."""
    workers: int
    """Number of workers that answer jobs, with a recent heartbeat."""


@router.get(
    "/healthz",
    operation_id="isAlive",
    summary="Check liveness",
    response_model=Alive,
    responses={200: shows("The process runs.", {"status": "ok"}), **fails()},
)
async def healthz() -> Response:
    """Check that the process runs. Redis is not asked: its failure is no reason to restart this process."""
    return answered(Alive())


@router.get(
    "/readyz",
    operation_id="isReady",
    summary="Check readiness",
    response_model=Ready,
    responses={
        200: shows("The service is ready.", {"status": "ok", "workers": 2}),
        **fails(),
    },
)
async def readyz(api: Posology) -> Response:
    """Check that Redis answers and at least one worker that answers jobs is alive; otherwise `failing` names the missing part."""
    try:
        with anyio.fail_after(api.limits.health):
            workers = await metrics.live_workers(api.jobs(), of=keys.ANSWERING)
    except (StoreUnavailable, TimeoutError):
        return _unready("redis", "Redis does not answer")
    if not workers:
        return _unready(
            "workers", "no worker that answers jobs has sent a heartbeat recently: jobs wait"
        )
    return answered(Ready(workers=workers))


@router.get(
    "/metrics",
    operation_id="readMetrics",
    summary="Read metrics",
    dependencies=[Depends(operator)],
    response_class=Response,
    responses={
        200: {
            "description": "Metrics in Prometheus's text format. HTTP metrics are of this process, "
            "all others of the whole installation.",
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
    """Read the metrics of all tenants, for Prometheus. Without Redis there are fewer, and `posology_store_up` is 0.

    If the API asks for keys, send the key of `POSOLOGY_METRICS_KEY`.
    """
    registry = CollectorRegistry()
    registry.register(metrics.JobsCollector(await _snapshot(api)))
    if (uploads := api.uploaded) is not None:
        with suppress(StoreUnavailable, TimeoutError), anyio.fail_after(2 * api.limits.health):
            served = await uploads.work.processes(within=3 * api.settings.lease)
            registry.register(UploadsCollector(await uploads.counts(), served=served > 0))
            assert api.tables is not None, "they are beside uploads"
            registry.register(TablesCollector(await api.tables.counts()))
    text = await to_thread.run_sync(generate_latest, registry)
    text += generate_latest(api.traffic.registry)
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


async def _snapshot(api: Context) -> metrics.Snapshot | None:
    try:
        with anyio.fail_after(2 * api.limits.health):
            return await metrics.read(api.jobs())
    except (StoreUnavailable, TimeoutError):
        return None


def _unready(what: str, detail: str) -> Response:
    return problems.response(503, "NotReady", "The service is not ready", detail, failing=[what])
