"""Shards on this process's event loop, beside the units of jobs; see :mod:`orchestrator.sharding`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack

from orchestrator.settings import Settings
from orchestrator.sharding.encoding import Encoders
from orchestrator.sharding.working import Send, ShardWorker
from posology.store import keys
from workers.runtime import Runtime


class IngestRuntime:
    """Starts at the first shard, or when the worker is ready; closes once, before the runtime.

    Args:
        runtime: has the event loop.
        settings: reads them, in the worker's process.
        send: hands a shard to the broker; blocking.
    """

    def __init__(self, runtime: Runtime, settings: Callable[[], Settings], send: Send) -> None:
        self._runtime = runtime
        self._settings = settings
        self._send = send
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._worker: ShardWorker | None = None
        self._house: Future[None] | None = None

    def run(self, run: str, name: str) -> None:
        """Encode a shard; the calling thread waits. A worker that was told to stop begins none."""
        worker = self._started()
        portal, _ = self._runtime.start()
        portal.call(worker.give_back if self._runtime.draining else worker.work, run, name)

    def keep_house(self) -> None:
        """Look after the queue, until this is closed."""
        portal, _ = self._runtime.start()
        self._house = portal.start_task_soon(self._started().keep_house)

    def close(self) -> None:
        """Close the connection. Idempotent."""
        with self._lock:
            if self._house is not None:
                self._house.cancel()
                self._house = None
            self._worker = None
            self._stack.close()

    def _started(self) -> ShardWorker:
        with self._lock:
            if self._worker is None:
                settings = self._settings()
                portal, _ = self._runtime.start()
                worker = ShardWorker(
                    settings.redis,
                    Encoders(settings),
                    self._send,
                    worker=keys.worker(os.getpid()),
                    lease=settings.lease,
                )
                self._stack.enter_context(portal.wrap_async_context_manager(worker))
                self._worker = worker
            return self._worker
