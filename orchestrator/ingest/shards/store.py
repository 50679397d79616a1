"""Shards in Redis: states, leases and results, without texts and rows."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast
from uuid import uuid4

from redis.asyncio import Redis

from posology.index.shards.collector import Outcome
from posology.store.connection import TRIES, connect, translated
from posology.store.lua import lua
from posology.store.scripts import Scripts

#: name of the broker's queue
INGEST = "posology.ingest"
#: sorted set of runs, by the time of their writer's last heartbeat in milliseconds
RUNS = "posology:ingest:runs"
#: sorted set of the queue's workers, by the time of their last heartbeat in milliseconds
WORKERS = "posology:ingest:workers"
#: Failed tries of a shard before it is halved, and tries by workers that lack a model or the index before the ingest
#: fails.
MISSES, RETURNS = 2, 4
#: Workers that may die on a shard before the shard is considered the cause, and halved; more than one, since a worker
#: also dies with its machine.
LOSSES = 4
#: milliseconds after which a sent message that is not in the queue is considered lost
_LOST_AFTER = 20_000
#: milliseconds without a heartbeat of its writer before a run is removed
_FORGET = 7 * 24 * 3_600_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A shard claimed by a worker, until its lease ends."""

    run: str
    name: str
    #: fencing token: grows with every claim of the run
    token: int
    #: address of the index
    place: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """State of a shard."""

    #: waiting, held, done or failed; ``None``: unknown shard
    state: str | None
    outcome: Outcome


def run_of(place: str) -> str:
    """Return the run of an index: the name of its shards' keys. Each index has one writer."""
    return hashlib.blake2b(place.encode(), digest_size=8).hexdigest()


class ShardStore:
    """The shards of all indices on one Redis.

    Args:
        redis: see :func:`~posology.store.connection.connect`.
        url: address of Redis, for messages.
        clock: returns milliseconds; ``None``: the server's clock.
    """

    def __init__(self, redis: Redis, url: str, *, clock: Callable[[], int] | None = None) -> None:
        self.redis = redis
        self.url = url
        self._run = Scripts(redis, url, _source, clock)

    async def offer(self, place: str, name: str) -> None:
        """Queue a shard, unless it is in flight or done."""
        await self._run("offer", _prefix(run_of(place)), name, place)
        with translated(self.url):
            await self.redis.zadd(RUNS, {run_of(place): await self.now()})

    async def keep_run(self, place: str) -> None:
        """Record a heartbeat of an index's writer, unless its run has no shards."""
        with translated(self.url):
            # one that arrives after the last shard was dropped must not bring the run back
            await self.redis.zadd(RUNS, {run_of(place): await self.now()}, xx=True)

    async def standing(self, place: str, name: str) -> Standing:
        """Return the state of a shard."""
        with translated(self.url):
            name = f"{_prefix(run_of(place))}shard:{name}"
            found = cast("dict[str, str]", await self.redis.hgetall(name))
        failed = found.get("state") == "failed"
        outcome = Outcome(
            failure=found.get("error") if failed else None,
            tries=int(found.get("tries", 0)),
            lacking=found.get("lacking") == "1",
        )
        return Standing(state=found.get("state"), outcome=outcome)

    async def forget(self, place: str, names: Sequence[str]) -> None:
        """Drop shards, and the run with its last shard."""
        run = run_of(place)
        left = await self._run("forget", _prefix(run), *names)
        if not left:
            with translated(self.url):
                await self.redis.zrem(RUNS, run)

    async def runs(self) -> list[str]:
        """Return the runs that have shards."""
        with translated(self.url):
            await self.redis.zremrangebyscore(RUNS, 0, await self.now() - _FORGET)
            return cast("list[str]", await self.redis.zrange(RUNS, 0, -1))

    async def take(self, run: str) -> str | None:
        """Return the longest-waiting shard of a run, to be sent to the broker; ``None``: none waits."""
        return cast("str | None", await self._run("take", _prefix(run)))

    async def claim(self, run: str, name: str, *, worker: str, lease: float) -> Claim | None:
        """Claim a shard; ``None``: it is done, dropped, or claimed by another worker."""
        delivery = uuid4().hex
        found = await self._run("claim", _prefix(run), name, worker, _ms(lease), delivery)
        if not found:
            return None
        token, place = found
        return Claim(run=run, name=name, token=int(token), place=place)

    async def unsend(self, run: str, name: str) -> None:
        """Requeue a shard that was sent and not claimed."""
        await self._run("unsend", _prefix(run), name)

    async def heartbeat(self, claim: Claim, *, lease: float) -> bool:
        """Extend a lease; return whether the claim still holds."""
        held = await self._run("heartbeat", _prefix(claim.run), claim.name, claim.token, _ms(lease))
        return bool(held)

    async def finish(self, claim: Claim) -> None:
        """Record that a shard's rows are stored."""
        await self._run("finish", _prefix(claim.run), claim.name)

    async def miss(self, claim: Claim, why: str, *, lacking: bool) -> None:
        """Record a failed try.

        Args:
            claim: the shard.
            why: the error, one line.
            lacking: whether this worker lacks a model or the index; otherwise the shard is at fault.
        """
        most = RETURNS if lacking else MISSES
        await self._run(
            "miss", _prefix(claim.run), claim.name, claim.token, why, int(lacking), most
        )

    async def sweep(self, run: str) -> int:
        """Requeue shards of dead workers and lost messages; return their number."""
        with translated(self.url):
            empty = not await self.redis.llen(INGEST)
        why = f"{LOSSES} workers died while encoding it: check their logs"
        unclaimed = _LOST_AFTER if empty else 0
        return int(await self._run("sweep", _prefix(run), LOSSES, unclaimed, why))

    async def announce(self, worker: str) -> None:
        """Record a heartbeat of a worker."""
        with translated(self.url):
            await self.redis.zadd(WORKERS, {worker: await self.now()})

    async def leave(self, worker: str) -> None:
        """Remove a worker."""
        with translated(self.url):
            await self.redis.zrem(WORKERS, worker)

    async def workers(self, *, within: float) -> int:
        """Return the number of workers with a heartbeat in the last ``within`` seconds."""
        with translated(self.url):
            return int(await self.redis.zcount(WORKERS, await self.now() - _ms(within), "+inf"))

    async def now(self) -> int:
        """Return the server's time in milliseconds."""
        seconds, micros = await self.redis.time()
        return int(seconds) * 1000 + int(micros) // 1000


@asynccontextmanager
async def open_shards(url: str, *, patience: int = TRIES) -> AsyncIterator[ShardStore]:
    """Open the store of shards at an address."""
    async with connect(url, tries=patience) as redis:
        yield ShardStore(redis, url)


def _source(name: str) -> str:
    return lua("orchestrator.ingest.shards", "_lib", name)


def _prefix(run: str) -> str:
    # in braces, so that all keys of a run are on one node of a cluster
    return f"posology:{{ingest.{run}}}:"


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
