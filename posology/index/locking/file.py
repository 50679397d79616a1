"""Kernel lock on a file in the index's folder; the kernel frees it after a crash."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from posology.errors import IndexFault, IndexLocked


class FileLock:
    """See :class:`posology.index.locking.lock.Exclusive`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "writer.lock"
        self._file: int | None = None

    def take(self) -> None:
        """Lock the file, creating it if need be."""
        path = self._path
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
                f"another process is writing {path.parent}: wait for it to end",
                index=str(path.parent),
            ) from None
        except BaseException:
            os.close(file)
            raise
        self._file = file

    def check(self) -> None:
        """Do nothing: a file lock is never lost."""

    def release(self) -> None:
        """Unlock it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
