"""One writer at a time: an advisory lock that dies with its process."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from posology.errors import IndexFault, IndexLocked


class WriteLock:
    """Exclusive between processes, re-entrant within a thread; the kernel frees it after a crash.

    An index on object storage has no such lock: there LanceDB's commits are optimistic, and one
    writer at a time is its operator's duty.
    """

    def __init__(self, folder: Path | None, *, taken: Callable[[], None] = lambda: None) -> None:
        """Set the lock up; nothing is taken yet.

        Args:
            folder: the index's; ``None`` on object storage.
            taken: called whenever the lock was free and is now held.
        """
        self._path = None if folder is None else folder / "writer.lock"
        self._taken = taken
        self._within = threading.RLock()
        self._depth = 0
        self._file: int | None = None

    def __enter__(self) -> Self:
        if not self._within.acquire(blocking=False):
            raise IndexLocked("another thread is writing this index", index=str(self._path))
        try:
            if self._depth == 0:
                if self._path is not None:
                    self._file = self._take(self._path)
                self._taken()
        except BaseException:  # only the outermost can fail
            self._close()
            self._within.release()
            raise
        self._depth += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._close()
        self._within.release()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @staticmethod
    def _take(path: Path) -> int:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise IndexFault(
                f"{path.parent} cannot be written: {error.strerror}", index=str(path.parent)
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise IndexLocked(
                f"another process is writing {path.parent}: wait until it ends",
                index=str(path.parent),
            ) from None
        except BaseException:
            os.close(file)
            raise
        return file
