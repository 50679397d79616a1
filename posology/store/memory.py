"""What was computed once, kept for good: in a file that threads and processes share, or in a process."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from posology.errors import ConfigurationError

log = logging.getLogger(__name__)

#: seconds that a writer waits for another
PATIENCE = 10.0
#: seconds between two trials of what SQLite does not wait for itself
_PAUSE = 0.01
#: keys of one statement, fewer than the variables that any SQLite takes
_BATCH = 500
#: says that a file is one of these, and in which form
_FORMAT = 1


class SqliteMemory:
    """A :class:`~posology.seams.Memory` in an SQLite file, whose readers do not wait for its writer (WAL).

    It saves time, and no question fails for it: what cannot be read counts as not there, what cannot be
    written is not kept, and the log says so once. Nothing is ever removed; delete the file to begin anew. The
    file must be on a disk of this machine, as WAL needs.

    Raises:
        ConfigurationError: the file cannot be opened, or is something else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        #: a connection a thread, and none that was made before a fork
        self._local = threading.local()
        self._complained = False
        try:
            self._make()
        except sqlite3.Error as error:
            raise ConfigurationError(
                f"{path} cannot serve as memory ({error}): set POSOLOGY_MEMORY to a file on a disk of this "
                "machine that can be written"
            ) from error

    def _make(self) -> None:
        """Make the file, or find that it is one of these; whoever opens it at the same time waits."""
        with closing(self._connect()) as connection:
            # in one piece: who looks in between would find a table of an unknown form
            connection.execute("BEGIN IMMEDIATE")
            (made,) = connection.execute("PRAGMA user_version").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if made not in (0, _FORMAT) or (made == 0 and tables):
                raise ConfigurationError(
                    f"{self._path} is no memory of this version: move it away, or set POSOLOGY_MEMORY to "
                    "another file"
                )
            connection.execute(
                "CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
            )
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
            connection.commit()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """What is kept of these keys."""
        found: dict[bytes, bytes] = {}
        try:
            connection = self._own()
            for batch in _batches(keys):
                holes = ",".join("?" * len(batch))
                found.update(
                    connection.execute(f"SELECT key, value FROM kept WHERE key IN ({holes})", batch)  # noqa: S608
                )
        except sqlite3.Error as error:
            self._complain("read", error)
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep; what is there already stays as it is."""
        if not values:
            return
        try:
            with self._own() as connection:
                connection.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?)", values.items())
        except sqlite3.Error as error:
            self._complain("written", error)

    def close(self) -> None:
        """Close the connection of this thread; it is opened again when it is needed."""
        if (connection := getattr(self._local, "connection", None)) is not None:
            connection.close()
            del self._local.connection

    def _own(self) -> sqlite3.Connection:
        if getattr(self._local, "process", None) != os.getpid():
            self._local.connection = self._connect()
            self._local.process = os.getpid()
        elif getattr(self._local, "connection", None) is None:
            self._local.connection = self._connect()
        connection: sqlite3.Connection = self._local.connection
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=PATIENCE)
        try:
            _write_ahead(connection)
            # the last writes may be lost when the machine dies, not when the process does: no harm
            connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _complain(self, done: str, error: sqlite3.Error) -> None:
        if not self._complained:
            self._complained = True
            log.warning("%s cannot be %s, and saves nothing: %s", self._path, done, error)


class ProcessMemory:
    """A :class:`~posology.seams.Memory` for as long as the process lives; what was used longest ago goes first.

    Args:
        entries: kept at most.
    """

    def __init__(self, *, entries: int = 100_000) -> None:
        self._entries = entries
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """What is kept of these keys."""
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
            for key in found:
                self._kept.move_to_end(key)
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep; what is there already stays as it is."""
        with self._lock:
            for key, value in values.items():
                self._kept.setdefault(key, value)
            while len(self._kept) > self._entries:
                self._kept.popitem(last=False)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn on write-ahead logging, which fails at once, whatever the patience, where another does the same."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _batches(keys: Sequence[bytes]) -> Iterator[list[bytes]]:
    for first in range(0, len(keys), _BATCH):
        yield list(keys[first : first + _BATCH])
