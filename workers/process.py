"""A worker process: one event loop, one HTTP pool and one copy of the models."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, ExitStack

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from orchestrator.ingest.uploads.fetches import Fetches
from orchestrator.ingest.uploads.uploads import INGESTS, Uploads
from orchestrator.jobs.place import room
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.lane.collector import LaneOptions
from orchestrator.logs.events import note
from orchestrator.models import Models
from orchestrator.question.answering import Answerer
from orchestrator.question.pipeline import Pipeline
from orchestrator.service import Services, open_connections, place_of
from orchestrator.settings import Auth, Settings
from orchestrator.watches.watcher import PAUSE as WATCH_PAUSE
from orchestrator.watches.watcher import Watcher
from orchestrator.webhooks.delivery import Delivery
from orchestrator.webhooks.outbox import Outbox
from orchestrator.work.files import open_files
from orchestrator.work.store import WorkStore as ItemStore
from posology.errors import PosologyError
from posology.store import keys
from workers.engine.claims import WorkStore
from workers.engine.lane.collector import collect
from workers.engine.maintenance import CALLS, JOBS, Maintenance, run_forever
from workers.engine.runner import Runner
from workers.engine.units import Send, Unit
from workers.engine.webhooks import Sender

logger = logging.getLogger(__name__)

#: seconds to requeue claimed units when the process ends
_REQUEUE_TIMEOUT = 10.0
#: Share of the configured lease for which a worker's claims hold: its orphaned units are found, and their money
#: settled, within the whole of it.
_CLAIMED = 0.8
#: seconds between sweeps, at most
_PAUSE = 1.5
#: seconds between two rounds of the batch lane
_COLLECT = 1.0
#: seconds between tries to open the index, at most
_OPEN_AGAIN = 30.0


class Process:
    """The resources of a worker process, on its event loop.

    Args:
        settings: settings of this worker.
        send: hands a unit to the broker. Blocking.
    """

    def __init__(self, settings: Settings, send: Send) -> None:
        self._settings = settings
        self._send = send
        self._stack = AsyncExitStack()
        #: opens the index of a collection and its encoder, once
        self.service: Services
        self.runner: Runner
        self._maintenance: anyio.CancelScope | None = None

    async def __aenter__(self) -> Process:
        """Connect; models and index are opened on first use."""
        settings = self._settings
        self._models = Models(settings.embedder, settings.embedding)
        self._connections = await self._stack.enter_async_context(
            open_connections(settings, self._models)
        )
        self.service = Services(settings, self._models, self._connections)
        store = await self._stack.enter_async_context(open_store(settings.redis))
        self._work = WorkStore(
            store, worker=keys.worker(os.getpid()), lease=settings.lease * _CLAIMED
        )
        self._delivery = Delivery(settings.webhooks_allowed)
        self._stack.push_async_callback(self._delivery.aclose)
        answerer = Answerer(self._models.judge)
        self.runner = Runner(self._work, self._connections, self._pipeline, answerer=answerer)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Requeue claimed units, stop the loops, and close every connection, but never under a call in flight."""
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_REQUEUE_TIMEOUT):
                await self.runner.drain(0.0)
            if self._maintenance is not None:
                self._maintenance.cancel()
            note("worker stopped", worker=self._work.worker)
            await self._stack.aclose()

    async def run_maintenance(self, *, dispatches: bool, calls: bool) -> None:
        """Run the loops until this is closed.

        Args:
            dispatches: whether this worker answers jobs; it then opens the index before it takes any.
            calls: whether it calls models, so that it has the providers' keys.
        """
        pause = min(_PAUSE, self._settings.lease * (1 - _CLAIMED) / 2)
        loops = Maintenance(self._work, self.runner, self._send, pause=pause, answers=dispatches)
        with anyio.CancelScope() as self._maintenance:
            async with anyio.create_task_group() as group:
                group.start_soon(loops.keep)
                if calls:
                    group.start_soon(loops.in_turn, keys.BATCHES, _COLLECT, self._collect)
                    group.start_soon(self._sender().run, run_forever)
                if dispatches:
                    await self._warm()
                    group.start_soon(loops.dispatch)
                    sweep = self._watcher().sweep
                    group.start_soon(loops.in_turn, keys.WATCHING, WATCH_PAUSE, sweep)
                _freeze()
                note("worker ready", worker=self._work.worker, answers=dispatches)
                group.start_soon(loops.announce)

    async def _collect(self) -> None:
        settings = self._settings
        await collect(
            self._work,
            self._connections.batches,
            self._connections.prices,
            LaneOptions(
                wait=settings.batch_wait,
                rows=settings.batch_rows,
                poll=settings.batch_poll,
                lease=settings.batch_lease,
                grace=settings.batch_lease,
            ),
        )

    def _watcher(self) -> Watcher:
        settings, store = self._settings, self._work.store
        jobs = JobStore(
            store.redis,
            store.url,
            retention=settings.retention,
            prices=self._connections.prices,
            room=room(settings),
            advice=settings.auth is not Auth.KEYS,
        )
        return Watcher(jobs, self.service, self._fetches())

    def _fetches(self) -> Fetches | None:
        settings, store = self._settings, self._work.store
        if settings.uploads is None:
            return None
        files = open_files(place_of(settings, settings.uploads))
        self._stack.callback(files.close)
        uploads = Uploads(ItemStore(store.redis, store.url, INGESTS), files)
        return Fetches(uploads=uploads, settings=settings)

    def _sender(self) -> Sender:
        return Sender(Outbox(self._work.store), self._delivery)

    async def _pipeline(self, collection: str | None) -> Pipeline:
        return (await self.service(collection)).pipeline

    async def _warm(self) -> None:
        """Open the index, with retries; until then this worker takes no jobs from the lists."""
        pause = 1.0
        while True:
            try:
                await self.service()
            except PosologyError as error:
                logger.error("cannot open the index: %s", error)
            except Exception:
                logger.exception("internal error while opening the index")
            else:
                return
            await anyio.sleep(pause)
            pause = min(2 * pause, _OPEN_AGAIN)


