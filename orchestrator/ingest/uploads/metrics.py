"""Metrics of uploads, read from their folder."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from orchestrator.ingest.uploads.folder import Uploads
from posology.published.ingests import IngestState


class UploadsCollector(Collector):
    """The state of the folder in Prometheus's terms. Blocking.

    Args:
        uploads: the folder.
    """

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads

    def collect(self) -> Iterator[Metric]:
        """Yield one family after the other."""
        counts = self._uploads.counts()
        states = GaugeMetricFamily(
            "posology_ingests",
            "Ingests of uploaded files whose records are kept, by state.",
            labels=["state"],
        )
        for state in IngestState:
            states.add_metric([state.value], counts[state])
        yield states
        yield GaugeMetricFamily(
            "posology_ingesting_process_up",
            "Whether a process ingests uploaded files.",
            value=int(self._uploads.is_served()),
        )
