"""Worker side of distributed ingest: claims, encodes and reports shards, and maintains their queue."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from orchestrator.ingest.shards.store import INGEST, ShardStore, open_shards
from orchestrator.work.items import Claim
from posology.errors import PosologyError, StoreUnavailable
from posology.store.connection import translated
from workers.engine.maintenance import run_forever

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

#: sends a shard of a run to the broker; blocking
Send = Callable[[str, str], None]
#: encodes a shard, given the address of its index and its name; blocking. A :class:`PosologyError` is a fault of this
#: worker, any other error a fault of the shard.
Encode = Callable[[str, str], None]
#: maximum number of shards waiting in the broker; the others wait in the list of their run
DEPTH = 16
#: seconds for which a worker that lacks a model or the index claims no shard
_KEEP = 2.0
#: seconds for which a worker leaves a shard that it failed at to others, if there are any, and between two messages of it
_LEAVE, _SOON = 30.0, 0.5
#: seconds between two dispatches
_PAUSE = 0.2
#: characters of an error that are stored
_REASON = 300


class ShardWorker:
    """Encodes shards on one event loop, one at a time: an encoder uses all its cores.

    Args:
        url: address of Redis.
        encode: see :data:`Encode`.
        send: see :data:`Send`.
        worker: name of this process.
        lease: seconds for which a claim holds without a heartbeat.
        keep: seconds for which this worker claims nothing after it lacked a model or the index.
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
        """Claim and encode the shard of a message, if it is still waiting; raises nothing."""
        # before the claim: a shard that waits for another one of this process is not claimed by it
        async with self._one:
            try:
                if await self._is_for_others(run, name):
                    await self._store.unsend(run, name)
                    await anyio.sleep(_SOON)
                    return
                claim = await self._store.claim(run, name, lease=self._lease, by=self._worker)
                if claim is not None:
                    await self._work_on(claim)
            except StoreUnavailable as error:
                logger.warning("%s", error)

    async def requeue(self, run: str, name: str) -> None:
        """Requeue the shard of a message for another worker."""
        try:
            await self._store.unsend(run, name)
        except StoreUnavailable as error:
            logger.warning("%s", error)

    async def run_maintenance(self) -> None:
        """Send waiting shards to the broker, and requeue lost ones, until cancelled."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(run_forever, self._dispatch, _PAUSE)
                group.start_soon(run_forever, self._sweep, self._lease / 4)
                group.start_soon(run_forever, self._announce, self._lease / 3)
        finally:
            with anyio.move_on_after(1.0, shield=True), suppress(StoreUnavailable):
                await self._store.leave(self._worker)

    async def _work_on(self, claim: Claim) -> None:
        failed: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._extend, claim)
            try:
                await anyio.to_thread.run_sync(self._encode, claim.record, claim.name)
            except Exception as error:  # noqa: BLE001 - an encoder may raise anything
                failed = error
            group.cancel_scope.cancel()
        if failed is None:
            await self._store.done(claim)
            return
        lacking = isinstance(failed, PosologyError)
        if not lacking:
            self._failed[claim.group, claim.name] = time.monotonic()
        reason = " ".join(str(failed).split())[:_REASON]
        logger.warning(
            "shard failed shard=%s error=%s: %s", claim.name, type(failed).__name__, reason
        )
        await self._store.miss(claim, f"{type(failed).__name__}: {reason}", lacking=lacking)
        if lacking:
            # so that it does not claim every shard before a worker that can encode them
            await anyio.sleep(self._keep)

    async def _is_for_others(self, run: str, name: str) -> bool:
        """Return whether this worker failed at a shard, and another worker could try it: this one may be faulty."""
        since = time.monotonic() - _LEAVE
        self._failed = {one: at for one, at in self._failed.items() if at > since}
        if (run, name) not in self._failed:
            return False
        return await self._store.processes(within=self._lease) > 1

    async def _extend(self, claim: Claim) -> None:
        """Extend the lease; a worker that lost it still encodes to the end, which is harmless."""
        while True:
            await anyio.sleep(self._lease / 5)
            try:
                if await self._store.heartbeat(claim, lease=self._lease) == "lost":
                    logger.warning("lease lost shard=%s", claim.name)
                    return
            except StoreUnavailable as error:
                logger.warning("%s", error)

    async def _dispatch(self) -> None:
        room = DEPTH - await self._waiting()
        runs = await self._store.groups()
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
        for run in await self._store.groups():
            if found := await self._store.sweep_run(run, lease=self._lease):
                logger.warning("shards requeued run=%s count=%d", run, found)

    async def _announce(self) -> None:
        await self._store.announce(self._worker)


class IngestRuntime:
    """Shard worker of a process: starts at the first shard, or when the process is ready; closes before the runtime.

    Args:
        runtime: owns the event loop.
        settings: reads the settings in the worker's process.
        send: sends a shard to the broker; blocking.
    """

    def __init__(self, runtime: Runtime, settings: Callable[[], Settings], send: Send) -> None:
        self._runtime = runtime
        self._settings = settings
        self._send = send
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._worker: ShardWorker | None = None
        self._maintenance: Future[None] | None = None

    def run(self, run: str, name: str) -> None:
        """Encode a shard while the calling thread waits; during a graceful shutdown it is requeued."""
        worker = self._started()
        portal, _ = self._runtime.start()
        portal.call(worker.requeue if self._runtime.draining else worker.work, run, name)

    def run_maintenance(self) -> None:
        """Maintain the queue until this is closed."""
        portal, _ = self._runtime.start()
        self._maintenance = portal.start_task_soon(self._started().run_maintenance)

    def close(self) -> None:
        """Close the connection. Idempotent."""
        with self._lock:
            if self._maintenance is not None:
                self._maintenance.cancel()
                self._maintenance = None
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
