"""Audit: compares the counters with the entries of the ledger, and repairs them.

Every script changes counters and writes the entry in one step. So the difference between a counter and
the sum of the entries, taken at one instant, stays what it is while the tenant goes on spending: to find
it needs no pause, and to take it away neither.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from redis.asyncio import Redis

from posology.budget.books.counters import Comparison, Moved
from posology.budget.books.form import CounterDifference
from posology.budget.books.reader import Entry, Reader, busy, pairs
from posology.budget.ledger.scripts import source
from posology.store import keys
from posology.store.connection import translated
from posology.store.scripts import Scripts

#: maximum jobs in memory at first
_MANY = 50_000
#: maximum restarts when entries are archived during an audit
_TRIES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """The result of an audit: totals, and counters that differ. Amounts are nano-dollars."""

    tenant: str
    #: number of entries in the ledger, and in the archive
    entries: int
    archived: int
    #: id of the last entry read
    place: str
    #: number of compared counters
    counters: int
    differences: tuple[CounterDifference, ...]
    #: number of open attempts, and their reservations
    open: int
    open_nano: int
    #: number of attempts with unknown cost, and their bounds, which are charged
    unknown: int
    unknown_nano: int
    #: number of attempts that cost more than their bound
    over: int
    #: last entries of the first of them that are not archived
    over_entries: tuple[Entry, ...]
    #: orphaned reservations: reserved, never settled, and not open (:mod:`posology.budget.books.orphans`)
    orphans: tuple[str, ...]
    #: open attempts without a reservation
    strangers: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether the counters agree and no reservation is orphaned."""
        return not (self.differences or self.orphans or self.strangers)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rebuilt:
    """The result of a repair, and of the audit after it."""

    changed: tuple[CounterDifference, ...]
    audit: Audit


class Auditor:
    """Audits and repairs one tenant's counters.

    Args:
        redis: the connection.
        url: for messages.
        tenant: name of the tenant.
        reader: of its ledger; ``None``: a new one.
        many: jobs in memory before those without a record are dropped.
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
            StoreUnavailable: Redis is unreachable.
        """
        return await self._repeated(mend=None)

    async def rebuild(self) -> Rebuilt:
        """Set every counter to the sum of the entries.

        Raises:
            LedgerBusy: it is being archived, or rebuilt by another process.
            StoreUnavailable: Redis is unreachable. Repaired counters stay repaired; repeat it.
        """
        changed: list[CounterDifference] = []
        await self._repeated(mend=changed)
        return Rebuilt(changed=tuple(changed), audit=await self.verify())

    async def _repeated(self, mend: list[CounterDifference] | None) -> Audit:
        for _ in range(_TRIES):
            try:
                return await self._once(mend)
            except Moved:
                continue
        raise busy(self.tenant)

    async def _once(self, mend: list[CounterDifference] | None) -> Audit:
        with translated(self._url):
            base = cast("dict[str, str]", await self._redis.hgetall(f"{self._prefix}money:base"))
        look = Comparison(self._redis, self._url, self._reader, base, self._many)
        await look.extend("+")
        money, open_ = map(
            pairs, await look.snapshot(("HGETALL", "money"), ("HGETALL", "money:open"))
        )
        fold = look.fold
        orphans, strangers = fold.open.keys() - open_.keys(), open_.keys() - fold.open.keys()
        compared, differences, totals = 0, list[CounterDifference](), Counter[str]()
        async with aclosing(look.all(money)) as pages:
            async for some in pages:
                compared += len(some)
                wrong = [one for one in some if not one.right]
                differences += wrong
                if wrong and mend is not None:
                    await self._mend(wrong, look)
                    mend += wrong
                for one in some:
                    totals[one.field.partition("|")[0]] += one.summed
        return Audit(
            tenant=self.tenant,
            entries=fold.entries,
            archived=int(base.get("entries", 0)),
            place=fold.place,
            counters=compared,
            differences=tuple(differences),
            open=len(open_),
            open_nano=sum(int(json.loads(raw)["nano"]) for raw in open_.values()),
            unknown=totals["unknown"],
            unknown_nano=totals["bound"],
            over=fold.money["over"],
            over_entries=tuple(look.over),
            orphans=tuple(sorted(orphans)),
            strangers=tuple(sorted(strangers)),
        )

    async def _mend(self, wrong: Sequence[CounterDifference], look: Comparison) -> None:
        arguments = [
            word for one in wrong for word in (one.key, one.field, one.summed - (one.counted or 0))
        ]
        said = await self._run("rebuild", self._prefix, look.mended, *arguments)
        if said == "moved":
            raise Moved
        look.mended = str(said)
