"""A queue of shards whose workers are threads of this process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from posology.errors import PosologyError
from posology.index.shards.collector import Outcome


class ThreadShards:
    """As a :class:`~posology.index.shards.collector.ShardQueue`, one thread an encoder.

    A shard whose encoder fails is retried by a free thread; a :class:`PosologyError` counts as a missing part of the
    worker.
    """

    def __init__(self, encoders: Sequence[Callable[[str], bool]], *, tries: int = 2) -> None:
        """Say who works.

        Args:
            encoders: each encodes the shard of a name, one at a time.
            tries: of a shard, before it is given up.
        """
        self._tries = tries
        self._todo: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lock = threading.Condition()
        self._outcomes: dict[str, Outcome] = {}
        self._begun: dict[str, int] = {}
        #: names in the order in which they were offered for the first time
        self.offered: list[str] = []
        #: names of shards that were encoded, in the order in which they were
        self.encoded: list[str] = []
        self._threads = [threading.Thread(target=self._work, args=(one,)) for one in encoders]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            thread.join()

    def offer(self, name: str) -> None:
        """Put a shard at the end of the queue, unless it is known."""
        with self._lock:
            if name in self._begun:
                return
            self._begun[name] = 0
            self.offered.append(name)
        self._todo.put(name)

    def wait(self, name: str) -> Outcome:
        """Wait for a shard that was offered."""
        with self._lock:
            if name not in self._begun:
                raise KeyError(name)
            self._lock.wait_for(lambda: name in self._outcomes)
            return self._outcomes[name]

    def forget(self, names: Sequence[str]) -> None:
        """Offered again, these are new."""
        with self._lock:
            for name in names:
                self._begun.pop(name, None)
                self._outcomes.pop(name, None)

    def _work(self, encode: Callable[[str], bool]) -> None:
        while (name := self._todo.get()) is not None:
            try:
                encode(name)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next shard comes
                self._failed(name, error)
            else:
                with self._lock:
                    self.encoded.append(name)
                    self._end(name, Outcome())

    def _failed(self, name: str, error: Exception) -> None:
        with self._lock:
            tries = self._begun.get(name, 0) + 1
            self._begun[name] = tries
            if tries < self._tries:
                self._todo.put(name)
                return
            failure = f"{type(error).__name__}: {error}"
            lacking = isinstance(error, PosologyError)
            self._end(name, Outcome(failure=failure, tries=tries, lacking=lacking))

    def _end(self, name: str, outcome: Outcome) -> None:
        self._outcomes[name] = outcome
        self._lock.notify_all()
