"""Sending of OpenTelemetry's traces and metrics, if an address for them is configured."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING

from orchestrator.logs.events import EVENTS
from posology.errors import ConfigurationError

if TYPE_CHECKING:
    from orchestrator.settings import Settings

logger = logging.getLogger(__name__)


def start(settings: Settings, *, level: int) -> None:
    """Send traces and metrics of this process's jobs from now on; without an address, load nothing.

    The SDK's own variables configure the rest: headers, sampler, resource, intervals.

    Args:
        settings: have the address.
        level: lowest level of log lines; spans are made of lower ones, too.
    """
    address = settings.otlp_endpoint
    if not address:
        return
    if find_spec("opentelemetry.sdk") is None:
        logger.warning("no traces are sent: run pip install 'posology[otel]'")
        return
    try:
        _check_environment(address)
    except ConfigurationError as error:
        logger.warning("no traces are sent: %s", error)
        return
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from orchestrator.logs.texts import allow_texts
    from orchestrator.logs.traces import JobIds, Tracing
    from posology.version import __version__

    own = {"service.name": "posology", "service.version": __version__}
    resource = Resource(own).merge(OTELResourceDetector().detect())
    base = address.rstrip("/")
    tracers = TracerProvider(resource=resource, id_generator=JobIds())
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{base}/v1/traces")))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{base}/v1/metrics"))
    allow_texts(allowed=settings.trace_texts)
    events = logging.getLogger(EVENTS)
    for handler in logging.getLogger().handlers:
        # spans need events that the lines leave out
        handler.addFilter(lambda record: record.name != EVENTS or record.levelno >= level)
    events.setLevel(min(level, logging.INFO))
    events.addHandler(Tracing(tracers, MeterProvider([reader], resource)))


def _check_environment(address: str) -> None:
    """Check what the exporter's HTTP library reads; it would report it in a traceback for each export.

    Raises:
        ConfigurationError: a variable for the proxy or for certificates cannot be used.
    """
    from posology.network.certificates import check_other
    from posology.network.proxies import proxy_for

    proxy_for(address)
    if address.startswith("https:"):
        check_other("REQUESTS_CA_BUNDLE")
        check_other("CURL_CA_BUNDLE")
