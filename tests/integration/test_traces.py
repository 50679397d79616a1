"""One trace a job: made of events in this process, and sent by real workers to a receiver of OTLP over HTTP."""

from __future__ import annotations

import gzip
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from orchestrator.logs.events import EVENTS, note
from orchestrator.logs.traces import SCHEMA, JobIds, Tracing, ids_of
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.client import SyncClient
from posology.store import keys
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub
from tests.support.indices import index_of

QUESTION = "Did zyxomab lower the risk of stroke?"
IDS = {"tenant": "acme", "batch": None, "unit": "answer"}
ATTEMPT = {
    "attempt": "a", "call": 1, "stage": "answer", "model": "openai:gpt-6-luna", "tier": "standard", "served": "standard",
    "outcome": "ok", "error": None, "charged_usd": "0.0004", "tokens_in": 931, "tokens_out": 44, "seconds": 1.5,
    "answered_by": "gpt-6-luna-2026-10-01", "finish": "stop",
}  # fmt: skip


@contextmanager
def traced(**given: Any) -> Iterator[tuple[InMemorySpanExporter, InMemoryMetricReader]]:
    spans, metrics = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider(id_generator=JobIds(), shutdown_on_exit=False, **given)
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    events = logging.getLogger(EVENTS)
    level, handler = (
        events.level,
        Tracing(tracers, MeterProvider([metrics], shutdown_on_exit=False)),
    )
    events.addHandler(handler)
    events.setLevel(logging.INFO)
    try:
        yield spans, metrics
    finally:
        events.removeHandler(handler)
        events.setLevel(level)


def life(job: str, *, error: str | None = None) -> None:
    """The events of a job, as the API and a worker note them."""
    ids = {**IDS, "job": job}
    note("job submitted", tenant="acme", job=job, model="openai:gpt-6-luna", question=QUESTION)
    note("job started", tenant="acme", job=job, worker="w:1")
    note("decision made", **ids, strategy="direct", policy="router", calls=1, partitions=0)
    failed = {"outcome": "failed", "error": error, "finish": None, "answered_by": None}
    note("attempt failed" if error else "attempt settled", **ids, **ATTEMPT | (failed if error else {}))  # fmt: skip
    if error:
        note("job failed", logging.WARNING, **ids, error=error)
    else:
        note("job succeeded", **ids, status="answered", strategy="direct", seconds=2.0)


def by_name(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


def test_a_job_is_one_trace_by_its_own_id() -> None:
    job = keys.new_id("job")
    with traced() as (spans, metrics):
        life(job)
        found = by_name(spans)
        measured = metrics.get_metrics_data()
    chat = found["chat gpt-6-luna"]
    assert set(found) == {"submit", "wait in the queue", "retrieve and decide", chat.name, "job"}
    root = found["job"].get_span_context()
    assert root is not None
    assert f"{root.trace_id:032x}" == job.removeprefix("job_").zfill(32)
    assert found["job"].parent is None
    for span in found.values():
        context = span.get_span_context()
        assert context is not None
        assert context.trace_id == root.trace_id
        assert span is found["job"] or (
            span.parent is not None and span.parent.span_id == root.span_id
        )
        assert QUESTION not in span.to_json()
    assert chat.kind is SpanKind.CLIENT
    assert chat.instrumentation_scope is not None
    assert chat.instrumentation_scope.schema_url == SCHEMA
    wanted = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-6-luna",
        "gen_ai.response.model": "gpt-6-luna-2026-10-01", "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 931, "gen_ai.usage.output_tokens": 44, "posology.charged_usd": "0.0004",
        "posology.tenant": "acme", "posology.job": job, "posology.stage": "answer",
    }  # fmt: skip
    assert wanted.items() <= dict(chat.attributes or {}).items()
    assert chat.end_time is not None
    assert chat.start_time is not None
    assert chat.end_time - chat.start_time == 1_500_000_000
    assert measured is not None
    points = {
        metric.name: [
            ((point.attributes or {}).get("gen_ai.token.type"), point.sum)
            for point in metric.data.data_points
            if isinstance(point, HistogramDataPoint)
        ]
        for metric in measured.resource_metrics[0].scope_metrics[0].metrics
    }
    assert points == {
        "gen_ai.client.token.usage": [("input", 931), ("output", 44)],
        "gen_ai.client.operation.duration": [(None, 1.5)],
    }