class Runtime:
    """Starts the event loop when the worker is ready, or at the first task; closes it once.

    Args:
        settings: reads the settings, in the worker's process.
        send: hands a unit to the broker. Blocking.
    """

    def __init__(self, settings: Callable[[], Settings], send: Send) -> None:
        self._settings = settings
        self._send = send
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._started: tuple[BlockingPortal, Process] | None = None
        self._grace = 0.0
        #: seconds to finish; ``None`` until shutdown begins
        self._drain: float | None = None

    @property
    def draining(self) -> bool:
        """Whether shutdown has begun."""
        return self._drain is not None

    def start(
        self, *, queues: set[str] | None = None, threads: int | None = None
    ) -> tuple[BlockingPortal, Process]:
        """Return the process's event loop and resources, started once. Callable from any thread.

        Args:
            queues: names of the queues that this worker consumes: starts the maintenance loops; ``None``: does not.
            threads: messages that it works on at a time; ``None``: unknown, or known already.
        """
        with self._lock:
            if self._started is None:
                settings = self._settings()
                self._grace = settings.shutdown_grace
                with ExitStack() as stack:
                    portal = stack.enter_context(
                        start_blocking_portal("asyncio", {"use_uvloop": True})
                    )
                    process = Process(settings, self._send)
                    stack.enter_context(portal.wrap_async_context_manager(process))
                    self._started = (portal, process)
                    self._stack = stack.pop_all()
                if self._drain is not None:
                    portal.start_task_soon(process.runner.drain, self._drain)
            portal, process = self._started
        if threads is not None:
            process.runner.threads = threads
        if queues is not None:
            loops = portal.start_task_soon(
                lambda: process.run_maintenance(
                    dispatches=JOBS in queues, calls=not queues.isdisjoint({JOBS, CALLS})
                )
            )
            loops.add_done_callback(_ended)
        return portal, process

    def run(self, units: Sequence[Unit]) -> list[Unit]:
        """Run units at the same time; the calling thread waits."""
        portal, process = self.start()
        return portal.call(process.runner.run_all, units)

    def drain(self, grace: float | None = None) -> None:
        """Begin a graceful shutdown: claim no more units, let claimed ones finish, then requeue the rest.

        Takes no lock, since signal handlers call it on a thread that may be within :meth:`start`.

        Args:
            grace: seconds to finish; ``None``: as configured.
        """
        self._drain = self._grace if grace is None else grace
        if self._started is not None:
            portal, process = self._started
            portal.start_task_soon(process.runner.drain, self._drain)

    def close(self) -> None:
        """Close everything, the event loop last. Idempotent."""
        with self._lock:
            self._started = None
            self._stack.close()


def _freeze() -> None:
    """Exclude loaded libraries and models from garbage collection: hundreds of thousands of permanent objects."""
    gc.collect()
    gc.freeze()


def _ended(loops: Future[None]) -> None:
    """End a worker whose maintenance loops failed: it would extend no lease and find no orphaned unit."""
    if not loops.cancelled() and (error := loops.exception()) is not None:
        logger.critical("maintenance loops failed, worker ends", exc_info=error)
        os.kill(os.getpid(), signal.SIGTERM)
