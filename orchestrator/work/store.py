"""Items in Redis: offered, claimed for the time of a lease, extended, returned, ended and dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, cast
from uuid import uuid4

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from orchestrator.work.items import (
    FIELDS,
    NO_LIMITS,
    Claim,
    Item,
    Kind,
    Limits,
    NoRoom,
    Standing,
    Sweeping,
    counts_of,
)
from posology.store.connection import translated
from posology.store.lua import lua
from posology.store.scripts import Scripts

#: minimum milliseconds in the list of groups: longer than an offer takes from its first command to its last
_LISTED = 3_600_000
#: milliseconds of a day
_DAY = 86_400_000
#: items and rows that are read in one round trip
_AT_ONCE = 500


class WorkStore:
    """Items of one kind. All methods raise :class:`~posology.errors.StoreUnavailable` if Redis is out of reach.

    Args:
        redis: see :func:`~posology.store.connection.connect`.
        url: address of Redis, for messages.
        kind: kind of the items.
        clock: returns milliseconds; ``None``: the server's clock.
    """

    def __init__(
        self, redis: Redis, url: str, kind: Kind, *, clock: Callable[[], int] | None = None
    ) -> None:
        self.redis = redis
        self.url = url
        self.kind = kind
        self._clock = clock
        self._scripts = Scripts(redis, url, _source, clock)

    async def offer(
        self,
        group: str,
        name: str,
        record: str,
        *,
        key: str = "",
        size: int = 0,
        limits: Limits = NO_LIMITS,
        again: str = "",
        ended: str = "",
    ) -> str:
        """Let an item wait for its claim.

        Args:
            group: such as a tenant.
            name: unique in the group.
            record: text of its owner.
            key: requests of one key are one item, while it has not ended.
            size: bytes.
            limits: of the group.
            again: state from which an ended item of this name is offered again, with its rows; ``*``: any. Unless it is
                empty, an ended item of the same key and another name stands for the request, too.
            ended: state of an item that ended elsewhere; empty: it waits.

        Returns:
            The name, or that of the item that stands for the request.

        Raises:
            NoRoom: a limit is reached.
        """
        # before, so that sweeps find the item; and after, since this process may have been suspended in between
        await self.enlist(group)
        what, reply = await self._run(
            "offer", group, name, record, key, size, limits.items, limits.bytes, again, self.kind.expiry, ended,
        )  # fmt: skip
        await self.enlist(group)
        if what != "offered":
            raise NoRoom(what, int(reply))
        return str(reply)

    async def take(self, group: str) -> str | None:
        """Return the next item, to be sent to the broker; ``None``: none waits."""
        return cast("str | None", await self._run("take", group))

    async def unsend(self, group: str, name: str) -> None:
        """Return an item to the queue that was sent and not claimed."""
        await self._run("release", group, name, "", "", "", 0, "")

    async def claim(
        self, group: str, name: str = "", *, lease: float, by: str = "", at_once: int = 0
    ) -> Claim | None:
        """Claim an item.

        Args:
            group: its group.
            name: its name; empty: the item that waits longest.
            lease: seconds without a heartbeat after which it returns to the queue.
            by: name of this process, for those who look at the item.
            at_once: maximum held items of the group; 0: no limit.

        Returns:
            The claim; ``None``: the item does not wait, or there is none.
        """
        token = f"{uuid4().hex} {by}"
        reply = await self._run("claim", group, name, token, _ms(lease), at_once)
        if not reply:
            return None
        item, record, runs, cancelled = reply
        return Claim(
            group=group, name=item, token=token, record=record, runs=int(runs), cancelled=cancelled == "1"
        )  # fmt: skip

    async def claim_next(
        self, after: str, *, lease: float, by: str = "", without: Collection[str] = ()
    ) -> Claim | None:
        """Claim the item that waits longest of the next group that has no holder.

        Args:
            after: the group of the last claim: groups have turns in the order of their names.
            lease: seconds without a heartbeat after which it returns to the queue.
            by: name of this process.
            without: groups without a turn.

        Returns:
            The claim; ``None``: none of these groups has an item that waits, or all have a holder.
        """
        for group in sorted(await self.waiting(), key=lambda name: (name <= after, name)):
            if group not in without:
                claim = await self.claim(group, lease=lease, by=by, at_once=1)
                if claim is not None:
                    return claim
        return None

    async def heartbeat(self, claim: Claim, *, lease: float, record: str = "") -> Standing:
        """Extend a lease and record the progress; an empty record changes nothing."""
        reply = await self._run(
            "heartbeat", claim.group, claim.name, claim.token, _ms(lease), record
        )
        return cast("Standing", reply)

    async def append(self, claim: Claim, before: int, rows: Sequence[str]) -> bool:
        """Append rows to the item's list, once.

        Args:
            claim: the item's claim.
            before: number of rows before these.
            rows: the rows.

        Returns:
            Whether they are in the list; else the claim does not hold.
        """
        return bool(await self._run("append", claim.group, claim.name, claim.token, before, *rows))

    async def prepare(self, group: str, name: str, rows: Sequence[str]) -> None:
        """Write the rows of an item that is not offered yet; what an interrupted preparation left is completed."""
        for start in range(0, len(rows), _AT_ONCE):
            await self._run("append", group, name, "", start, *rows[start : start + _AT_ONCE])

    async def rows(self, group: str, name: str) -> list[str]:
        """Return the rows of an item."""
        key, found = f"{self.kind.prefix(group)}rows:{name}", list[str]()
        with translated(self.url):
            while True:
                reply = self.redis.lrange(key, len(found), len(found) + _AT_ONCE - 1)
                some = await cast("Awaitable[list[str]]", reply)
                found += some
                if len(some) < _AT_ONCE:
                    return found

    async def release(
        self, claim: Claim, *, record: str = "", cause: str = "", most: int = 0, error: str = ""
    ) -> bool:
        """Return an item to the queue.

        Args:
            claim: its claim.
            record: text of its owner; empty: unchanged.
            cause: cause of a failure, which is counted; empty: there is none, and the claim does not count.
            most: failures of this cause after which the item has ended as ``failed``.
            error: reason of the failure.

        Returns:
            Whether the claim held.
        """
        return bool(
            await self._run(
                "release", claim.group, claim.name, claim.token, record, cause, most, error
            )
        )

    async def finish(
        self,
        claim: Claim,
        state: str,
        *,
        record: str = "",
        size: int | None = None,
        drop_rows: bool = False,
        fenced: bool = True,
    ) -> bool:
        """End an item.

        Args:
            claim: its claim.
            state: in which it ends.
            record: text of its owner; empty: unchanged.
            size: bytes that it still has; ``None``: unchanged.
            drop_rows: whether its rows are not needed any more.
            fenced: whether the claim must hold; else any worker may end it, since all make the same of it.

        Returns:
            Whether the claim held.
        """
        return bool(
            await self._run(
                "finish", claim.group, claim.name, claim.token if fenced else "", state, record,
                "" if size is None else size, int(drop_rows),
            )
        )  # fmt: skip

    async def cancel(self, group: str, name: str) -> None:
        """Ask for the end of an item, unless it has ended."""
        await self._run("cancel", group, name)

    async def get(self, group: str, name: str) -> Item | None:
        """Return an item; ``None``: there is none of that name."""
        return next(iter(await self._items(group, [name])), None)

    async def of_key(self, group: str, key: str) -> Item | None:
        """Return the item of a key; ``None``: there is none, or it was dropped."""
        with translated(self.url):
            found = self.redis.hget(f"{self.kind.prefix(group)}keys", key)
            name = await cast("Awaitable[str | None]", found)
        return None if name is None else await self.get(group, name)

    async def unfinished(self, group: str) -> list[Item]:
        """Return the items of a group that have not ended, in the order of their names."""
        return await self._listed(group, "queue", "sent", "leases")

    async def all(self, group: str) -> list[Item]:
        """Return the items of a group, in the order of their names."""
        return await self._listed(group, "queue", "sent", "leases", "ended")

    async def totals(self, group: str) -> dict[str, int]:
        """Return the number of items by state, and ``bytes`` of all."""
        with translated(self.url):
            name = f"{self.kind.prefix(group)}totals"
            return counts_of(await cast("Awaitable[dict[str, str]]", self.redis.hgetall(name)))

    async def all_totals(self) -> Counter[str]:
        """Return the number of items of all groups by state, and their ``bytes``."""
        totals = await self._totals_of_all()
        return sum(map(Counter, totals.values()), Counter[str]())

    async def waiting(self) -> dict[str, int]:
        """Return the number of items that wait, by group; groups without any are left out."""
        counts = await self._of_all(lambda pipe, prefix: pipe.zcard(f"{prefix}queue"))
        return {group: count for group, count in counts.items() if count}

    async def all_unfinished(self) -> dict[str, list[Item]]:
        """Return the items that have not ended, by group; groups without any are left out."""
        held = await self._of_all(lambda pipe, prefix: pipe.zcard(f"{prefix}leases"))
        busy = sorted({group for group, count in held.items() if count} | {*await self.waiting()})
        return {group: await self.unfinished(group) for group in busy}

    async def sweep(self, group: str, rules: Sweeping) -> tuple[int, list[str]]:
        """Return items of dead holders and lost messages to the queue, and drop ended ones.

        Returns:
            The number of items that returned, and the names of those that were dropped.
        """
        kept = rules.retention
        before = 0 if kept is None else max(0, await self.now() - _ms(kept))
        count, *dropped = await self._run(
            "sweep", group, _ms(rules.lease), rules.deaths, rules.why, _ms(rules.unclaimed), before,
            rules.most,
        )  # fmt: skip
        return int(count), [str(name) for name in dropped]

    async def forget(self, group: str, names: Iterable[str]) -> None:
        """Drop items, and the group with its last one."""
        if not await self._run("forget", group, *names):
            with translated(self.url):
                await self.redis.zrem(self.kind.groups, group)

    async def groups(self) -> list[str]:
        """Return the groups that may have items, sorted; those that have expired are taken off the list."""
        with translated(self.url):
            if self.kind.expiry:
                expired = await self.now() - _ms(self.kind.expiry)
                await self.redis.zremrangebyscore(self.kind.groups, 0, expired)
            return sorted(cast("list[str]", await self.redis.zrange(self.kind.groups, 0, -1)))

    async def tidy(self) -> None:
        """Take groups without items off the list."""
        totals = await self._totals_of_all()
        empty = [group for group, counts in totals.items() if not any(counts.values())]
        await self._scripts("unlist", self.kind.groups, _LISTED, *empty)

    async def enlist(self, group: str, *, known: bool = False) -> None:
        """List a group by the time of now.

        Args:
            group: the group.
            known: whether only one that is listed stays so.
        """
        with translated(self.url):
            await self.redis.zadd(self.kind.groups, {group: await self.now()}, xx=known)

    async def announce(self, process: str) -> None:
        """Record a heartbeat of a process that works on items of this kind; those of a day ago are removed."""
        now = await self.now()
        with translated(self.url):
            await self.redis.zadd(self.kind.processes, {process: now})
            await self.redis.zremrangebyscore(self.kind.processes, 0, now - _DAY)

    async def leave(self, process: str) -> None:
        """Remove a process."""
        with translated(self.url):
            await self.redis.zrem(self.kind.processes, process)

    async def processes(self, *, within: float) -> int:
        """Return the number of processes with a heartbeat in the last ``within`` seconds."""
        since = await self.now() - _ms(within)
        with translated(self.url):
            return int(await self.redis.zcount(self.kind.processes, since, "+inf"))

    async def now(self) -> int:
        """Return the time in milliseconds."""
        if self._clock is not None:
            return self._clock()
        with translated(self.url):
            seconds, micros = await self.redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    async def _run(self, script: str, group: str, *arguments: str | int) -> list[str]:
        return cast("list[str]", await self._scripts(script, self.kind.prefix(group), *arguments))

    async def _totals_of_all(self) -> dict[str, dict[str, int]]:
        found = await self._of_all(lambda pipe, prefix: pipe.hgetall(f"{prefix}totals"))
        return {group: counts_of(fields) for group, fields in found.items()}

    async def _of_all(self, ask: Callable[[Pipeline, str], object]) -> dict[str, Any]:
        """Return the replies to one command about each group, asked by its prefix in one round trip."""
        groups = await self.groups()
        with translated(self.url):
            async with self.redis.pipeline(transaction=False) as pipe:
                for group in groups:
                    ask(pipe, self.kind.prefix(group))
                return dict(zip(groups, await pipe.execute(), strict=True))

    async def _listed(self, group: str, *sets: str) -> list[Item]:
        prefix = self.kind.prefix(group)
        with translated(self.url):
            # at one instant: items move between the sets
            async with self.redis.pipeline(transaction=True) as pipe:
                for name in sets:
                    pipe.zrange(f"{prefix}{name}", 0, -1)
                found = await pipe.execute()
        return await self._items(group, sorted({name for names in found for name in names}))

    async def _items(self, group: str, names: Sequence[str]) -> list[Item]:
        prefix, items = self.kind.prefix(group), list[Item]()
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            with translated(self.url):
                async with self.redis.pipeline(transaction=False) as pipe:
                    for name in some:
                        pipe.hmget(f"{prefix}item:{name}", *FIELDS)
                    values = await pipe.execute()
            read = zip(some, values, strict=True)
            items += [
                Item.of(group, name, fields) for name, fields in read if fields[0] is not None
            ]
        return items


def _source(name: str) -> str:
    return lua("orchestrator.work", "_lib", name)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
