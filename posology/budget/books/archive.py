"""The archive of a ledger: moves old entries of a tenant into files.

First the file is written, kept and read again; then the entries are taken out of Redis, some at a time, and
each time what they changed is added to ``…money:base`` in the same step. So a run that breaks off has lost
nothing, and the next one with the same folder goes on where it stopped, with the same file.

A file is named ``TENANT.FIRST.LAST.jsonl``, after the places of its first and last entry. It has a line an
entry: ``{"place": …, "fields": {…}}``, in the order of the ledger, with the fields as they stood there.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from redis.asyncio import Redis

from posology.budget.books.files import keep
from posology.budget.books.reader import PAGE, START, Entry, Reader, order
from posology.budget.ledger.scripts import source
from posology.errors import BadFile
from posology.store import keys
from posology.store.scripts import Scripts

#: entries removed in one step: a few milliseconds of Redis's time
STEP = 200
_NAME = re.compile(r"(?P<tenant>.+)\.(?P<first>\d+-\d+)\.(?P<last>\d+-\d+)\.jsonl", re.ASCII)


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
        self._prefix = keys.prefix(tenant)
        self._reader = Reader(redis, url, tenant, size=PAGE)
        self._run = Scripts(redis, url, source)
        self._tenant = tenant
        self._folder = folder
        self._step = step

    async def __call__(self, before: datetime) -> list[Archived]:
        """Move the entries before a time.

        Returns:
            The files: none where there was nothing to move, two where an earlier run had not been completed.

        Raises:
            BadFile: a file cannot be written, another process writes it, or what it holds is not what the
                ledger holds; nothing more is taken out.
            StoreUnavailable: Redis is unreachable; repeat it.
        """
        done: list[Archived] = []
        until = f"{int(before.timestamp() * 1000) - 1}"
        with _alone(self._folder / f"{self._tenant}.part") as part:
            if (begun := await self._begun()) is not None:
                done.append(await self._take_out(begun))
            if (written := await self._write(part, until)) is not None:
                done.append(await self._take_out(written))
        return done

    async def _begun(self) -> Path | None:
        """Return the file with the ledger's first entry; ``None``: no run was interrupted."""
        first = (await self._reader.page()).entries[:1]
        if not first:
            return None
        place = order(first[0].place)
        for path in sorted(self._folder.glob(f"{self._tenant}.*.jsonl")):
            named = _NAME.fullmatch(path.name)
            if named is None or named["tenant"] != self._tenant:
                continue
            if order(named["first"]) <= place <= order(named["last"]):
                return path
        return None

    async def _write(self, part: BinaryIO, until: str) -> Path | None:
        """Write a file of all entries up to an entry id; ``None``: there are none."""
        first = last = ""
        try:
            part.truncate(0)
            async for entry in self._reader.entries(START, until):
                part.write(_line(entry))
                first, last = first or entry.place, entry.place
            if not first:
                return None
            path = self._folder / f"{self._tenant}.{first}.{last}.jsonl"
            keep(part, path)
        except OSError as error:
            raise BadFile(error.strerror or str(error), path=part.name) from None
        return path

    async def _take_out(self, path: Path) -> Archived:
        """Remove the entries of a file from the ledger, after checking the file."""
        last, entries = await self._checked(path)
        removed = 0
        while True:
            count, _ = await self._run("archive", self._prefix, last, self._step)
            removed += int(count)
            if int(count) < self._step:
                return Archived(tenant=self._tenant, path=path, entries=entries, removed=removed)

    async def _checked(self, path: Path) -> tuple[str, int]:
        """Return the last entry id of a complete file, and its number of entries."""
        named = _NAME.fullmatch(path.name)
        assert named is not None, "found and written by that name"
        lines, total = read(path), 0
        async for entry in self._reader.entries(START, named["last"]):
            for kept in lines:
                total += 1
                if kept.place == entry.place:
                    break
            else:
                raise BadFile(f"it lacks the entry {entry.place} of the ledger", path=str(path))
            if kept != entry:
                raise BadFile(f"its entry {entry.place} differs from the ledger's", path=str(path))
        return named["last"], total + sum(1 for _ in lines)


def read(path: Path) -> Iterator[Entry]:
    """Yield the entries of an archived file.

    Raises:
        BadFile: it cannot be read, or is none.
    """
    number: int | None = None
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):  # noqa: B007 - for the message
                found = json.loads(line)
                yield Entry(place=found["place"], fields=found["fields"])
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
    except (ValueError, KeyError, TypeError):
        raise BadFile("it is no archive of a ledger", path=str(path), line=number) from None


def _line(entry: Entry) -> bytes:
    return json.dumps({"place": entry.place, "fields": dict(entry.fields)}).encode() + b"\n"


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
