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
from hashlib import blake2b
from pathlib import Path

from posology.errors import ConfigurationError

log = logging.getLogger(__name__)

#: seconds that a writer waits for another
PATIENCE = 10.0
#: seconds between two trials of what SQLite does not wait for itself
_PAUSE = 0.01
#: keys of one statement, fewer than the variables that any SQLite takes
_BATCH = 500
#: says that a file is one of these, and in which form; 1 had no checksums
_FORMAT, _WITHOUT_SUMS = 2, 1
#: bytes of an entry's checksum
_SUM = 8
#: of an error's code, the part that says which kind it is
_PRIMARY = 0xFF
#: what SQLite says of a file whose own structure is damaged
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
#: what SQLite raises, and Python where a message quotes a part of the file that is no text any more
_FAULTS = (sqlite3.Error, UnicodeDecodeError)
#: of what type a damaged entry's fields are, nobody knows
_READ = (
    "SELECT CAST(key AS BLOB), CAST(value AS BLOB), CAST(sum AS BLOB) FROM kept WHERE key IN ({})"
)
#: unless another has put it right meanwhile
_REMOVE = "DELETE FROM kept WHERE key = ? AND CAST(value AS BLOB) IS ? AND CAST(sum AS BLOB) IS ?"
#: what to do about a file that is damaged
_SET_ASIDE = (
    "it is damaged, or no memory at all. What it holds can be computed anew: move it away, or set POSOLOGY_MEMORY to "
    "another file"
)


class SqliteMemory:
    """A :class:`~posology.seams.Memory` in an SQLite file, whose readers do not wait for its writer (WAL).

    It saves time, and no question fails for a file that is busy, full, damaged or gone: what cannot be read counts
    as not there, what cannot be written is not kept, and the log says so once. Each entry has a checksum, since SQLite
    has none of what it stores: an entry that is damaged counts as not there and is removed, so that it is
    computed anew and kept; the log says so once. Nothing else is ever removed; delete the file to begin anew. The
    file must be on a disk of this machine, as WAL needs.

    Raises:
        ConfigurationError: the file cannot be opened, is something else, or its beginning is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        #: a connection a thread, and none that was made before a fork
        self._local = threading.local()
        #: what the log has said
        self._told: set[str] = set()
        try:
            self._make()
        except _FAULTS as error:
            wanted = (
                _SET_ASIDE
                if _damaged(error)
                else "set POSOLOGY_MEMORY to a file on a disk of this machine that can be written"
            )
            raise ConfigurationError(
                f"{path} cannot serve as memory ({error}): {wanted}"
            ) from error

    def _make(self) -> None:
        """Make the file, or find that it is one of these; whoever opens it at the same time waits."""
        with closing(self._connect()) as connection:
            # in one piece: who looks in between would find a table of an unknown form
            connection.execute("BEGIN IMMEDIATE")
            (made,) = connection.execute("PRAGMA user_version").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if made not in (0, _WITHOUT_SUMS, _FORMAT) or (made == 0 and tables):
                raise ConfigurationError(
                    f"{self._path} is no memory of this version: move it away, or set POSOLOGY_MEMORY to "
                    "another file"
                )
            if made == _WITHOUT_SUMS:
                # what it holds is taken as it is: whether it was damaged before, nobody can tell
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
        """What is kept of these keys."""
        found: dict[bytes, bytes] = {}
        damaged = []
        try:
            connection = self._own()
            for batch in _batches(keys):
                read = _READ.format(",".join("?" * len(batch)))
                for key, value, made in connection.execute(read, batch):
                    if _sound(key, value, made):
                        found[key] = value
                    else:
                        damaged.append((key, value, made))
        except _FAULTS as error:
            self._complain("read", error)
        if damaged:
            self._remove(damaged)
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep; what is there already stays as it is."""
        if not values:
            return
        entries = [(key, value, _checksum(key, value)) for key, value in values.items()]
        try:
            with self._own() as connection:
                connection.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?, ?)", entries)
        except _FAULTS as error:
            self._complain("written", error)

    def _remove(self, damaged: Sequence[tuple[bytes | None, bytes | None, bytes | None]]) -> None:
        """Make room for what is computed anew."""
        if self._is_new("damaged entries"):
            log.warning(
                "%s holds entries that are damaged: they are computed anew, and nothing more is said of them. See "
                "to the disk",
                self._path,
            )
        try:
            with self._own() as connection:
                connection.executemany(_REMOVE, damaged)
        except _FAULTS as error:
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
        except _FAULTS:
            connection.close()
            raise
        return connection

    def _complain(self, done: str, error: Exception) -> None:
        if _damaged(error):
            # somebody must see to it, also where the file was only busy or full before
            if self._is_new("damaged file"):
                log.error(
                    "%s cannot be used, and saves nothing (%s): %s", self._path, error, _SET_ASIDE
                )
        elif self._is_new("unusable file"):
            log.warning("%s cannot be %s, and saves nothing: %s", self._path, done, error)

    def _is_new(self, told: str) -> bool:
        """Whether the log has not said it yet; from now on it has."""
        new = told not in self._told
        self._told.add(told)
        return new


def _damaged(error: Exception) -> bool:
    """Whether the file itself is, not an entry of it."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return isinstance(error, UnicodeDecodeError) or code & _PRIMARY in _DAMAGED


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
            if error.sqlite_errorcode & _PRIMARY != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _checksum(key: bytes, value: bytes) -> bytes:
    """Of an entry: its value under another key is damage, too."""
    return blake2b(value, digest_size=_SUM, key=blake2b(key).digest()).digest()


def _sound(key: bytes | None, value: bytes | None, made: bytes | None) -> bool:
    """Whether an entry is what was put, or anything else that a damaged record may hold."""
    return key is not None and value is not None and made == _checksum(key, value)


def _batches(keys: Sequence[bytes]) -> Iterator[list[bytes]]:
    for first in range(0, len(keys), _BATCH):
        yield list(keys[first : first + _BATCH])
