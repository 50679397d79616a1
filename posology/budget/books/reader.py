"""Reader of a tenant's ledger: entries page by page, and the sums of archived ones."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from redis.asyncio import Redis

from posology.budget.ledger.scripts import source
from posology.errors import LedgerBusy
from posology.store import keys
from posology.store.connection import translated
from posology.store.scripts import Scripts

#: entries read at once: a few milliseconds of Redis's time
PAGE = 500
#: before the first entry
START = "0-0"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry of the stream, see ``docs/concepts/money.md``."""

    #: id in the stream: milliseconds and a number
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
        """Id of the job, or of the run in process."""
        return self.fields["job"]

    @property
    def day(self) -> str:
        """The charged day, e.g. ``2026-01-15``."""
        return self.fields["day"]

    @property
    def reserved(self) -> int:
        """Nano-dollars added to the reserved amount."""
        return int(self.fields["reserved"])

    @property
    def spent(self) -> int:
        """Nano-dollars added to the spent amount."""
        return int(self.fields["spent"])

    @property
    def bound(self) -> int | None:
        """Nano-dollars reserved for the attempt; ``None`` while it is open."""
        return self._number("bound")

    @property
    def charged(self) -> int | None:
        """Nano-dollars charged for the attempt so far; ``None`` while it is open."""
        return self._number("charged")

    @property
    def known(self) -> bool:
        """Whether the charge is the cost, and not the bound."""
        return self.fields.get("known") == "1"

    @property
    def over(self) -> bool:
        """Whether the cost exceeds the bound."""
        return (self.charged or 0) > (self.bound or 0)

    def _number(self, name: str) -> int | None:
        found = self.fields.get(name)
        return None if found is None else int(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """Some entries, and the beginning of the ledger when they were read."""

    entries: tuple[Entry, ...]
    #: id of the last archived entry; :data:`START`: none
    archived: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """Values of some keys, and the end of the ledger, at one instant."""

    #: id of the last entry, which may be archived; :data:`START`: none
    last: str
    #: as in :class:`Page`
    archived: str
    #: number of repairs of the counters
    mended: str
    #: values of the keys, in order
    found: Sequence[Any]


class Reader:
    """One tenant's ledger.

    Args:
        redis: the connection.
        url: for messages.
        tenant: name of the tenant.
        size: entries read at once.
    """

    def __init__(self, redis: Redis, url: str, tenant: str, *, size: int = PAGE) -> None:
        self._redis = redis
        self._url = url
        self._prefix = keys.prefix(tenant)
        self._run = Scripts(redis, url, source)
        self.tenant = tenant
        self.size = size

    async def page(self, after: str = START, until: str = "+") -> Page:
        """Return the entries after an entry id, in order.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        with translated(self._url):
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.xrange(f"{self._prefix}ledger", f"({after}", until, self.size)
                # afterwards: if nothing was archived by then, no entry is missing
                pipe.hget(f"{self._prefix}money:base", "upto")
                found, archived = await pipe.execute()
        return Page(
            entries=tuple(Entry(place=place, fields=fields) for place, fields in found),
            archived=archived or START,
        )

    async def back(self, before: str | None = None) -> tuple[Entry, ...]:
        """Return the entries before an entry id, newest first; ``None``: the newest.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        last = "+" if before is None else f"({before}"
        with translated(self._url):
            found = cast(
                "list[tuple[str, Mapping[str, str]]]",
                await self._redis.xrevrange(f"{self._prefix}ledger", last, "-", self.size),
            )
        return tuple(Entry(place=place, fields=fields) for place, fields in found)

    async def entries(
        self, after: str = START, until: str = "+", *, archived: str | None = None
    ) -> AsyncGenerator[Entry, None]:
        """Yield all entries after an entry id, up to another.

        Args:
            after: a place.
            until: a place, inclusive.
            archived: where the ledger must still begin, so that none is missing; ``None``: wherever it does.

        Raises:
            LedgerBusy: entries were archived during the reading.
            StoreUnavailable: Redis is unreachable.
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
            StoreUnavailable: Redis is unreachable.
        """
        last, archived, mended, found = await self._run("look", self._prefix, json.dumps(commands))
        archived = archived or START
        return Look(last=last or archived, archived=archived, mended=mended, found=found)


def busy(tenant: str) -> LedgerBusy:
    """Return the error of a ledger that is rebuilt or archived while it is read."""
    return LedgerBusy(
        f"the ledger of {tenant} is being archived or rebuilt: retry when that is done",
        tenant=tenant,
    )


def pairs(reply: Sequence[str]) -> dict[str, str]:
    """Return a hash, from the reply to ``HGETALL`` in a script."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


async def spenders(redis: Redis, url: str) -> list[str]:
    """Return all tenants that may have spent anything, by jobs or by runs in process, sorted.

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
    """Add a tenant to the list of spenders before it spends, so that its ledger can be found.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    with translated(url):
        await redis.sadd(keys.SPENDERS, tenant)


def order(place: str) -> tuple[int, int]:
    """Return a sort key of an entry id."""
    milliseconds, _, number = place.partition("-")
    return int(milliseconds), int(number or 0)
