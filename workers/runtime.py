"""One event loop, one HTTP pool and one copy of the models for each worker process."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

from anyio.from_thread import BlockingPortal, start_blocking_portal

from orchestrator.service import Service, open_service
from orchestrator.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable


class Runtime:
    """Starts the loop and opens the service at the first task; closes both once."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._started: tuple[BlockingPortal, Service] | None = None

    def start(self) -> tuple[BlockingPortal, Service]:
        """The process's loop and service. Called from any thread.

        Raises:
            PosologyError: the index, the embedder or the settings are unusable; the next call
                tries again.
        """
        with self._lock:
            if self._started is None:
                with ExitStack() as stack:
                    portal = stack.enter_context(start_blocking_portal("asyncio"))
                    opening = portal.wrap_async_context_manager(open_service(self._settings()))
                    self._started = (portal, stack.enter_context(opening))
                    self._stack = stack.pop_all()
            return self._started

    def close(self) -> None:
        """Close the service, then the loop. Idempotent."""
        with self._lock:
            self._started = None
            self._stack.close()
