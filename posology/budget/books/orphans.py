"""Settlement of orphaned reservations: entries that reserve money for attempts whose reservations are gone.

Nothing else ends such an attempt: its settlement finds no reservation, and a sweep knows only leases of
reservations. So it is ended as a lost attempt is, by an entry, from the reservation that its own entry describes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from redis.asyncio import Redis

from posology.budget.books.archive.moving import archived_files, read
from posology.budget.books.audit import Audit, Auditor
from posology.budget.books.reader import Entry, Reader, busy
from posology.budget.ledger.scripts import source
from posology.store import keys
from posology.store.connection import translated
from posology.store.scripts import Scripts

#: seconds after which no reply of a call is expected any more
OLD = 86_400.0
#: reservations closed in one step
_STEP = 100
#: maximum restarts when others repair the ledger meanwhile
_TRIES = 20
#: stage, strategy and model of an attempt whose job's record is gone
UNKNOWN = "unknown"


class Kept(StrEnum):
    """Why a reservation was not settled."""

    #: its entry is in the archive, and in none of the given files
    ARCHIVED = "archived"
    #: it is not old enough
    YOUNG = "young"
    #: it was asked for, and is not orphaned
    FINE = "fine"


@dataclass(frozen=True, kw_only=True, slots=True)
class Orphan:
    """An attempt whose reservation is gone, as its entry describes it."""

    attempt: str
    #: id of the job, or of the run in process
    job: str
    #: day that the money counts on, e.g. ``2026-01-15``
    day: str
    #: nano-dollars reserved
    nano: int
    #: POSIX milliseconds of its entry
    at: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """The result of a settlement, and of the audit after it."""

    closed: tuple[Orphan, ...]
    #: reservations that were not settled, by attempt
    kept: Mapping[str, Kept]
    audit: Audit


class Orphans:
    """Ends one tenant's orphaned reservations.

    Args:
        redis: the connection.
        url: for messages.
        tenant: name of the tenant.
        archive: folder of its archive; ``None``: entries in the archive are not found.
    """

    def __init__(self, redis: Redis, url: str, tenant: str, *, archive: Path | None = None) -> None:
        self._redis = redis
        self._url = url
        self._prefix = keys.prefix(tenant)
        self._reader = Reader(redis, url, tenant)
        self._auditor = Auditor(redis, url, tenant)
        self._run = Scripts(redis, url, source)
        self._archive = archive
        self.tenant = tenant

    async def __call__(
        self, *, billed: bool = True, age: float = OLD, only: Collection[str] = ()
    ) -> Ended:
        """Charge orphaned reservations at their bounds, or free them.

        An attempt that was charged can still be settled at its cost for a day; one that was freed cannot.

        Args:
            billed: whether the provider may have billed them; if not, they are freed.
            age: seconds since the entry of a reservation; younger ones stay.
            only: ids of attempts; empty: all.

        Raises:
            BadFile: a file of the archive cannot be read.
            LedgerBusy: it is being archived or rebuilt.
            StoreUnavailable: Redis is unreachable. Closed attempts stay closed; repeat it.
        """
        closed: list[Orphan] = []
        for _ in range(_TRIES):
            mended = (await self._reader.look()).mended
            orphans = frozenset((await self._auditor.verify()).orphans)
            due, kept = await self._due(orphans.intersection(only) if only else orphans, age)
            if await self._close(due, mended, billed=billed, closed=closed):
                audit = await self._auditor.verify()
                done = {orphan.attempt for orphan in closed}
                kept |= {attempt: Kept.FINE for attempt in only if attempt not in orphans | done}
                return Ended(closed=tuple(closed), kept=kept, audit=audit)
        raise busy(self.tenant)

    async def _due(
        self, wanted: Collection[str], age: float
    ) -> tuple[list[Orphan], dict[str, Kept]]:
        """Return the orphaned reservations to close, in the order of the ledger, and those that stay."""
        if not wanted:
            return [], {}
        with translated(self._url):
            seconds, _ = await self._redis.time()
        until, orphans = (int(seconds) - age) * 1000, dict[str, Orphan]()
        async for entry in self._entries():
            if entry.kind == "reserve" and entry.attempt in wanted:
                orphans[entry.attempt] = Orphan(
                    attempt=entry.attempt,
                    job=entry.job,
                    day=entry.day,
                    nano=entry.reserved,
                    at=int(entry.fields["at"]),
                )
        kept = {attempt: Kept.ARCHIVED for attempt in sorted(wanted) if attempt not in orphans}
        kept |= {orphan.attempt: Kept.YOUNG for orphan in orphans.values() if orphan.at > until}
        return [orphan for orphan in orphans.values() if orphan.attempt not in kept], kept

    async def _entries(self) -> AsyncIterator[Entry]:
        """Yield the entries of the archive, as far as it was given, and of the ledger."""
        if self._archive is not None:
            for file in archived_files(self._archive, self.tenant):
                for entry in read(file.path):
                    yield entry
        async for entry in self._reader.entries():
            yield entry

    async def _close(
        self, due: Sequence[Orphan], mended: str, *, billed: bool, closed: list[Orphan]
    ) -> bool:
        """Close reservations, and add them to a list; return whether no other process repaired the ledger meanwhile."""
        for start in range(0, len(due), _STEP):
            step = {orphan.attempt: orphan for orphan in due[start : start + _STEP]}
            arguments = [
                word
                for orphan in step.values()
                for word in (orphan.attempt, json.dumps(await self._reservation(orphan)))
            ]
            said = await self._run(
                "close_orphans", self._prefix, mended, "lose" if billed else "release", *arguments
            )
            if said == "moved":
                return False
            mended, done = said
            closed += [step[attempt] for attempt in done]
        return True

    async def _reservation(self, orphan: Orphan) -> dict[str, str]:
        """Return what ``…money:open`` held, as far as the entry and the job's record say."""
        record = f"{keys.budget(self.tenant, orphan.job)}:calls"
        with translated(self._url):
            raw = await cast("Awaitable[str | None]", self._redis.hget(record, orphan.attempt))
        told: dict[str, Any] = {} if raw is None else json.loads(raw)
        named = {name: str(told.get(name, UNKNOWN)) for name in ("stage", "strategy", "model")}
        return {
            "nano": str(orphan.nano),
            "day": orphan.day,
            "job": orphan.job,
            **named,
            "entry": json.dumps(told | {"settled_by": "operator"}),
        }
