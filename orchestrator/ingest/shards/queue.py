"""Writer's queue of shards in Redis, for a blocking thread."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from orchestrator.ingest.shards.store import INGEST, ShardStore, open_shards, outcome_of
from posology.errors import NoWorkers, StoreUnavailable
from posology.index.shards.collector import Outcome

#: seconds without any worker before the ingest fails; longer than a worker takes to start
WAIT_TIMEOUT = 120.0
#: seconds between two polls of an awaited shard; a shard takes seconds
_PAUSE = 0.05
#: seconds between two heartbeats of the writer
_HEARTBEAT = 5.0


class RedisShards:
    """:class:`~posology.index.shards.collector.ShardQueue` in Redis.

    Args:
        url: address of Redis.
        place: address of the index, which workers reach too: a folder that all machines share, or object storage.
        lease: seconds without a heartbeat before a worker is considered dead.
        wait_timeout: seconds to wait for a first worker.
    """

    def __init__(
        self, url: str, place: str, *, lease: float, wait_timeout: float = WAIT_TIMEOUT
    ) -> None:
        self._url = url
        self._place = place if "://" in place else str(Path(place).resolve())
        self._lease = lease
        self._wait_timeout = wait_timeout
        self._stack = ExitStack()
        self._portal: BlockingPortal
        self._store: ShardStore
        self._heartbeats: Future[None]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal("asyncio"))
            shards = open_shards(self._url)
            self._store = stack.enter_context(self._portal.wrap_async_context_manager(shards))
            self._heartbeats = self._portal.start_task_soon(self._beat)
            stack.callback(self._heartbeats.cancel)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def offer(self, name: str) -> None:
        """Queue a shard in the run of its index."""
        self._portal.call(self._store.offer_shard, self._place, name)

    def wait(self, name: str) -> Outcome:
        """Wait for a shard.

        Raises:
            NoWorkers: the queue has had no worker for :data:`WAIT_TIMEOUT` seconds.
            StoreUnavailable: Redis is out of reach.
        """
        return self._portal.call(self._wait, name)

    def forget(self, names: Sequence[str]) -> None:
        """Drop shards."""
        if names:
            self._portal.call(self._store.drop, self._place, names)

    async def _wait(self, name: str) -> Outcome:
        seen = time.monotonic()
        while True:
            shard = await self._store.standing(self._place, name)
            if shard is None:
                # Redis was emptied: encoded rows lie beside the index, and are found there
                await self._store.offer_shard(self._place, name)
            elif shard.over:
                return outcome_of(shard)
            # the shard of a dead worker stays claimed until another worker sweeps its lease
            elif await self._store.processes(within=3 * self._lease):
                seen = time.monotonic()
            elif time.monotonic() - seen > self._wait_timeout:
                raise self._no_workers()
            await anyio.sleep(_PAUSE)

    def _no_workers(self) -> NoWorkers:
        return NoWorkers(
            f"no worker of the queue {INGEST} sent a heartbeat for {self._wait_timeout:g} s: start workers "
            f"(`celery -A workers.app worker -Q {INGEST} --concurrency 1`), or pass --workers N",
            queue=INGEST,
            seconds=self._wait_timeout,
        )

    async def _beat(self) -> None:
        while True:
            # a failure is reported by the waiting thread
            with suppress(StoreUnavailable):
                await self._store.keep_run(self._place)
            await anyio.sleep(_HEARTBEAT)
