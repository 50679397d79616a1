"""Counters of a tenant, in batches, each with the sum of the entries at that instant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from redis.asyncio import Redis

from posology.budget.books.form import CounterDifference
from posology.budget.books.reader import START, Entry, Reader, pairs
from posology.budget.books.sums import Fold
from posology.store import keys
from posology.store.connection import translated

#: maximum attempts named in a report; all are counted
NAMED = 100
#: days, and jobs, whose counters are read at once
_DAYS, _JOBS = 16, 200
_WHOLE = re.compile(r"-?\d+", re.ASCII)
_OWN = ("spent_nano", "reserved_nano")


class Moved(Exception):
    """Another process archived entries or repaired counters during the reading."""


class Comparison:
    """One reading of the ledger, while the tenant spends."""

    def __init__(
        self, redis: Redis, url: str, reader: Reader, base: Mapping[str, str], many: int
    ) -> None:
        self._redis = redis
        self._url = url
        self._prefix = keys.prefix(reader.tenant)
        self._reader = reader
        self._archived = base.get("upto", START)
        #: number of repairs of the counters
        self.mended = base.get("mended", "0")
        self.fold = Fold(base)
        self.over: list[Entry] = []
        self._least = self._many = many

    async def extend(self, until: str) -> None:
        """Add the entries up to an entry id."""
        while True:
            page = await self._reader.page(self.fold.place, until)
            if page.archived != self._archived:
                raise Moved
            for entry in page.entries:
                self.fold.add(entry)
                if len(self.over) < NAMED and entry.over:
                    self.over.append(entry)
            if len(self.fold.jobs) > self._many:
                await self._forget()
            if len(page.entries) < self._reader.size:
                return

    async def snapshot(self, *commands: Sequence[str]) -> Sequence[Any]:
        """Return the values of some keys, and the sums of the entries at the same instant."""
        seen = await self._reader.look(*commands)
        if (seen.archived, seen.mended) != (self._archived, self.mended):
            raise Moved
        await self.extend(seen.last)
        return seen.found

    async def all(self, money: Mapping[str, str]) -> AsyncGenerator[list[CounterDifference]]:
        """Yield all counters, in batches.

        Args:
            money: the hash ``…money`` of a snapshot that was just made.
        """
        yield compared("money", money, self.fold.money)
        async for some in self._days(money):
            yield some
        async for some in self._jobs():
            yield some

    async def _days(self, money: Mapping[str, str]) -> AsyncGenerator[list[CounterDifference]]:
        """Yield the figures of every day, in batches of days."""
        done: set[str] = set()
        # the day may change while this goes on
        while left := sorted({*_days(money), *_days(self.fold.money)} - done)[:_DAYS]:
            done.update(left)
            names = [f"{kind}:by:{day}" for day in left for kind in ("money", "money:base")]
            found = map(pairs, await self.snapshot(*(("HGETALL", name) for name in names)))
            some: list[CounterDifference] = []
            for day, counters, base in zip(left, found, found, strict=True):
                summed = Counter(self.fold.days.get(day, {}))
                for name, value in base.items():
                    summed[name] += int(value)
                some += compared(f"money:by:{day}", counters, summed)
            yield some

    async def _jobs(self) -> AsyncGenerator[list[CounterDifference]]:
        """Yield the counters of existing jobs and runs, in batches."""
        known = list(self.fold.jobs)
        for start in range(0, len(known), _JOBS):
            yield await self._purses(known[start : start + _JOBS])
        # a job without entries has counters, too
        cursor, done = 0, set(known)
        while True:
            with translated(self._url):
                cursor, found = await self._redis.zscan(f"{self._prefix}jobs", cursor, count=_JOBS)
            yield await self._purses([str(job) for job, _ in found if job not in done])
            if not cursor:
                return

    async def _purses(self, jobs: Sequence[str]) -> list[CounterDifference]:
        names = [keys.budget(self._reader.tenant, job).removeprefix(self._prefix) for job in jobs]
        fields = [*_OWN, *(f"base_{name}" for name in _OWN)]
        asked = [
            command for name in names for command in (("EXISTS", name), ("HMGET", name, *fields))
        ]
        found = iter(await self.snapshot(*asked))
        return [
            CounterDifference(
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
        """Drop jobs without a record; an id is never reused."""
        jobs = list(self.fold.jobs)
        for start in range(0, len(jobs), _JOBS):
            some = jobs[start : start + _JOBS]
            with translated(self._url):
                async with self._redis.pipeline(transaction=False) as pipe:
                    for job in some:
                        pipe.exists(keys.budget(self._reader.tenant, job))
                    there = await pipe.execute()
            for job, still in zip(some, there, strict=True):
                if not still:
                    del self.fold.jobs[job]
        self._many = max(self._least, 2 * len(self.fold.jobs))


def compared(
    key: str, found: Mapping[str, str], summed: Mapping[str, int]
) -> list[CounterDifference]:
    """Return each counter of a hash with its sum; a missing one counts as 0."""
    return [
        CounterDifference(
            key=key, field=name, counted=_whole(found.get(name)), summed=summed.get(name, 0)
        )
        for name in sorted(found.keys() | summed.keys())
    ]


def _days(money: Iterable[str]) -> Iterator[str]:
    """Return the days of counters."""
    for name in money:
        if name.startswith(("spent:day:", "reserved:day:")):
            yield name.rpartition(":")[2]


def _whole(value: str | None) -> int | None:
    if value is None:
        return 0
    return int(value) if _WHOLE.fullmatch(value) else None