def test_a_failure_names_its_error() -> None:
    with traced() as (spans, _):
        life(keys.new_id("job"), error="ProviderTimeout")
        found = by_name(spans)
    for name in ("chat gpt-6-luna", "job"):
        assert found[name].status.status_code is StatusCode.ERROR
        assert (found[name].attributes or {})["error.type"] == "ProviderTimeout"


def test_the_caller_is_a_link() -> None:
    caller = TracerProvider(shutdown_on_exit=False).get_tracer("caller")
    with traced() as (spans, _), caller.start_as_current_span("its own") as own:
        life(keys.new_id("job"))
        (link,) = by_name(spans)["submit"].links
    assert link.context == own.get_span_context()


def test_all_processes_leave_out_the_same_jobs() -> None:
    with traced(sampler=ALWAYS_OFF) as (spans, _):
        life(keys.new_id("job"))
    assert spans.get_finished_spans() == ()


def test_an_event_of_no_job_and_a_wrong_one_disturb_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    with traced() as (spans, _):
        note("worker ready", worker="w:1")
        note("job started", job="no id")
    assert spans.get_finished_spans() == ()


class Receiver(ThreadingHTTPServer):
    """Receives OTLP over HTTP, and decodes it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        #: names of spans with their trace and span, and names of metrics
        self.spans: list[tuple[str, str, str, str]] = []
        self.metrics: set[str] = set()
        self.raw = b""


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        self.server.raw += body
        if self.path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    self.server.spans += [
                        (span.name, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                        for span in scope.spans
                    ]  # fmt: skip
        else:
            for found in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scoped in found.scope_metrics:
                    self.server.metrics |= {metric.name for metric in scoped.metrics}
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def received() -> Iterator[Receiver]:
    with Receiver() as receiver:
        thread = threading.Thread(target=receiver.serve_forever)
        thread.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()
            thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("texts", [False, True])
def test_workers_and_the_api_send_one_trace(
    tiny_encoder: Path, tmp_path: Path, texts: bool
) -> None:
    rows = [{"id": "t:1", "text": "Zyxomab lowered the risk of stroke."}]
    place = str(index_of(tmp_path, tiny_encoder, rows))
    with received() as receiver, LoadStub(Faults()) as stub:
        options = StackOptions(
            environment=os.environ,
            folder=tmp_path / "stack",
            workers=1,
            concurrency=2,
            api=True,
            port=0,
            index=place,
            overrides={
                "POSOLOGY_EMBEDDER": str(tiny_encoder),
                "POSOLOGY_MODEL": "openai:gpt-4o-mini",
                "POSOLOGY_LOG_LEVEL": "warning",
                "OPENAI_API_KEY": "sk-test",
                "OPENAI_BASE_URL": stub.openai_url,
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.server_port}",
                "POSOLOGY_TRACE_TEXTS": str(texts),
            },
        )
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(running_stack(options)) as info,
            SyncClient(str(info.api_url)) as client,
        ):
            job = client.submit(QUESTION, wait=90.0)
        # processes that end send what is left
    number, root = ids_of(job.id)
    mine = {
        name: (span, parent) for name, one, span, parent in receiver.spans if int(one, 16) == number
    }
    assert set(mine) == {
        "submit",
        "wait in the queue",
        "retrieve and decide",
        "chat gpt-4o-mini",
        "job",
    }
    assert mine.pop("job") == (f"{root:016x}", "")
    assert {parent for _, parent in mine.values()} == {f"{root:016x}"}
    assert receiver.metrics >= {"gen_ai.client.token.usage", "gen_ai.client.operation.duration"}
    assert (b"yxomab" in receiver.raw) is texts
    assert (b"gen_ai.input.messages" in receiver.raw) is texts
