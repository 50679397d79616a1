"""Holds the counters against the entries of the ledger, and puts them right.

Every script changes counters and writes the entry in one step. So the difference between a counter and
the sum of the entries, taken at one instant, stays what it is while the tenant goes on spending: to find
it needs no pause, and to take it away neither.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from redis.asyncio import Redis

from posology.budget.folding import Fold
from posology.budget.reading import START, Entry, Reader, pairs
from posology.budget.scripts import source
from posology.errors import LedgerBusy
from posology.store import keys
from posology.store.connection import translated
from posology.store.scripts import Scripts

#: attempts that are named in a report; all are counted
NAMED = 100
#: days, and jobs, whose counters are read at one instant
_DAYS, _JOBS = 16, 200
#: jobs that are kept in mind at first
_MANY = 50_000
#: how often is begun again when entries are taken out of the ledger meanwhile
_TRIES = 20
_WHOLE = re.compile(r"-?\d+", re.ASCII)
_OWN = ("spent_nano", "reserved_nano")


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A counter that is not the sum of the entries."""

    #: below the tenant's prefix, e.g. ``money``
    key: str
    #: of the hash
    field: str
    #: what stands there; ``None``: no whole number
    counted: int | None
    #: what the entries add up to
    summed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """What a tenant's ledger says, and where its counters say something else. Amounts are nano-dollars."""

    tenant: str
    #: entries in the ledger, and those that were moved to the archive
    entries: int
    archived: int
    #: the last entry that was read
    place: str
    #: counters that were compared
    counters: int
    differences: tuple[Difference, ...]
    #: attempts under way now, and what is set aside for them
    open: int
    open_nano: int
    #: attempts of unknown cost, and their bounds, which are charged
    unknown: int
    unknown_nano: int
    #: attempts that cost more than their bound
    over: int
    #: their last entries, the first :data:`NAMED` that are not in the archive
    over_entries: tuple[Entry, ...]
    #: attempts that were reserved, never closed, and are not under way: what they hold comes never free
    orphans: tuple[str, ...]
    #: attempts that are under way and were never reserved
    strangers: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.differences or self.orphans or self.strangers)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rebuilt:
    """What was put right, and how the ledger stands afterwards."""

    changed: tuple[Difference, ...]
    audit: Audit


class _Moved(Exception):
    """Entries were moved to the archive, or counters were put right, by somebody else meanwhile."""


class Auditor:
    """Compares, and puts right, one tenant's counters.

    Args:
        redis: the connection.
        url: for messages.
        tenant: whose.
        reader: of its ledger; ``None``: a new one.
        many: jobs that are kept in mind before those whose records are gone are forgotten.
    """

    def __init__(
        self,
        redis: Redis,
        url: str,
        tenant: str,
        *,
        reader: Reader | None = None,
        many: int = _MANY,
    ) -> None:
        self._redis = redis
        self._url = url
        self._prefix = keys.prefix(tenant)
        self._reader = reader or Reader(redis, url, tenant)
        self._run = Scripts(redis, url, source)
        self._many = many
        self.tenant = tenant

    async def verify(self) -> Audit:
        """Compare every counter with the entries.

        Raises:
            LedgerBusy: it is being archived.
            StoreUnavailable: Redis is out of reach.
        """
        return await self._repeated(mend=None)

    async def rebuild(self) -> Rebuilt:
        """Make every counter what the entries add up to.

        Raises:
            LedgerBusy: it is being archived, or rebuilt by somebody else.
            StoreUnavailable: Redis is out of reach. What was put right stays so; do it again.
        """
        changed: list[Difference] = []
        await self._repeated(mend=changed)
        return Rebuilt(changed=tuple(changed), audit=await self.verify())

    async def _repeated(self, mend: list[Difference] | None) -> Audit:
        for _ in range(_TRIES):
            try:
                return await self._once(mend)
            except _Moved:
                continue
        raise LedgerBusy(
            f"the ledger of {self.tenant} is being archived or rebuilt: try again when that is done",
            tenant=self.tenant,
        )

    async def _once(self, mend: list[Difference] | None) -> Audit:
        with translated(self._url):
            base = cast("dict[str, str]", await self._redis.hgetall(f"{self._prefix}money:base"))
        look = _Look(self._redis, self._url, self._reader, base, self._many)
        await look.extend("+")
        found: list[Difference] = []

        async def compare(some: Sequence[Difference]) -> None:
            wrong = [one for one in some if one.counted != one.summed]
            found.extend(wrong)
            if wrong and mend is not None:
                await self._mend(wrong, look)
                mend.extend(wrong)

        replies = await look.snapshot(("HGETALL", "money"), ("HGETALL", "money:open"))
        money, open_ = map(pairs, replies)
        fold = look.fold
        counters = await _all(compare, _counters("money", money, fold.money))
        orphans, strangers = fold.open.keys() - open_.keys(), open_.keys() - fold.open.keys()
        totals = Counter[str]()
        async for some in look.days(money):
            counters += await _all(compare, some)
            for one in some:
                totals[one.field.partition("|")[0]] += one.summed
        async for some in look.jobs():
            counters += await _all(compare, some)
        return Audit(
            tenant=self.tenant,
            entries=fold.entries,
            archived=int(base.get("entries", 0)),
            place=fold.place,
            counters=counters,
            differences=tuple(found),
            open=len(open_),
            open_nano=sum(int(json.loads(raw)["nano"]) for raw in open_.values()),
            unknown=totals["unknown"],
            unknown_nano=totals["bound"],
            over=fold.money["over"],
            over_entries=tuple(look.over),
            orphans=tuple(sorted(orphans)),
            strangers=tuple(sorted(strangers)),
        )

    async def _mend(self, wrong: Sequence[Difference], look: _Look) -> None:
        arguments = [
            word for one in wrong for word in (one.key, one.field, one.summed - (one.counted or 0))
        ]
        said = await self._run("rebuild", self._prefix, look.mended, *arguments)
        if said == "moved":
            raise _Moved
        look.mended = str(said)


