"""One event loop, one HTTP pool and one copy of the models for each worker process."""

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

from orchestrator.jobs.store import open_store
from orchestrator.models import Models
from orchestrator.service import Service, make_service, open_connections
from orchestrator.settings import Settings
from posology.errors import PosologyError
from posology.store import keys
from workers.engine.claims import WorkStore
from workers.engine.maintenance import JOBS, Housekeeping
from workers.engine.runner import Runner
from workers.engine.units import Send, Unit

logger = logging.getLogger(__name__)

#: seconds to hand back what is held when the process ends
_HAND_BACK = 10.0
#: The share of the configured lease for which a worker's claims hold: what it had is to be found, and its money
#: settled, within the whole of it.
_HELD = 0.8
#: seconds between sweeps, at most
_PAUSE = 1.5
#: seconds between tries to open the index, at most
_OPEN_AGAIN = 30.0


class Process:
    """What a worker process holds, on its loop.

    Args:
        settings: of this worker.
        send: hands a unit to the broker; blocking.
    """

    def __init__(self, settings: Settings, send: Send) -> None:
        self._settings = settings
        self._send = send
        self._stack = AsyncExitStack()
        self._opening = anyio.Lock()
        self._service: Service | None = None
        self.runner: Runner
        self._housekeeping: anyio.CancelScope | None = None

    async def __aenter__(self) -> Process:
        """Connect; models and index are opened when they are first needed."""
        settings = self._settings
        self._models = Models(settings.embedder, settings.embedding)
        self._connections = await self._stack.enter_async_context(
            open_connections(settings, self._models)
        )
        store = await self._stack.enter_async_context(open_store(settings.redis))
        self._work = WorkStore(store, worker=keys.worker(os.getpid()), lease=settings.lease * _HELD)
        self.runner = Runner(self._work, self._connections, self.service)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Hand back what is still held, stop the loops, and close every connection.

        However the worker ends, nothing is closed under a call that is on its way.
        """
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_HAND_BACK):
                await self.runner.drain(0.0)
            if self._housekeeping is not None:
                self._housekeeping.cancel()
            await self._stack.aclose()

    async def service(self) -> Service:
        """The index and its encoder, opened once.

        Raises:
            PosologyError: they cannot be opened; the next call tries again.
        """
        async with self._opening:
            if self._service is None:
                self._service = await make_service(self._settings, self._models, self._connections)
            return self._service

    async def keep_house(self, *, dispatches: bool) -> None:
        """Run the loops until this is closed.

        Args:
            dispatches: whether this worker answers jobs; it then opens the index before it takes any.
        """
        pause = min(_PAUSE, self._settings.lease * (1 - _HELD) / 2)
        house = Housekeeping(self._work, self.runner, self._send, pause=pause)
        with anyio.CancelScope() as self._housekeeping:
            async with anyio.create_task_group() as group:
                group.start_soon(house.keep)
                if dispatches:
                    await self._warm()
                    group.start_soon(house.dispatch)
                _set_aside()
                group.start_soon(house.announce)

    async def _warm(self) -> None:
        """Open the index, however often that takes: until then this worker takes no jobs from the lists."""
        pause = 1.0
        while True:
            try:
                await self.service()
            except PosologyError as error:
                logger.error("%s", error)
            except Exception:
                logger.exception("a defect of Posology while the index was opened")
            else:
                return
            await anyio.sleep(pause)
            pause = min(2 * pause, _OPEN_AGAIN)


class Runtime:
    """Starts the loop when the worker is ready, or at the first task; closes it once.

    Args:
        settings: reads them, in the worker's process.
        send: hands a unit to the broker; blocking.
    """

    def __init__(self, settings: Callable[[], Settings], send: Send) -> None:
        self._settings = settings
        self._send = send
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._started: tuple[BlockingPortal, Process] | None = None
        self._grace = 0.0
        #: seconds that were given to finish; ``None`` while nobody has told this worker to stop
        self._drain: float | None = None

    @property
    def draining(self) -> bool:
        """Whether this worker was told to stop."""
        return self._drain is not None

    def start(self, *, queues: set[str] | None = None) -> tuple[BlockingPortal, Process]:
        """The process's loop and what it holds. Called from any thread.

        Args:
            queues: what this worker consumes; with it, the loops beside the tasks are started.
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
        if queues is not None:
            house = portal.start_task_soon(lambda: process.keep_house(dispatches=JOBS in queues))
            house.add_done_callback(_ended)
        return portal, process

    def run(self, units: Sequence[Unit]) -> list[Unit]:
        """Work on units at the same time; the calling thread waits."""
        portal, process = self.start()
        return portal.call(process.runner.run_all, units)

    def drain(self, grace: float | None = None) -> None:
        """Begin no more units, let those that run finish, and hand back what takes too long.

        It takes no lock: signal handlers call it, on a thread that may be within :meth:`start`.

        Args:
            grace: seconds to finish; ``None``: as configured.
        """
        self._drain = self._grace if grace is None else grace
        if self._started is not None:
            portal, process = self._started
            portal.start_task_soon(process.runner.drain, self._drain)

    def close(self) -> None:
        """Close everything, the loop last. Idempotent."""
        with self._lock:
            self._started = None
            self._stack.close()


def _set_aside() -> None:
    """Take what was loaded out of garbage collection, which would walk over all of it again and again.

    Libraries and models are hundreds of thousands of objects that live as long as the process.
    """
    gc.collect()
    gc.freeze()


def _ended(house: Future[None]) -> None:
    """A worker without its loops would keep no lease and find nothing: it had better be started again."""
    if not house.cancelled() and (error := house.exception()) is not None:
        logger.critical("the loops beside the work ended", exc_info=error)
        os.kill(os.getpid(), signal.SIGTERM)
