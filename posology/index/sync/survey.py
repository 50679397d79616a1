"""Survey of a folder: the passages and notices that its files hold, taken together.

A survey is a SQLite database on local disk, so that memory does not grow with the literature; for all of PubMed it has
some gigabytes. It is committed file by file: an interrupted survey resumes after its last file.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from posology.corpus.files import read
from posology.corpus.items import Deletion, Notice, NoticeKind, Parts, Record, Remark
from posology.errors import BadFile, BadRecord, IndexFault, SyncRefused
from posology.index.schema import digest
from posology.index.sync.notices import NoticesBySource
from posology.version import __version__

#: version of the tables and their content: another version of Posology may read the same files differently
_FORMAT = zlib.crc32(f"4 {__version__}".encode()) >> 1
#: kB of pages cached in memory
_CACHE = 200_000
#: records of a file between two progress reports
_REPORTED = 2_000
#: passages that one transaction notes as present in the index: its rollback journal is kept on disk
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
CREATE TABLE remarks(file INTEGER, line INTEGER, record TEXT, reason TEXT);
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Surveyed:
    """A file of a survey."""

    #: resolved, as the file system encodes it: an article without an id gets one from its file's and folder's names
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
        """Return whether a file has this path, size and modification time."""
        try:
            stat = path.stat()
        except FileNotFoundError:
            return False
        found = (_place(path), path.name, stat.st_size, stat.st_mtime_ns)
        return found == (self.path, self.name, self.size, self.mtime_ns)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """Comparison of an index with a survey, in passages."""

    #: in both, with the same content
    same: int = 0
    #: in both, with different content
    changed: int = 0
    #: only in the index
    gone: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Lack:
    """Records of a file that an index lacks."""

    #: place of the first such record
    first: int
    #: number of such records
    count: int


class Survey:
    """Passages and notices that remain when all files have been read in order. Blocking."""

    def __init__(self, connection: sqlite3.Connection, where: str) -> None:
        self._db = connection
        self._where = where

    @classmethod
    @contextmanager
    def open(cls, path: Path | None) -> Iterator[Survey]:
        """Open the survey in a file, or a new one.

        Args:
            path: the file; ``None``: an unnamed temporary file, removed on closing, where SQLite keeps those (``TMPDIR``,
                or ``/var/tmp``).

        Raises:
            IndexFault: the file cannot be read or written, e.g. because the disk is full.
        """
        where = "a temporary file" if path is None else str(path)
        try:
            with closing(_connect(path)) as connection:
                yield cls(connection, where)
        except sqlite3.Error as error:
            raise IndexFault(
                f"the survey of the folder cannot be written to {where} ({error}): check the free disk space, "
                "and remove the file if it is damaged",
                index=where,
            ) from error

    def read(
        self, files: Iterable[Path], report: Callable[[int, Path, int, int], None]
    ) -> BadFile | None:
        """Read the files that have not been read yet.

        Args:
            files: all files, in order. If they do not begin with the files read before, everything is read again.
            report: called now and then with the number of files read, the current file, its last place, and the number
                of its records read.

        Returns:
            The first file that cannot be read to its end; the survey holds nothing of it and of later files.

        Raises:
            SyncRefused: a file changed while it was read.
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
                broken = self._read(number, path, report)
                if broken is not None:
                    self._db.rollback()
                    return broken
        return None

    @property
    def files(self) -> tuple[Surveyed, ...]:
        """Return the files read, in order."""
        names = ("path", "name", "size", "mtime_ns", "records", "deletions", "notices", "bad")
        rows = self._db.execute(f"SELECT {', '.join(names)} FROM files ORDER BY number")  # noqa: S608 (names of our own)
        return tuple(Surveyed(**dict(zip(names, row, strict=True))) for row in rows)

    @property
    def passages(self) -> int:
        """Return the number of passages after all files."""
        return self._count("SELECT count(*) FROM records")

    @property
    def notices(self) -> NoticesBySource:
        """Return the notices after all files."""
        found: dict[str, dict[str, set[NoticeKind]]] = {}
        for source, target, kind in self._db.execute("SELECT source, target, kind FROM notices"):
            found.setdefault(source, {}).setdefault(target, set()).add(NoticeKind(kind))
        return found

    def bad(self, files: Iterable[Path], most: int) -> list[BadRecord]:
        """Return the first unreadable records, at most ``most``."""
        return [
            BadRecord(reason, path=str(path), line=line, record=record)
            for path, line, record, reason in self._said("bad", files, most)
        ]

    @property
    def remarked(self) -> int:
        """Return the number of remarks."""
        return self._count("SELECT count(*) FROM remarks")

    def remarks(self, files: Iterable[Path], most: int) -> list[Remark]:
        """Return the first remarks on records, at most ``most``."""
        return [
            Remark(reason=reason, path=path, line=line, record=record)
            for path, line, record, reason in self._said("remarks", files, most)
        ]

    def holds(self, name: str, found: str) -> bool:
        """Return whether the survey holds a passage with this id and digest."""
        known = self._digest(name)
        # a provisional one equals none
        return known is not None and known.hex() == found

    def compare(self, rows: Iterable[tuple[str, str]], *, note: bool) -> Compared:
        """Compare an index with the survey.

        Args:
            rows: ids and digests of all its passages.
            note: whether :meth:`lacking` and :meth:`wanted` then leave out the unchanged passages.
        """
        same = changed = gone = 0
        if note:
            with self._db:
                self._db.execute("UPDATE records SET there = 0 WHERE there")
        for name, found in rows:
            known = self._digest(name)
            if known is None:
                gone += 1
            elif known.hex() != found:
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
        """Return the files with records that the index lacks, by file number from 0, in order."""
        rows = self._db.execute(
            "SELECT file, min(place), count(*) FROM records WHERE NOT there GROUP BY file ORDER BY file"
        )
        return {file: Lack(first=first, count=count) for file, first, count in rows}

    def wanted(self, number: int, path: Path, lack: Lack) -> Iterator[Record]:
        """Yield the records of a file that the index lacks, in order.

        Raises:
            SyncRefused: the file changed since it was surveyed. If only its content shows it, the next run reads all
                files again.
        """
        if not self.files[number].is_still(path):
            raise changed_while_read(path)
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
            # the survey is wrong, and the next run must not use it again
            self._clear()
        raise changed_while_read(path)

    def _read(
        self, number: int, path: Path, report: Callable[[int, Path, int, int], None]
    ) -> BadFile | None:
        try:
            stat = path.stat()
        except OSError as error:
            return BadFile(error.strerror or str(error), path=str(path))
        counts = dict.fromkeys(("records", "deletions", "notices", "bad"), 0)
        place: int | None = None
        #: sources of notices at this place: their earlier notices are withdrawn once
        sources: set[str] = set()
        for item in read(path):
            if isinstance(item, BadFile):
                return item
            if item.line != place:
                place, sources = item.line, set()
            kind = self._add(number, item, sources)
            if kind is not None:
                counts[kind] += 1
            if counts["records"] % _REPORTED == 0:
                report(number, path, item.line, counts["records"])
        self._db.execute(
            "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, _place(path), path.name, stat.st_size, stat.st_mtime_ns, *counts.values()),
        )
        if not self.files[number].is_still(path):
            raise changed_while_read(path)
        report(number + 1, path, place or 0, counts["records"])
        return None

    def _add(
        self,
        number: int,
        item: Record | Deletion | Parts | Notice | Remark | BadRecord,
        sources: set[str],
    ) -> str | None:
        """Store an item of a file; return the count that it adds to, if any."""
        match item:
            case Record(passage=passage):
                self._db.execute(
                    "INSERT OR REPLACE INTO records(id, parent, digest, file, place) VALUES (?, ?, ?, ?, ?)",
                    (passage.id, passage.parent, bytes.fromhex(digest(passage)), number, item.line),
                )
                if item.states_standing:
                    self._withdraw(passage.id, sources)
                return "records"
            case Deletion():
                self._db.execute("DELETE FROM records WHERE id = ?", (item.id,))
                self._db.execute("DELETE FROM records WHERE parent = ?", (item.id,))
                for by in item.silenced:
                    self._withdraw(by, sources)
                return "deletions"
            case Parts():
                rows = self._db.execute("SELECT id FROM records WHERE parent = ?", (item.id,))
                old = [(name,) for (name,) in rows if not item.keep(name)]
                self._db.executemany("DELETE FROM records WHERE id = ?", old)
                if item.whole:
                    self._db.execute("DELETE FROM records WHERE id = ?", (item.id,))
                    self._withdraw(item.id, sources)
                return None
            case Notice():
                self._withdraw(item.by, sources)
                row = (item.by, item.target, str(item.kind))
                self._db.execute("INSERT OR IGNORE INTO notices VALUES (?, ?, ?)", row)
                return "notices"
            case Remark():
                self._say("remarks", number, item)
                return None
            case BadRecord():
                self._say("bad", number, item)
                return "bad"

    def _say(self, table: str, number: int, item: Remark | BadRecord) -> None:
        self._db.execute(
            f"INSERT INTO {table} VALUES (?, ?, ?, ?)",  # noqa: S608 (a name of our own)
            (number, item.line, item.record, item.reason),
        )

    def _said(
        self, table: str, files: Iterable[Path], most: int
    ) -> Iterator[tuple[Path, int, str | None, str]]:
        paths = list(files)
        for file, *rest in self._db.execute(
            f"SELECT file, line, record, reason FROM {table} ORDER BY file, line LIMIT ?",  # noqa: S608 (a name of our own)
            (most,),
        ):
            yield paths[file], *rest

    def _withdraw(self, by: str, sources: set[str]) -> None:
        """Remove the notices that a source gave at earlier places."""
        if by not in sources:
            sources.add(by)
            self._db.execute("DELETE FROM notices WHERE source = ?", (by,))

    def _digest(self, name: str) -> bytes | None:
        row = self._db.execute("SELECT digest FROM records WHERE id = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def _clear(self) -> None:
        with self._db:
            for table in ("files", "records", "notices", "bad", "remarks"):
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
    """Return whether a file is a survey of this format; otherwise everything is read again."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            return bool(connection.execute("PRAGMA user_version").fetchone()[0] in (0, _FORMAT))
    except sqlite3.DatabaseError:
        return False


def changed_while_read(path: Path) -> SyncRefused:
    """Return the error for a file that changed after it was surveyed."""
    return SyncRefused(
        f"{path.name} changed while it was read: run the command again when the folder is complete",
        files=(path.name,),
    )
