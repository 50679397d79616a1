"""What a folder of files says, taken together: which passages there are at its end, and what is known of them.

A survey is a SQLite database on local disk, so that its memory does not grow with the literature: of all of PubMed it
is some gigabytes. It is committed file by file: one that was broken off goes on behind the last file that it holds.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from posology import __version__
from posology.corpus.files import read
from posology.corpus.items import Deletion, Notice, NoticeKind, Parts, Record
from posology.errors import BadFile, BadRecord, IndexFault, SyncRefused
from posology.index.schema import digest
from posology.index.sync.notices import Said

#: of the tables below, and of what is in them: another version of Posology may read the same files otherwise
_FORMAT = zlib.crc32(f"2 {__version__}".encode()) >> 1
#: kB of pages that are held in memory
_CACHE = 200_000
#: records of a file after which progress is told
_TOLD = 2_000
#: passages that are noted together as being in the index: what a rollback would need is kept on disk
_NOTED = 100_000
_TABLES = """
CREATE TABLE files(
    number INTEGER PRIMARY KEY, path BLOB, name TEXT, size INTEGER, mtime_ns INTEGER,
    records INTEGER, deletions INTEGER, notices INTEGER, bad INTEGER);
CREATE TABLE records(
    id TEXT PRIMARY KEY, parent TEXT, digest BLOB, file INTEGER, place INTEGER, there INTEGER DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX parts ON records(parent) WHERE parent IS NOT NULL;
CREATE TABLE notices(source TEXT, target TEXT, kind TEXT, PRIMARY KEY(source, target, kind)) WITHOUT ROWID;
CREATE TABLE bad(file INTEGER, line INTEGER, record TEXT, reason TEXT);
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Surveyed:
    """A file that was read."""

    #: resolved, as the file system writes it: an article without an id of its own has one of its file's and folder's names
    path: bytes
    name: str
    #: bytes
    size: int
    mtime_ns: int
    #: good records
    records: int = 0
    deletions: int = 0
    notices: int = 0
    #: records that cannot be read
    bad: int = 0

    def is_still(self, path: Path) -> bool:
        """Whether the file is at this one's place, and has its size and time of change."""
        try:
            stat = path.stat()
        except FileNotFoundError:
            return False
        found = (_place(path), path.name, stat.st_size, stat.st_mtime_ns)
        return found == (self.path, self.name, self.size, self.mtime_ns)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """An index beside a survey: how many passages."""

    #: that are in both, and the same
    same: int = 0
    #: that are in both, and not the same
    changed: int = 0
    #: that only the index has
    gone: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Lack:
    """What of a file an index lacks."""

    #: place of the first such record
    first: int
    #: how many they are
    count: int


class Survey:
    """The passages and notices that remain when all files have been read in order. Blocking."""

    def __init__(self, connection: sqlite3.Connection, where: str) -> None:
        self._db = connection
        self._where = where

    @classmethod
    @contextmanager
    def open(cls, path: Path | None) -> Iterator[Survey]:
        """The survey that is kept there, or a new one.

        Args:
            path: a file; ``None``: one without a name that is gone when it is closed, where SQLite keeps temporary files
                (the folder that ``TMPDIR`` names, or ``/var/tmp``).

        Raises:
            IndexFault: it cannot be read or written, as when the disk is full.
        """
        where = "a temporary file" if path is None else str(path)
        try:
            with closing(_connect(path)) as connection:
                yield cls(connection, where)
        except sqlite3.Error as error:
            raise IndexFault(
                f"what was read of the folder cannot be kept in {where}: see that there is room on its disk, "
                f"and remove it if it is damaged ({error})",
                index=where,
            ) from error

    def read(
        self, files: Iterable[Path], told: Callable[[int, Path, int, int], None]
    ) -> BadFile | None:
        """Read what has not been read yet.

        Args:
            files: all, in order. Where those that were read are not the first of them, all is read anew.
            told: is told now and then how many files are read, which is being read, its last place, and how many records
                were read of it.

        Returns:
            The first file that cannot be read to its end; nothing of it, and of those after it, is in the survey.

        Raises:
            SyncRefused: a file was changed while it was read.
        """
        wanted = list(files)
        known = self.files
        if len(known) > len(wanted) or not all(
            one.is_still(path) for one, path in zip(known, wanted, strict=False)
        ):
            self._clear()
            known = ()
        for number, path in enumerate(wanted[len(known) :], start=len(known)):
            with self._db:
                broken = self._read(number, path, told)
                if broken is not None:
                    self._db.rollback()
                    return broken
        return None

    @property
    def files(self) -> tuple[Surveyed, ...]:
        """The files that were read, in order."""
        names = ("path", "name", "size", "mtime_ns", "records", "deletions", "notices", "bad")
        rows = self._db.execute(f"SELECT {', '.join(names)} FROM files ORDER BY number")  # noqa: S608 (names of our own)
        return tuple(Surveyed(**dict(zip(names, row, strict=True))) for row in rows)

    @property
    def passages(self) -> int:
        """How many there are when all files have been read."""
        return self._count("SELECT count(*) FROM records")

    @property
    def said(self) -> Said:
        """By whom, then of what, what is published."""
        found: dict[str, dict[str, set[NoticeKind]]] = {}
        for source, target, kind in self._db.execute("SELECT source, target, kind FROM notices"):
            found.setdefault(source, {}).setdefault(target, set()).add(NoticeKind(kind))
        return found

    def bad(self, files: Iterable[Path], most: int) -> list[BadRecord]:
        """The first records that cannot be read."""
        paths = list(files)
        rows = self._db.execute(
            "SELECT file, line, record, reason FROM bad ORDER BY file, line LIMIT ?", (most,)
        )
        return [
            BadRecord(reason, path=str(paths[file]), line=line, record=record)
            for file, line, record, reason in rows
        ]

    def holds(self, name: str, found: str) -> bool:
        """Whether the passage of this id is there, and has this digest."""
        return self._digest(name) == bytes.fromhex(found)

    def compare(self, rows: Iterable[tuple[str, str]], *, note: bool) -> Compared:
        """What an index has of it.

        Args:
            rows: ids and digests of all its passages.
            note: whether :meth:`lacking` and :meth:`wanted` are to leave out what is there and the same.
        """
        same = changed = gone = 0
        if note:
            with self._db:
                self._db.execute("UPDATE records SET there = 0 WHERE there")
        for name, found in rows:
            known = self._digest(name)
            if known is None:
                gone += 1
            elif known != bytes.fromhex(found):
                changed += 1
            else:
                same += 1
                if note:
                    self._db.execute("UPDATE records SET there = 1 WHERE id = ?", (name,))
                    if same % _NOTED == 0:
                        self._db.commit()
        self._db.commit()
        return Compared(same=same, changed=changed, gone=gone)

    def lacking(self) -> dict[int, Lack]:
        """The files that hold what the index lacks, by their number from 0, in order."""
        rows = self._db.execute(
            "SELECT file, min(place), count(*) FROM records WHERE NOT there GROUP BY file ORDER BY file"
        )
        return {file: Lack(first=first, count=count) for file, first, count in rows}

    def wanted(self, number: int, path: Path, lack: Lack) -> Iterator[Record]:
        """The records of a file that the index lacks, in order.

        Raises:
            SyncRefused: the file is not what it was when it was surveyed; where nothing but its content shows it, the
                next run reads all files anew.
        """
        if not self.files[number].is_still(path):
            raise moved(path)
        left = lack.count
        for item in read(path, after=lack.first - 1):
            if isinstance(item, Record):
                row = self._db.execute(
                    "SELECT digest FROM records WHERE id = ? AND file = ? AND place = ? AND NOT there",
                    (item.passage.id, number, item.line),
                ).fetchone()
                if row is not None:
                    if row[0] != bytes.fromhex(digest(item.passage)):
                        break
                    left -= 1
                    yield item
                    if not left:
                        return
        if self.files[number].is_still(path):
            # the survey is at fault, and the next run would believe it once more
            self._clear()
        raise moved(path)

    def _read(
        self, number: int, path: Path, told: Callable[[int, Path, int, int], None]
    ) -> BadFile | None:
        try:
            stat = path.stat()
        except OSError as error:
            return BadFile(error.strerror or str(error), path=str(path))
        counts = dict.fromkeys(("records", "deletions", "notices", "bad"), 0)
        place: int | None = None
        #: who has said something at this place: what they said before is taken back once
        spoken: set[str] = set()
        for item in read(path):
            if isinstance(item, BadFile):
                return item
            if item.line != place:
                place, spoken = item.line, set()
            match item:
                case Record(passage=passage):
                    counts["records"] += 1
                    self._db.execute(
                        "INSERT OR REPLACE INTO records(id, parent, digest, file, place) VALUES (?, ?, ?, ?, ?)",
                        (passage.id, passage.parent, bytes.fromhex(digest(passage)), number, place),
                    )
                    self._speaks(passage.id, spoken)
                case Deletion():
                    counts["deletions"] += 1
                    self._db.execute("DELETE FROM records WHERE id = ?", (item.id,))
                    self._db.execute("DELETE FROM records WHERE parent = ?", (item.id,))
                    for by in item.silenced:
                        self._speaks(by, spoken)
                case Parts():
                    rows = self._db.execute("SELECT id FROM records WHERE parent = ?", (item.id,))
                    old = [(name,) for (name,) in rows if not item.keep(name)]
                    self._db.executemany("DELETE FROM records WHERE id = ?", old)
                case Notice():
                    counts["notices"] += 1
                    self._speaks(item.by, spoken)
                    self._db.execute(
                        "INSERT OR IGNORE INTO notices VALUES (?, ?, ?)",
                        (item.by, item.target, str(item.kind)),
                    )
                case BadRecord():
                    counts["bad"] += 1
                    self._db.execute(
                        "INSERT INTO bad VALUES (?, ?, ?, ?)",
                        (number, item.line, item.record, item.reason),
                    )
            if counts["records"] % _TOLD == 0:
                told(number, path, item.line, counts["records"])
        self._db.execute(
            "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, _place(path), path.name, stat.st_size, stat.st_mtime_ns, *counts.values()),
        )
        if not self.files[number].is_still(path):
            raise moved(path)
        told(number + 1, path, place or 0, counts["records"])
        return None

    def _speaks(self, by: str, spoken: set[str]) -> None:
        if by not in spoken:
            spoken.add(by)
            self._db.execute("DELETE FROM notices WHERE source = ?", (by,))

    def _digest(self, name: str) -> bytes | None:
        row = self._db.execute("SELECT digest FROM records WHERE id = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def _clear(self) -> None:
        with self._db:
            for table in ("files", "records", "notices", "bad"):
                self._db.execute(f"DELETE FROM {table}")  # noqa: S608 (names of our own)

    def _count(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])


def _place(path: Path) -> bytes:
    return os.fsencode(path.resolve())


def _connect(path: Path | None) -> sqlite3.Connection:
    if path is not None and path.exists() and not _readable(path):
        path.unlink()
        path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
    # one thread at a time uses it: files are read ahead in another one
    connection = sqlite3.connect("" if path is None else path, check_same_thread=False)
    connection.execute(f"PRAGMA cache_size = -{_CACHE}")
    if not connection.execute("PRAGMA user_version").fetchone()[0]:
        connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_FORMAT}; COMMIT;")
    return connection


def _readable(path: Path) -> bool:
    """Whether a survey is kept there, and of this format: else all is read anew."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            return bool(connection.execute("PRAGMA user_version").fetchone()[0] in (0, _FORMAT))
    except sqlite3.DatabaseError:
        return False


def moved(path: Path) -> SyncRefused:
    """What is said of a file that is another one than when it was surveyed."""
    return SyncRefused(
        f"{path.name} was changed while it was read: run this again when the folder is complete",
        files=(path.name,),
    )
