"""Inspection of an archive: finds changed, dropped, moved and cut records, and says where they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from redis.asyncio import Redis

from posology.budget.books.archive.chain import Link, Record, origin, parse, records
from posology.budget.books.archive.moving import ArchiveFile, archived_files
from posology.budget.books.form import Problem
from posology.budget.books.reader import START, Entry, Reader, busy, order
from posology.errors import BadFile
from posology.store import keys
from posology.store.connection import translated

#: maximum restarts when entries are archived during an inspection
_TRIES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspection:
    """The result of an inspection."""

    tenant: str
    folder: Path
    files: int
    #: number of records
    entries: int
    #: number of records of versions before the chain; only their order, number and sums are checked
    unchained: int
    #: number of records that are still in the ledger, too: an archiving was interrupted
    pending: int
    #: the last record of the chain; ``None``: none is chained
    head: Link | None
    problems: tuple[Problem, ...]


class Inspector:
    """Inspects one tenant's archive.

    Args:
        redis: the connection.
        url: for messages.
        tenant: name of the tenant.
        folder: folder of all its files.
    """

    def __init__(self, redis: Redis, url: str, tenant: str, folder: Path) -> None:
        self._redis = redis
        self._url = url
        self._base = f"{keys.prefix(tenant)}money:base"
        self._reader = Reader(redis, url, tenant)
        self._tenant = tenant
        self._folder = folder

    async def __call__(self) -> Inspection:
        """Read all files, and compare their end, number and sums with Redis.

        Raises:
            BadFile: the folder does not exist.
            LedgerBusy: the ledger is being archived.
            StoreUnavailable: Redis is unreachable.
        """
        if not self._folder.is_dir():
            raise BadFile("it is no folder", path=str(self._folder))
        for _ in range(_TRIES):
            base = await self._sums()
            found = await self._once(base)
            if (await self._sums()).get("upto") == base.get("upto"):
                return found
        raise busy(self._tenant)

    async def _sums(self) -> dict[str, str]:
        with translated(self._url):
            return cast("dict[str, str]", await self._redis.hgetall(self._base))

    async def _once(self, base: Mapping[str, str]) -> Inspection:
        files = archived_files(self._folder, self._tenant)
        walk = _Walk(expected=origin(self._tenant), base=base)
        pending = 0
        async with aclosing(self._reader.entries()) as ledger:
            for record in walk.all(files):
                if order(record.entry.place) > order(walk.upto):
                    pending += 1
                    await _compare(walk, record, ledger)
        walk.end()
        return Inspection(
            tenant=self._tenant,
            folder=self._folder,
            files=len(files),
            entries=walk.entries,
            unchained=walk.unchained,
            pending=pending,
            head=walk.expected if walk.expected.number else None,
            problems=tuple(walk.problems),
        )


async def _compare(walk: _Walk, record: Record, ledger: AsyncIterator[Entry]) -> None:
    """Compare a record that was not taken out of the ledger with its entry there."""
    if not walk.stray and await anext(ledger, None) != record.entry:
        walk.stray = True
        walk.say(
            f"entry {record.entry.place} was never archived, and differs from the ledger", record
        )


@dataclass(kw_only=True, slots=True)
class _Walk:
    """Goes through the records of all files, in order."""

    #: the last record of the chain so far
    expected: Link
    #: the hash ``…money:base``
    base: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)
    entries: int = 0
    unchained: int = 0
    #: whether a record after the archived ones is not the ledger's
    stray: bool = False
    _file: str | None = None
    #: file and line of the last record of the chain
    _last: tuple[str | None, int] = (None, 0)
    _place: str = START
    #: whether the last archived entry was met, and whether the last one of the chain was
    _met: bool = False
    _linked: bool = False
    #: number and nano-dollars of the archived records
    _archived: int = 0
    _spent: int = 0
    _reserved: int = 0

    @property
    def upto(self) -> str:
        """Return the last archived place."""
        return self.base.get("upto", START)

    @property
    def _anchor(self) -> Link | None:
        """Return the last archived record of the chain, as Redis remembers it."""
        text = self.base.get("chain")
        return None if text is None else parse(text)

    def say(self, message: str, record: Record | None = None) -> None:
        """Note a problem of this file."""
        line = None if record is None else record.line
        self.problems.append(Problem(file=self._file, line=line, message=message))

    def all(self, files: list[ArchiveFile]) -> Iterator[Record]:
        """Yield every record that can be read, after checking it."""
        for file in files:
            self._file, first = file.path.name, None
            try:
                for record in records(file.path):
                    first = first or record.entry.place
                    self._check(record)
                    yield record
            except BadFile as error:
                self.problems.append(
                    Problem(file=self._file, line=error.line, message=error.reason)
                )
                continue
            if first != file.first:
                self.say(f"it begins with entry {first}, its name says {file.first}")
            if self._place != file.last:
                self.say(f"it ends with entry {self._place}, its name says {file.last}")
        self._file = None

    def _check(self, record: Record) -> None:
        place = record.entry.place
        self.entries += 1
        if (link := record.link) is None:
            self.unchained += 1
            if order(place) <= order(self._place):
                self.say(f"entry {place} follows entry {self._place}, out of order", record)
        else:
            self._check_link(record, link)
        self._place = place
        if order(place) <= order(self.upto):
            self._met = self._met or place == self.upto
            self._add(record)

    def _check_link(self, record: Record, link: Link) -> None:
        expected, number = self.expected, link.number
        if number <= expected.number:
            self.say(f"record {number} follows record {expected.number}, out of order", record)
            return
        if missing := number - expected.number - 1:
            self.say(f"{missing} records before record {number} are missing", record)
        elif record.before != expected.digest:
            self._broken(record, link)
        self.expected, self._last = link, (self._file, record.line)
        if (anchor := self._anchor) is not None and number == anchor.number:
            self._linked = True
            if link != anchor:
                self.say(f"record {number} differs from the last one that Redis knows", record)

    def _broken(self, record: Record, link: Link) -> None:
        before = self.expected.number
        if not before:
            self.say("record 1 does not have the first digest of a chain", record)
            return
        file, line = self._last
        message = f"record {before} was changed: record {link.number} has another digest of it"
        self.problems.append(Problem(file=file, line=line, message=message))

    def _add(self, record: Record) -> None:
        self._archived += 1
        try:
            self._spent += record.entry.spent
            self._reserved += record.entry.reserved
        except (KeyError, ValueError):
            self.say("its amounts cannot be read", record)

    def end(self) -> None:
        """Compare the end, the number and the sums with Redis."""
        anchor = self._anchor
        if self.upto != START and not self._met:
            self.say(f"entry {self.upto}, the last archived one, is in no file")
        if anchor is not None and not self._linked:
            self.say(f"record {anchor.number}, the last one that Redis knows, is in no file")
        for name, kept, found in (
            ("entries", "entries", self._archived),
            ("nano-dollars spent", "spent:total", self._spent),
            ("nano-dollars reserved", "reserved:total", self._reserved),
        ):
            if found != (moved := int(self.base.get(kept, 0))):
                self.say(f"the files have {found:,} {name}, Redis archived {moved:,}")
