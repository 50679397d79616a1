"""Persistent cache: in a file that threads and processes share, or in a process."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import blake2b
from pathlib import Path

from posology.errors import ConfigurationError

log = logging.getLogger(__name__)

#: seconds that a writer waits for another writer
PATIENCE = 10.0
#: seconds between two tries where SQLite itself does not wait
_PAUSE = 0.01
#: keys of one statement, below SQLite's limit of variables
_BATCH = 500
#: version of the file's format; 1 had no checksums
_FORMAT, _WITHOUT_SUMS = 2, 1
#: bytes of an entry's checksum
_SUM = 8
#: mask of the kind in an error's code
_PRIMARY = 0xFF
#: SQLite's codes for a damaged file
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
#: errors of SQLite, and of Python for a message with damaged text
_FAULTS = (sqlite3.Error, UnicodeDecodeError)
#: casts, since a damaged entry's fields may have any type
_READ = (
    "SELECT CAST(key AS BLOB), CAST(value AS BLOB), CAST(sum AS BLOB) FROM kept WHERE key IN ({})"
)
#: unless another process has repaired it
_REMOVE = "DELETE FROM kept WHERE key = ? AND CAST(value AS BLOB) IS ? AND CAST(sum AS BLOB) IS ?"
#: advice for a damaged file
_SET_ASIDE = (
    "it is damaged, or not a memory file. Move it away, and its content is recomputed; or set POSOLOGY_MEMORY to "
    "another file"
)


class SqliteMemory:
    """A :class:`~posology.seams.Memory` in an SQLite file, whose readers do not wait for its writer (WAL).

    No question fails because the file is busy, full, damaged or gone: entries that cannot be read count as
    missing, entries that cannot be written are dropped, and each is logged once. Each entry has a checksum, since
    SQLite has none: a damaged entry is removed and recomputed, logged once. No other entry is ever removed; delete
    the file to start anew. The file must be on a local disk, as WAL requires.

    Raises:
        ConfigurationError: the file cannot be opened, has another format, or its header is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        #: one connection for each thread, not shared across a fork
        self._local = threading.local()
        #: events that were logged
        self._logged: set[str] = set()
        try:
            self._make()
        except _FAULTS as error:
            wanted = (
                _SET_ASIDE
                if _damaged(error)
                else "set POSOLOGY_MEMORY to a writable file on a local disk"
            )
            raise ConfigurationError(
                f"{path} cannot be used as memory ({error}): {wanted}"
            ) from error

    def _make(self) -> None:
        """Create the file, or check its format; other processes that open it wait."""
        with closing(self._connect()) as connection:
            # needs no lock, and no room on a full disk
            if connection.execute("PRAGMA user_version").fetchone() == (_FORMAT,):
                return
            # in one transaction: others must not see a table of another format
            connection.execute("BEGIN IMMEDIATE")
            (made,) = connection.execute("PRAGMA user_version").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if made not in (0, _WITHOUT_SUMS, _FORMAT) or (made == 0 and tables):
                raise ConfigurationError(
                    f"{self._path} is not a memory file of this version: move it away, or set POSOLOGY_MEMORY to "
                    "another file"
                )
            if made == _WITHOUT_SUMS:
                # entries are accepted as they are: earlier damage cannot be detected
                connection.create_function("checksum", 2, _checksum, deterministic=True)
                connection.execute("ALTER TABLE kept ADD COLUMN sum BLOB NOT NULL DEFAULT x''")
                connection.execute(
                    "UPDATE kept SET sum = checksum(CAST(key AS BLOB), CAST(value AS BLOB))"
                )
            connection.execute(
                "CREATE TABLE IF NOT EXISTS kept "
                "(key BLOB PRIMARY KEY, value BLOB NOT NULL, sum BLOB NOT NULL DEFAULT x'') WITHOUT ROWID"
            )
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
            connection.commit()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of the keys that are present."""
        values: dict[bytes, bytes] = {}
        damaged = []
        try:
            connection = self._own()
            for batch in _batches(keys):
                read = _READ.format(",".join("?" * len(batch)))
                for key, value, made in connection.execute(read, batch):
                    if _sound(key, value, made):
                        values[key] = value
                    else:
                        damaged.append((key, value, made))
        except _FAULTS as error:
            self._complain("read", error)
        if damaged:
            self._remove(damaged)
        return values

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Store values; present keys keep theirs."""
        if not values:
            return
        entries = [(key, value, _checksum(key, value)) for key, value in values.items()]
        try:
            with self._own() as connection:
                connection.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?, ?)", entries)
        except _FAULTS as error:
            self._complain("written", error)

    def _remove(self, damaged: Sequence[tuple[bytes | None, bytes | None, bytes | None]]) -> None:
        """Remove damaged entries, so that they are recomputed."""
        if self._is_new("damaged entries"):
            log.warning(
                "memory has damaged entries path=%s: they are recomputed, and this is logged once. Check the disk",
                self._path,
            )
        try:
            with self._own() as connection:
                connection.executemany(_REMOVE, damaged)
        except _FAULTS as error:
            self._complain("written", error)

    def close(self) -> None:
        """Close the connection of this thread; the next use reopens it."""
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
        with suppress(OSError):
            # what compressors kept of the literature is nobody else's; the files beside it get the same mode
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(
            self._path, timeout=PATIENCE, check_same_thread=False, factory=_Connection
        )
        try:
            _write_ahead(connection)
            # the last writes may be lost if the machine fails, not if the process does: harmless
            connection.execute("PRAGMA synchronous = NORMAL")
        except _FAULTS:
            connection.close()
            raise
        return connection

    def _complain(self, done: str, error: Exception) -> None:
        if _damaged(error):
            # needs attention, also after warnings that the file was busy or full
            if self._is_new("damaged file"):
                log.error("memory not used path=%s error=%s: %s", self._path, error, _SET_ASIDE)
        elif self._is_new("unusable file"):
            log.warning("memory not used path=%s: cannot be %s: %s", self._path, done, error)

    def _is_new(self, told: str) -> bool:
        """Return whether an event is not logged yet, and mark it as logged."""
        new = told not in self._logged
        self._logged.add(told)
        return new


