"""Holds the counters against the entries of the ledger, and puts them right.

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

from posology.budget.books.counters import Compared, Comparison, Moved
from posology.budget.books.reader import Entry, Reader, busy, pairs
from posology.budget.ledger.scripts import source
from posology.store import keys
from posology.store.connection import translated
from posology.store.scripts import Scripts

#: jobs that are kept in mind at first
_MANY = 50_000
#: how often is begun again when entries are taken out of the ledger meanwhile
_TRIES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """Audit of a tenant's ledger: sums, and counters that differ. Amounts are nano-dollars."""

    tenant: str
    #: entries in the ledger, and those that were moved to the archive
    entries: int
    archived: int
    #: the last entry that was read
    place: str
    #: counters that were compared
    counters: int
    differences: tuple[Compared, ...]
    #: attempts under way now, and what is set aside for them
    open: int
    open_nano: int
    #: attempts of unknown cost, and their bounds, which are charged
    unknown: int
    unknown_nano: int
    #: attempts that cost more than their bound
    over: int
    #: their last entries, the first of them that are not in the archive
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
    """Result of a rebuild: the changes, and the audit after them."""

    changed: tuple[Compared, ...]
    audit: Audit


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
        """Set every counter to the sum of its entries.

        Raises:
            LedgerBusy: another process archives or rebuilds the ledger.
            StoreUnavailable: Redis is out of reach. Changes so far remain; run it again.
        """
        changed: list[Compared] = []
        await self._repeated(mend=changed)
        return Rebuilt(changed=tuple(changed), audit=await self.verify())

    async def _repeated(self, mend: list[Compared] | None) -> Audit:
        for _ in range(_TRIES):
            try:
                return await self._once(mend)
            except Moved:
                continue
        raise busy(self.tenant)

    async def _once(self, mend: list[Compared] | None) -> Audit:
        with translated(self._url):
            base = cast("dict[str, str]", await self._redis.hgetall(f"{self._prefix}money:base"))
        look = Comparison(self._redis, self._url, self._reader, base, self._many)
        await look.extend("+")
        money, open_ = map(
            pairs, await look.snapshot(("HGETALL", "money"), ("HGETALL", "money:open"))
        )
        fold = look.fold
        orphans, strangers = fold.open.keys() - open_.keys(), open_.keys() - fold.open.keys()
        compared, found, totals = 0, list[Compared](), Counter[str]()
        async with aclosing(look.all(money)) as pages:
            async for some in pages:
                compared += len(some)
                wrong = [one for one in some if not one.right]
                found += wrong
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

    async def _mend(self, wrong: Sequence[Compared], look: Comparison) -> None:
        arguments = [
            word for one in wrong for word in (one.key, one.field, one.summed - (one.counted or 0))
        ]
        said = await self._run("rebuild", self._prefix, look.mended, *arguments)
        if said == "moved":
            raise Moved
        look.mended = str(said)