class _Look:
    """One reading of the ledger, which goes on while the tenant spends."""

    def __init__(
        self, redis: Redis, url: str, reader: Reader, base: Mapping[str, str], many: int
    ) -> None:
        self._redis = redis
        self._url = url
        self._prefix = keys.prefix(reader.tenant)
        self._reader = reader
        self._archived = base.get("upto", START)
        #: how often counters were put right
        self.mended = base.get("mended", "0")
        self.fold = Fold(base)
        self.over: list[Entry] = []
        self._least = self._many = many

    async def extend(self, until: str) -> None:
        """Add the entries up to a place."""
        while True:
            page = await self._reader.page(self.fold.place, until)
            if page.archived != self._archived:
                raise _Moved
            for entry in page.entries:
                self.fold.add(entry)
                if len(self.over) < NAMED and entry.over:
                    self.over.append(entry)
            if len(self.fold.jobs) > self._many:
                await self._forget()
            if len(page.entries) < self._reader.size:
                return

    async def snapshot(self, *commands: Sequence[str]) -> Sequence[Any]:
        """What stands in some keys, and the sums of the entries at the same instant."""
        seen = await self._reader.look(*commands)
        if (seen.archived, seen.mended) != (self._archived, self.mended):
            raise _Moved
        await self.extend(seen.last)
        return seen.found

    async def days(self, money: Mapping[str, str]) -> AsyncIterator[list[Difference]]:
        """The figures of every day, some days at a time."""
        done: set[str] = set()
        # the day may change while this goes on
        while left := sorted({*_days(money), *_days(self.fold.money)} - done)[:_DAYS]:
            done.update(left)
            names = [f"{kind}:by:{day}" for day in left for kind in ("money", "money:base")]
            found = map(pairs, await self.snapshot(*(("HGETALL", name) for name in names)))
            some: list[Difference] = []
            for day, counters, base in zip(left, found, found, strict=True):
                summed = Counter(self.fold.days.get(day, {}))
                for name, value in base.items():
                    summed[name] += int(value)
                some += _counters(f"money:by:{day}", counters, summed)
            yield some

    async def jobs(self) -> AsyncIterator[list[Difference]]:
        """The counters of jobs and runs that still exist, some at a time."""
        some: list[str] = []
        for job in list(self.fold.jobs):
            some.append(job)
            if len(some) >= _JOBS:
                yield await self._purses(some)
                some = []
        known = set(self.fold.jobs)
        with translated(self._url):
            # a job without entries has counters, too
            async for job, _ in self._redis.zscan_iter(f"{self._prefix}jobs", count=_JOBS):
                if job not in known:
                    some.append(job)
                if len(some) >= _JOBS:
                    yield await self._purses(some)
                    some = []
        if some:
            yield await self._purses(some)

    async def _purses(self, jobs: Sequence[str]) -> list[Difference]:
        names = [keys.purse(self._reader.tenant, job).removeprefix(self._prefix) for job in jobs]
        fields = [*_OWN, *(f"base_{name}" for name in _OWN)]
        asked = [
            command for name in names for command in (("EXISTS", name), ("HMGET", name, *fields))
        ]
        found = iter(await self.snapshot(*asked))
        return [
            Difference(
                key=name,
                field=own,
                counted=_whole(counted),
                summed=int(base or 0) + self.fold.jobs.get(job, Counter())[own],
            )
            for job, name, there, values in zip(jobs, names, found, found, strict=True)
            if there
            for own, counted, base in zip(_OWN, values, values[2:], strict=False)
        ]

    async def _forget(self) -> None:
        """Let go of jobs whose records are gone; an id is never used again."""
        jobs = list(self.fold.jobs)
        for start in range(0, len(jobs), _JOBS):
            some = jobs[start : start + _JOBS]
            with translated(self._url):
                async with self._redis.pipeline(transaction=False) as pipe:
                    for job in some:
                        pipe.exists(keys.purse(self._reader.tenant, job))
                    there = await pipe.execute()
            for job, still in zip(some, there, strict=True):
                if not still:
                    del self.fold.jobs[job]
        self._many = max(self._least, 2 * len(self.fold.jobs))


async def _all(compare: Callable[[Sequence[Difference]], Any], some: Sequence[Difference]) -> int:
    await compare(some)
    return len(some)


def _counters(key: str, found: Mapping[str, str], summed: Mapping[str, int]) -> list[Difference]:
    """Each counter of a hash with its sum; what is not there counts as 0."""
    return [
        Difference(key=key, field=name, counted=_whole(found.get(name)), summed=summed.get(name, 0))
        for name in sorted(found.keys() | summed.keys())
    ]


def _days(money: Iterable[str]) -> Iterator[str]:
    """The days that counters are of."""
    for name in money:
        if name.startswith(("spent:day:", "reserved:day:")):
            yield name.rpartition(":")[2]


def _whole(value: str | None) -> int | None:
    if value is None:
        return 0
    return int(value) if _WHOLE.fullmatch(value) else None