class _Connection(sqlite3.Connection):
    """Is closed when its thread has ended: Python 3.13 warns of connections that are only dropped."""

    def __del__(self) -> None:
        """Close it, in any thread; what could not be opened is closed."""
        with suppress(sqlite3.ProgrammingError):
            self.close()


def _damaged(error: Exception) -> bool:
    """Whether an error means that the file itself is damaged, not an entry."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return isinstance(error, UnicodeDecodeError) or code & _PRIMARY in _DAMAGED


class ProcessMemory:
    """A :class:`~posology.seams.Memory` in this process; the least recently used entries are dropped first.

    Args:
        entries: kept at most.
    """

    def __init__(self, *, entries: int = 100_000) -> None:
        self._entries = entries
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of the keys that are present."""
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
            for key in found:
                self._kept.move_to_end(key)
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Store values; present keys keep theirs."""
        with self._lock:
            for key, value in values.items():
                self._kept.setdefault(key, value)
            while len(self._kept) > self._entries:
                self._kept.popitem(last=False)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn on write-ahead logging, with retries: SQLite does not wait if another process does the same."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _checksum(key: bytes, value: bytes) -> bytes:
    """Return the checksum of an entry: a value under another key is damage, too."""
    return blake2b(value, digest_size=_SUM, key=blake2b(key).digest()).digest()


def _sound(key: bytes | None, value: bytes | None, made: bytes | None) -> bool:
    """Whether an entry is intact."""
    return key is not None and value is not None and made == _checksum(key, value)


def _batches(keys: Sequence[bytes]) -> Iterator[list[bytes]]:
    for first in range(0, len(keys), _BATCH):
        yield list(keys[first : first + _BATCH])
