"""A process that collects calls for providers' batches until the test kills it, at one of two moments.

Usage: ``python -m tests.integration.jobs_store.collector_process URL TENANT NOW FOLDER STOPS``. The provider is a folder;
``STOPS`` is ``before`` or ``after`` the batch is created there.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path

from orchestrator.lane.collector import LaneOptions
from posology.seams.batches import BatchFound, BatchLine
from posology.testing.model import ScriptedModel
from posology.testing.prices import FlatPrices
from tests.integration.jobs_store.helpers import Clock, open_bench
from tests.support.provider_batches import Made, ScriptedBatches
from workers.engine.lane.collector import collect


class FolderBatches(ScriptedBatches):
    """Keeps each batch in a file, so that processes share a provider.

    Args:
        model: replies.
        folder: files by the provider's id.
        stops: whether ``create`` never returns, ``before`` or ``after`` the batch is there.
    """

    def __init__(self, model: ScriptedModel, folder: Path, *, stops: str = "") -> None:
        super().__init__(model)
        self.folder = folder
        self._stops = stops

    def count(self) -> int:
        """Return how many batches there are."""
        return len(list(self.folder.iterdir()))

    def load(self) -> None:
        """Know what other processes have created."""
        for file in sorted(self.folder.iterdir()):
            found = json.loads(file.read_text(encoding="utf-8"))
            lines = {one: BatchLine(**line) for one, line in found["lines"].items()}
            self.made.setdefault(file.name, Made(label=found["label"], lines=lines))

    async def create(self, lines: Mapping[str, BatchLine], *, label: str) -> str:
        if self._stops == "before":
            _stop()
        name = f"batch_{self.count()}"
        stored = {
            one: {"model": line.model, "path": line.path, "body": line.body}
            for one, line in lines.items()
        }
        (self.folder / name).write_text(json.dumps({"label": label, "lines": stored}), "utf-8")
        if self._stops == "after":
            _stop()
        self.load()
        return name

    async def find(
        self,
        label: str,
        *,
        model: str,
        ids: Collection[str],
        since: datetime,
        known: Collection[str],
    ) -> BatchFound:
        self.load()
        return await super().find(label, model=model, ids=ids, since=since, known=known)


def _stop() -> None:
    print("here", flush=True)  # noqa: T201 - that is how it tells
    sys.stdin.read()


async def _collect(url: str, tenant: str, now: int, folder: Path, stops: str) -> None:
    async with open_bench(url, tenant) as bench:
        bench.clock = Clock(now)
        endpoint = FolderBatches(ScriptedModel([]), folder, stops=stops)
        work = bench.worker("killed")
        await collect(work, lambda _: endpoint, FlatPrices(), LaneOptions())


if __name__ == "__main__":
    url, tenant, now, folder, stops = sys.argv[1:]
    asyncio.run(_collect(url, tenant, int(now), Path(folder), stops))
