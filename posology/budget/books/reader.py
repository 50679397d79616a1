"""Reads the entries of a tenant's ledger, a page at a time, and what was taken out of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from redis.asyncio import Redis

from posology.budget.ledger.scripts import source
from posology.errors import LedgerBusy
from posology.store import keys
from posology.store.connection import translated
from posology.store.scripts import Scripts

#: entries that are read at once: a few milliseconds of Redis's time
PAGE = 500
#: before the first entry
START = "0-0"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry, as it stands in the stream. ``docs/concepts/money.md`` says what is in it."""

    #: its place in the stream: milliseconds and a number
    place: str
    fields: Mapping[str, str]

    @property
    def kind(self) -> str:
        """``reserve``, ``settle``, ``lose``, ``correct`` or ``release``."""
        return self.fields["kind"]

    @property
    def attempt(self) -> str:
        """The attempt's id."""
        return self.fields["id"]

    @property
    def job(self) -> str:
        """A job, or a run that is none."""
        return self.fields["job"]

    @property
    def day(self) -> str:
        """The day whose money it is, e.g. ``2026-01-15``."""
        return self.fields["day"]

    @property
    def reserved(self) -> int:
        """Nano-dollars that were added to what is reserved."""
        return int(self.fields["reserved"])

    @property
    def spent(self) -> int:
        """Nano-dollars that were added to what is spent."""
        return int(self.fields["spent"])

    @property
    def bound(self) -> int | None:
        """Nano-dollars that were reserved for the attempt; ``None`` while it is open."""
        return self._number("bound")

    @property
    def charged(self) -> int | None:
        """Nano-dollars that the attempt is now taken to have cost; ``None`` while it is open."""
        return self._number("charged")

    @property
    def known(self) -> bool:
        """Whether that is what it cost, and not its bound."""
        return self.fields.get("known") == "1"

    @property
    def over(self) -> bool:
        """Whether it cost more than its bound."""
        return (self.charged or 0) > (self.bound or 0)

    def _number(self, name: str) -> int | None:
        found = self.fields.get(name)
        return None if found is None else int(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """Some entries, and where the ledger began when they were read."""

    entries: tuple[Entry, ...]
    #: the place of the last entry that was moved to the archive; :data:`START`: none was
    archived: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """Values of some keys and position of the ledger at one instant."""

    #: the place of the last entry; :data:`START`: there is none
    last: str
    #: as in :class:`Page`
    archived: str
    #: how often counters were put right
    mended: str
    #: the replies to what was asked
    found: Sequence[Any]


class Reader:
    """One tenant's ledger.

    Args:
        redis: the connection.
        url: for messages.
        tenant: whose.
        size: entries that are read at once.
    """

    def __init__(self, redis: Redis, url: str, tenant: str, *, size: int = PAGE) -> None:
        self._redis = redis
        self._url = url
        self._prefix = keys.prefix(tenant)
        self._run = Scripts(redis, url, source)
        self.tenant = tenant
        self.size = size

    async def page(self, after: str = START, until: str = "+") -> Page:
        """The entries after a place, in their order.

        Raises:
            StoreUnavailable: Redis is out of reach.
        """
        with translated(self._url):
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.xrange(f"{self._prefix}ledger", f"({after}", until, self.size)
                # afterwards: if nothing had been taken out by then, nothing is missing
                pipe.hget(f"{self._prefix}money:base", "upto")
                found, archived = await pipe.execute()
        return Page(
            entries=tuple(Entry(place=place, fields=fields) for place, fields in found),
            archived=archived or START,
        )

    async def entries(
        self, after: str = START, until: str = "+", *, archived: str | None = None
    ) -> AsyncIterator[Entry]:
        """All entries after a place, up to another.

        Args:
            after: a place.
            until: a place, inclusive.
            archived: where the ledger must still begin, so that none is missing; ``None``: wherever it does.

        Raises:
            LedgerBusy: entries were moved to the archive meanwhile.
            StoreUnavailable: Redis is out of reach.
        """
        while True:
            page = await self.page(after, until)
            if archived is not None and page.archived != archived:
                raise busy(self.tenant)
            found = page.entries
            for entry in found:
                yield entry
            if len(found) < self.size:
                return
            after = found[-1].place

    async def look(self, *commands: Sequence[str]) -> Look:
        """Read some keys at one instant.

        Args:
            commands: each its name, the key below the tenant's prefix, and what else it takes.

        Raises:
            StoreUnavailable: Redis is out of reach.
        """
        last, archived, mended, found = await self._run("look", self._prefix, json.dumps(commands))
        return Look(last=last or START, archived=archived or START, mended=mended, found=found)


def busy(tenant: str) -> LedgerBusy:
    """Return the error for a ledger that is archived or rebuilt while it is read."""
    return LedgerBusy(
        f"the ledger of {tenant} is being archived or rebuilt: try again when that is done",
        tenant=tenant,
    )


def pairs(reply: Sequence[str]) -> dict[str, str]:
    """A hash, from the reply to ``HGETALL`` in a script."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


async def spenders(redis: Redis, url: str) -> list[str]:
    """All tenants that may ever have spent anything, sorted: by jobs, or by runs that are none.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    with translated(url):
        async with redis.pipeline(transaction=False) as pipe:
            pipe.zrange(keys.TENANTS, 0, -1)
            pipe.smembers(keys.PAST)
            pipe.smembers(keys.SPENDERS)
            found = cast("list[Iterable[str]]", await pipe.execute())
    return sorted(set().union(*found))


async def enlist(redis: Redis, url: str, tenant: str) -> None:
    """Note that a tenant spends, before it does: its ledger can be found without knowing its name.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    with translated(url):
        await redis.sadd(keys.SPENDERS, tenant)


def order(place: str) -> tuple[int, int]:
    """Return the sort key of a place in a stream."""
    milliseconds, _, number = place.partition("-")
    return int(milliseconds), int(number or 0)
