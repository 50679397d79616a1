"""Metrics of tables over HTTP, read from their folder."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from orchestrator.tables.served.folder import Tables
from posology.published.tables.orders import TableState


class TablesCollector(Collector):
    """The state of the folder in Prometheus's terms. Blocking.

    Args:
        tables: the folder.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def collect(self) -> Iterator[Metric]:
        """Yield one family after the other."""
        counts = self._tables.counts()
        states = GaugeMetricFamily(
            "posology_tables", "Evidence tables that have not ended, by state.", labels=["state"]
        )
        for state in (TableState.WAITING, TableState.RUNNING, TableState.CANCELLING):
            states.add_metric([state.value], counts[state])
        yield states
