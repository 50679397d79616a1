"""Events as OpenTelemetry's traces and metrics: one trace a job, with a span for each attempt at a model call.

A handler of the events' logger makes them, so that nothing else knows of them, and a process without them loads nothing.
The trace's id is that of the job, so that the processes of a service need to tell each other nothing: the submitter, the
worker that waited, died or took over, and one that collects a batch make spans of one trace.

Names are those of the semantic conventions :data:`SCHEMA`. Texts are attributes only where :mod:`orchestrator.logs.texts`
gives them to an event.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
)

from posology.version import __version__

#: semantic conventions, whose part on generative models is in development
SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
_NANO = 1_000_000_000
#: milliseconds for what waits at a process's end
_FLUSH = 3_000
#: jobs whose beginning is remembered; one that is forgotten has no span of its retrieval
_REMEMBERED = 10_000
#: how a job ends: event → whether that is an error
_ENDS: Mapping[str, bool] = {
    "job succeeded": False,
    "job cancelled": False,
    "job failed": True,
    "job expired": True,
}
#: fields of events that are attributes, by their names there
_FIELDS: Mapping[str, str] = {
    "tenant": "posology.tenant",
    "job": "posology.job",
    "batch": "posology.batch",
    "unit": "posology.unit",
    "worker": "posology.worker",
    "strategy": "posology.strategy",
    "policy": "posology.policy",
    "calls": "posology.calls",
    "partitions": "posology.partitions",
    "status": "posology.status",
    "attempt": "posology.attempt",
    "call": "posology.call",
    "stage": "posology.stage",
    "tier": "posology.tier",
    "served": "posology.served_tier",
    "outcome": "posology.outcome",
    "charged_usd": "posology.charged_usd",
    "provider_request": "posology.provider_request",
    "tokens_in": "gen_ai.usage.input_tokens",
    "tokens_out": "gen_ai.usage.output_tokens",
    "answered_by": "gen_ai.response.model",
    "error": "error.type",
}
#: names of providers in the conventions, where they are others
_PROVIDERS: Mapping[str, str] = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "vertex": "gcp.vertex_ai",
}
_own: ContextVar[tuple[int, int] | None] = ContextVar("_own", default=None)


class JobIds(RandomIdGenerator):
    """Ids of spans: random, but for the root of a job's trace."""

    def generate_trace_id(self) -> int:
        """Return the trace of the job whose root is made, else a random one."""
        own = _own.get()
        return super().generate_trace_id() if own is None else own[0]

    def generate_span_id(self) -> int:
        """Return the root of the job whose root is made, else a random one."""
        own = _own.get()
        return super().generate_span_id() if own is None else own[1]


def ids_of(job: str) -> tuple[int, int]:
    """Return the ids of a job's trace and of its root span: the trace's is the job's own, in 32 hexadecimal digits."""
    number = int(job.rpartition("_")[2], 16)
    root = hashlib.sha256(job.encode()).digest()[:8]
    return number, int.from_bytes(root) or 1


