"""The writer's part: shards offered through Redis, from a thread that waits."""

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

from orchestrator.ingest.shards.store import INGEST, ShardStore, open_shards
from posology.errors import NoWorkers, StoreUnavailable
from posology.index.shards.collector import Outcome

#: seconds without any worker after which there is nobody to wait for: longer than one takes to start
PATIENCE = 120.0
#: seconds between two looks at a shard that is waited for: a shard takes seconds
_PAUSE = 0.05
#: seconds between two signs of life
_TELL = 5.0


class RedisShards:
    """As a :class:`~posology.index.shards.collector.ShardQueue`.

    Args:
        url: of Redis.
        place: of the index, as workers find it too: a folder that all machines share, or object storage.
        lease: seconds for which a worker's sign of life holds.
        patience: seconds to wait for a first worker.
    """

    def __init__(self, url: str, place: str, *, lease: float, patience: float = PATIENCE) -> None:
        self._url = url
        self._place = place if "://" in place else str(Path(place).resolve())
        self._lease = lease
        self._patience = patience
        self._stack = ExitStack()
        self._portal: BlockingPortal
        self._store: ShardStore
        self._telling: Future[None]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal("asyncio"))
            shards = open_shards(self._url)
            self._store = stack.enter_context(self._portal.wrap_async_context_manager(shards))
            self._telling = self._portal.start_task_soon(self._tell)
            stack.callback(self._telling.cancel)
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
        """Put a shard into the run of its index."""
        self._portal.call(self._store.offer, self._place, name)

    def wait(self, name: str) -> Outcome:
        """Wait for a shard.

        Raises:
            NoWorkers: nobody has worked on the queue for as long as :data:`PATIENCE`.
            StoreUnavailable: Redis is out of reach.
        """
        return self._portal.call(self._wait, name)

    def forget(self, names: Sequence[str]) -> None:
        """Drop shards."""
        if names:
            self._portal.call(self._store.forget, self._place, names)

    async def _wait(self, name: str) -> Outcome:
        seen = time.monotonic()
        while True:
            found = await self._store.standing(self._place, name)
            match found.state:
                case "done" | "failed":
                    return found.outcome
                case None:
                    # a Redis that was emptied: what is encoded lies beside the index, and is found there
                    await self._store.offer(self._place, name)
                case "waiting" | "held":
                    # a shard stays held by a worker that has died until another worker sees that its lease has ended
                    if await self._store.workers(within=3 * self._lease):
                        seen = time.monotonic()
                    elif time.monotonic() - seen > self._patience:
                        raise self._nobody()
            await anyio.sleep(_PAUSE)

    def _nobody(self) -> NoWorkers:
        return NoWorkers(
            f"no worker has told of itself on the queue {INGEST} for {self._patience:g} s: start some "
            f"(`celery -A workers.app worker -Q {INGEST} --concurrency 1`), or ingest with --workers N",
            queue=INGEST,
            seconds=self._patience,
        )

    async def _tell(self) -> None:
        while True:
            # whoever waits says so
            with suppress(StoreUnavailable):
                await self._store.tell(self._place)
            await anyio.sleep(_TELL)
