"""The archive of a ledger: moves old entries of a tenant into files.

First the file is written, kept and read again; then the entries are taken out of Redis, some at a time, and
each time what they changed is added to ``…money:base`` in the same step. So a run that breaks off has lost
nothing, and the next one with the same folder goes on where it stopped, with the same file.

A file is named ``TENANT.FIRST.LAST.jsonl``, after the places of its first and last entry. It has a line an
entry: ``{"place": …, "number": …, "before": …, "fields": {…}}``, in the order of the ledger, with the fields as
they stood there. ``number`` and ``before`` chain the lines, see :mod:`posology.budget.books.archive.chain`.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, cast

from redis.asyncio import Redis

from posology.budget.books.archive.chain import Link, chained, origin, parse, records
from posology.budget.books.archive.files import keep
from posology.budget.books.reader import PAGE, START, Entry, Reader, order
from posology.budget.ledger.scripts import source
from posology.errors import BadFile
from posology.store import keys
from posology.store.connection import translated
from posology.store.scripts import Scripts

#: entries removed in one step: a few milliseconds of Redis's time
STEP = 200
_NAME = re.compile(r"(?P<tenant>.+)\.(?P<first>\d+-\d+)\.(?P<last>\d+-\d+)\.jsonl", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveFile:
    """A file of one tenant's archive, as its name describes it."""

    path: Path
    #: ids of its first and last entry
    first: str
    last: str


def described(path: Path, tenant: str) -> ArchiveFile | None:
    """Return a file of an archive; ``None``: it is another tenant's.

    Raises:
        BadFile: its name is none of an archive's files.
    """
    named = _NAME.fullmatch(path.name)
    if named is None:
        raise BadFile("its name is not TENANT.FIRST.LAST.jsonl, as an archive's", path=str(path))
    if named["tenant"] != tenant:
        return None
    return ArchiveFile(path=path, first=named["first"], last=named["last"])


def archived_files(folder: Path, tenant: str) -> list[ArchiveFile]:
    """Return the files of a tenant in a folder, in the order of the ledger."""
    names = (path for path in folder.glob("*.jsonl") if _NAME.fullmatch(path.name))
    found = [file for path in names if (file := described(path, tenant))]
    return sorted(found, key=lambda file: order(file.first))


@dataclass(frozen=True, kw_only=True, slots=True)
class Archived:
    """A file of entries that are no longer in the ledger."""

    tenant: str
    path: Path
    #: number of entries in the file
    entries: int
    #: number of entries that this run removed from the ledger; fewer after an interrupted run
    removed: int


class Archive:
    """One tenant's archive.

    Args:
        redis: the connection.
        url: for messages.
        tenant: name of the tenant.
        folder: existing folder of the files; an interrupted run can be completed only in its folder.
        step: entries removed at once.
    """

    def __init__(
        self, redis: Redis, url: str, *, tenant: str, folder: Path, step: int = STEP
    ) -> None:
        self._redis = redis
        self._url = url
        self._prefix = keys.prefix(tenant)
        self._reader = Reader(redis, url, tenant, size=PAGE)
        self._run = Scripts(redis, url, source)
        self._tenant = tenant
        self._folder = folder
        self._step = step

    async def __call__(self, before: datetime) -> list[Archived]:
        """Move the entries before a time.

        Returns:
            The files: none where there was nothing to move, more than one where an earlier run had not been
            completed.

        Raises:
            BadFile: a file cannot be written, another process writes it, or what it holds is not what the
                ledger holds; nothing more is taken out.
            StoreUnavailable: Redis is unreachable; repeat it.
        """
        done: list[Archived] = []
        until = f"{int(before.timestamp() * 1000) - 1}"
        with _alone(self._folder / f"{self._tenant}.part") as part:
            # several, if Redis was restored from a backup older than them
            while (begun := await self._begun()) is not None:
                done.append(await self._take_out(begun))
            if (written := await self._write(part, until)) is not None:
                done.append(await self._take_out(written))
        return done

    async def _begun(self) -> ArchiveFile | None:
        """Return the file with the ledger's first entry; ``None``: no run was interrupted."""
        first = (await self._reader.page()).entries[:1]
        if not first:
            return None
        place = order(first[0].place)
        for file in archived_files(self._folder, self._tenant):
            if order(file.first) <= place <= order(file.last):
                return file
        return None

    async def _write(self, part: BinaryIO, until: str) -> ArchiveFile | None:
        """Write a file of all entries up to an entry id; ``None``: there are none."""
        first = last = ""
        link = await self._link()
        try:
            part.truncate(0)
            async for entry in self._reader.entries(START, until):
                line, link = chained(entry, link)
                part.write(line + b"\n")
                first, last = first or entry.place, entry.place
            if not first:
                return None
            path = self._folder / f"{self._tenant}.{first}.{last}.jsonl"
            keep(part, path)
        except OSError as error:
            raise BadFile(error.strerror or str(error), path=part.name) from None
        return ArchiveFile(path=path, first=first, last=last)

    async def _link(self) -> Link:
        """Return the last archived record of the chain."""
        with translated(self._url):
            found = cast("str | None", await self._redis.hget(f"{self._prefix}money:base", "chain"))
        return origin(self._tenant) if found is None else parse(found)

    async def _take_out(self, file: ArchiveFile) -> Archived:
        """Remove the entries of a file from the ledger, after checking the file."""
        steps, entries = await self._checked(file)
        removed = 0
        for last, link in steps:
            count, _ = await self._run(
                "archive", self._prefix, last, self._step, "" if link is None else str(link)
            )
            removed += int(count)
        return Archived(tenant=self._tenant, path=file.path, entries=entries, removed=removed)

    async def _checked(self, file: ArchiveFile) -> tuple[list[tuple[str, Link | None]], int]:
        """Return the last record of each step through a complete file, and its number of entries."""
        path, steps, total, place = str(file.path), list[tuple[str, Link | None]](), 0, START
        ledger = self._reader.entries(START, file.last)
        expected = await anext(ledger, None)
        for record in records(file.path):
            total, place = total + 1, record.entry.place
            if expected is not None and order(place) >= order(expected.place):
                if place != expected.place:
                    break
                if record.entry != expected:
                    raise BadFile(
                        f"its entry {expected.place} differs from the ledger's", path=path
                    )
                expected = await anext(ledger, None)
            if total % self._step == 0 or place == file.last:
                steps.append((place, record.link))
        if expected is not None:
            raise BadFile(f"it lacks the entry {expected.place} of the ledger", path=path)
        if place != file.last:
            raise BadFile(f"it ends with the entry {place}, not {file.last}", path=path)
        return steps, total


def read(path: Path) -> Iterator[Entry]:
    """Yield the entries of an archived file.

    Raises:
        BadFile: it cannot be read, or is none.
    """
    return (record.entry for record in records(path))


@contextmanager
def _alone(part: Path) -> Iterator[BinaryIO]:
    """Open the file to write, under a name for incomplete files."""
    try:
        file = part.open("ab")
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(part)) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            same = os.path.samestat(os.fstat(file.fileno()), part.stat())
        except OSError:
            same = False
        if not same:
            raise BadFile("another process writes it: wait for that one", path=str(part))
        yield file
        # gone already, where it has become an archive
        if part.exists() and os.path.samestat(os.fstat(file.fileno()), part.stat()):
            part.unlink()