class Tracing(logging.Handler):
    """Makes spans and measurements of events.

    Args:
        tracers: made with :class:`JobIds`.
        meters: takes the measurements.
    """

    def __init__(self, tracers: TracerProvider, meters: MeterProvider) -> None:
        super().__init__(logging.INFO)
        self._providers = tracers, meters
        self._sampler = tracers.sampler
        self._tracer = tracers.get_tracer("posology", __version__, schema_url=SCHEMA)
        meter = meters.get_meter("posology", __version__, schema_url=SCHEMA)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", unit="{token}", description="Tokens of one attempt."
        )
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration", unit="s", description="Duration of one attempt."
        )
        self._begun: OrderedDict[str, int] = OrderedDict()

    def emit(self, record: logging.LogRecord) -> None:
        """Make what an event asks for; an event without a job asks for nothing."""
        fields: Mapping[str, Any] = getattr(record, "fields", {})
        job = fields.get("job")
        if not isinstance(job, str):
            return
        try:
            self._made(record.getMessage(), job, fields, getattr(record, "texts", {}))
        except Exception:  # noqa: BLE001 - a handler must not disturb what it observes
            self.handleError(record)

    def flush(self) -> None:
        """Send what waits. Blocking, a few seconds at most."""
        for provider in self._providers:
            provider.force_flush(_FLUSH)

    def _made(
        self, event: str, job: str, fields: Mapping[str, Any], texts: Mapping[str, str]
    ) -> None:
        now = time.time_ns()
        match event:
            case "job submitted":
                self._child("submit", job, fields, now, now, SpanKind.PRODUCER)
            case "job started":
                self._begin(job, now)
                self._child("wait in the queue", job, fields, _created(job), now)
            case "decision made":
                begun = self._begun.pop(job, now)
                self._child("retrieve and decide", job, fields, begun, now)
            case _ if event in _ENDS:
                self._begun.pop(job, None)
                self._root(job, fields, now, texts, failed=_ENDS[event])
            case "attempt lost":
                # its worker died: nothing is known of its end
                self._child(event, job, {**fields, "error": "lost"}, now, now, SpanKind.CLIENT)
            case _ if event.startswith("attempt ") and "seconds" in fields:
                self._attempt(job, fields, now, texts)

    def _begin(self, job: str, now: int) -> None:
        self._begun[job] = now
        if len(self._begun) > _REMEMBERED:
            self._begun.popitem(last=False)

    def _attempt(
        self, job: str, fields: Mapping[str, Any], now: int, texts: Mapping[str, str]
    ) -> None:
        provider, _, model = str(fields["model"]).partition(":")
        named = {
            "gen_ai.operation.name": "embeddings" if fields.get("stage") == "embed" else "chat",
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
            "gen_ai.request.model": model,
        }
        more = (
            {}
            if fields.get("finish") is None
            else {"gen_ai.response.finish_reasons": (str(fields["finish"]),)}
        )
        begun = now - int(fields["seconds"] * _NANO)
        name = f"{named['gen_ai.operation.name']} {model}"
        self._child(name, job, fields, begun, now, SpanKind.CLIENT, {**named, **more, **texts})
        failed = {} if fields.get("error") is None else {"error.type": str(fields["error"])}
        self._seconds.record(fields["seconds"], {**named, **failed})
        for kind, count in (("input", fields["tokens_in"]), ("output", fields["tokens_out"])):
            if count:
                self._tokens.record(count, {**named, "gen_ai.token.type": kind})

    def _child(
        self,
        name: str,
        job: str,
        fields: Mapping[str, Any],
        begun: int,
        ended: int,
        kind: SpanKind = SpanKind.INTERNAL,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        number, root = ids_of(job)
        # every process must decide alike
        decision = self._sampler.should_sample(None, number, "job").decision
        sampled = decision is Decision.RECORD_AND_SAMPLE
        flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
        parent = SpanContext(number, root, is_remote=True, trace_flags=flags)
        caller = trace.get_current_span().get_span_context()
        span = self._tracer.start_span(
            name,
            trace.set_span_in_context(NonRecordingSpan(parent)),
            kind,
            {**_attributes(fields), **(more or {})},
            [Link(caller)] if caller.is_valid else None,
            begun,
        )
        if fields.get("error") is not None:
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended)

    def _root(
        self,
        job: str,
        fields: Mapping[str, Any],
        now: int,
        texts: Mapping[str, str],
        *,
        failed: bool,
    ) -> None:
        nothing = trace.set_span_in_context(trace.INVALID_SPAN)
        found = {**_attributes(fields), **texts}
        with _as(job):
            span = self._tracer.start_span(
                "job", nothing, attributes=found, start_time=_created(job)
            )
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(now)


@contextmanager
def _as(job: str) -> Iterator[None]:
    token = _own.set(ids_of(job))
    try:
        yield
    finally:
        _own.reset(token)


def _created(job: str) -> int:
    """Return the time in a job's id, POSIX nanoseconds."""
    return int(job.rpartition("_")[2][:12], 16) * 1_000_000


def _attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        name: fields[field] for field, name in _FIELDS.items() if fields.get(field) is not None
    }
    return {k: v if isinstance(v, bool | int | float) else str(v) for k, v in found.items()}
