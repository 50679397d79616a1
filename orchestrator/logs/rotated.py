"""Log files that the standard library rotates; only their owner may read them."""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Self

#: maximum bytes of a log, and number of rotated logs that are kept
LIMIT, KEPT = 5_000_000, 3


class PrivateFile(RotatingFileHandler):
    """A rotated log file of one process."""

    @classmethod
    def of(cls, path: Path) -> Self:
        """Return a file that is created at the first line."""
        return cls(path, maxBytes=LIMIT, backupCount=KEPT, delay=True)

    def write(self, text: str) -> None:
        """Append a line as it is."""
        self.emit(logging.LogRecord("", logging.INFO, "", 0, text, None, None))

    def _open(self) -> TextIOWrapper:
        return TextIOWrapper(
            os.fdopen(_descriptor(self.baseFilename), "ab"),
            encoding="utf-8",
            errors="backslashreplace",
            write_through=True,
        )


class SharedFile(PrivateFile):
    """A rotated log file of several processes, which write and rotate it in turn, by a lock beside it.

    It is open for one line at a time, so that no process writes to a file that another one has rotated. A line that
    cannot be written is left out in silence: it is no reason to end a command.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Append a record."""
        with suppress(OSError), os.fdopen(_descriptor(f"{self.baseFilename}.lock"), "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            super().emit(record)
            self.close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name of the standard library
        """Leave the terminal to the command."""


def _descriptor(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
