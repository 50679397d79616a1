"""A worker's part: claim a shard, encode it, keep its lease, say how it ended; and look after the queue."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from orchestrator.ingest.shards.store import INGEST, Claim, ShardStore, open_shards
from posology.errors import PosologyError, StoreUnavailable
from posology.store.connection import translated
from workers.engine.loops import again

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self
import os
import threading
from concurrent.futures import Future
from contextlib import ExitStack

from orchestrator.ingest.shards.encoders import Encoders
from orchestrator.settings import Settings
from posology.store import keys
from workers.process import Runtime

logger = logging.getLogger(__name__)

#: hands a shard of a run to the broker; blocking
Send = Callable[[str, str], None]
#: from the place of an index and a shard to its rows; blocking. A :class:`PosologyError` says what this worker lacks,
#: any other what is wrong with the shard.
Encode = Callable[[str, str], None]
#: shards that wait in the broker at most; the others wait in their run's list
DEPTH = 16
#: seconds for which a worker that lacks what it takes does not take the next
_KEEP = 2.0
#: seconds for which a worker leaves a shard that it failed at to others, where there are any, and between two messages of it
_LEAVE, _SOON = 30.0, 0.5
#: seconds between two looks at the lists
_PAUSE = 0.2
#: characters of an error that are kept
_SAID = 300


class ShardWorker:
    """Encodes shards on one event loop, one at a time: an encoder uses all cores that it is given.

    Args:
        url: of Redis.
        encode: see :data:`Encode`.
        send: see :data:`Send`.
        worker: this process's name.
        lease: seconds for which a claim holds without a heartbeat.
        keep: seconds for which this worker takes nothing after it lacked what it takes.
    """

    def __init__(
        self,
        url: str,
        encode: Encode,
        send: Send,
        *,
        worker: str,
        lease: float,
        keep: float = _KEEP,
    ) -> None:
        self._url = url
        self._encode = encode
        self._send = send
        self._worker = worker
        self._lease = lease
        self._keep = keep
        self._stack = AsyncExitStack()
        self._store: ShardStore
        self._one = anyio.Lock()
        #: run and name of shards that this worker failed at, by when
        self._failed: dict[tuple[str, str], float] = {}

    async def __aenter__(self) -> Self:
        self._store = await self._stack.enter_async_context(open_shards(self._url))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def work(self, run: str, name: str) -> None:
        """Encode a shard that a message named, if there is anything to do; it raises nothing."""
        # before the claim: what waits for another shard of this process is not held by it
        async with self._one:
            try:
                if await self._is_for_others(run, name):
                    await self._store.unsend(run, name)
                    await anyio.sleep(_SOON)
                    return
                claim = await self._store.claim(run, name, worker=self._worker, lease=self._lease)
                if claim is not None:
                    await self._work_on(claim)
            except StoreUnavailable as error:
                logger.warning("%s", error)

    async def give_back(self, run: str, name: str) -> None:
        """Leave a shard that a message named to another worker."""
        try:
            await self._store.unsend(run, name)
        except StoreUnavailable as error:
            logger.warning("%s", error)

    async def keep_house(self) -> None:
        """Send waiting shards to the broker and find what was lost, until cancelled."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(again, self._dispatch, _PAUSE)
                group.start_soon(again, self._sweep, self._lease / 4)
                group.start_soon(again, self._announce, self._lease / 3)
        finally:
            with anyio.move_on_after(1.0, shield=True), suppress(StoreUnavailable):
                await self._store.leave(self._worker)

    async def _work_on(self, claim: Claim) -> None:
        failed: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._hold, claim)
            try:
                await anyio.to_thread.run_sync(self._encode, claim.place, claim.name)
            except Exception as error:  # noqa: BLE001 - an encoder may raise anything
                failed = error
            group.cancel_scope.cancel()
        if failed is None:
            await self._store.finish(claim)
            return
        lacking = isinstance(failed, PosologyError)
        if not lacking:
            self._failed[claim.run, claim.name] = time.monotonic()
        said = " ".join(str(failed).split())[:_SAID]
        logger.warning("shard %s: %s: %s", claim.name, type(failed).__name__, said)
        await self._store.miss(claim, f"{type(failed).__name__}: {said}", lacking=lacking)
        if lacking:
            # so that it does not take all of them before another that can
            await anyio.sleep(self._keep)

    async def _is_for_others(self, run: str, name: str) -> bool:
        """Whether this worker failed at a shard, and another is there: it may be this worker that ails."""
        since = time.monotonic() - _LEAVE
        self._failed = {one: at for one, at in self._failed.items() if at > since}
        if (run, name) not in self._failed:
            return False
        return await self._store.workers(within=self._lease) > 1

    async def _hold(self, claim: Claim) -> None:
        """Extend the lease; a worker that has lost it encodes to the end all the same, which harms nobody."""
        while True:
            await anyio.sleep(self._lease / 5)
            try:
                if not await self._store.heartbeat(claim, lease=self._lease):
                    logger.warning("shard %s is another worker's by now", claim.name)
                    return
            except StoreUnavailable as error:
                logger.warning("%s", error)

    async def _dispatch(self) -> None:
        room = DEPTH - await self._waiting()
        runs = await self._store.runs()
        while room > 0 and runs:
            for run in list(runs):
                name = await self._store.take(run)
                if name is None:
                    runs.remove(run)
                    continue
                await anyio.to_thread.run_sync(self._send, run, name)
                room -= 1

    async def _waiting(self) -> int:
        with translated(self._url):
            return int(await self._store.redis.llen(INGEST))

    async def _sweep(self) -> None:
        for run in await self._store.runs():
            if found := await self._store.sweep(run):
                logger.warning("%d shards had lost their workers or messages", found)

    async def _announce(self) -> None:
        await self._store.announce(self._worker)


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
