"""What Redis knows of shards: which wait, who holds which until when, and how each ended. No text, no rows."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast
from uuid import uuid4

from redis.asyncio import Redis

from orchestrator.ingest.shards.scripts import source
from posology.index.shards.collector import Outcome
from posology.store.connection import TRIES, connect, translated
from posology.store.scripts import Scripts

#: the broker's queue
INGEST = "posology.ingest"
#: runs by when their writer last told of itself, milliseconds
RUNS = "posology:ingest:runs"
#: workers of the queue by when they last told of themselves, milliseconds
WORKERS = "posology:ingest:workers"
#: Tries of a shard that makes the encoder raise before it is cut in two, and tries by workers that lack what it takes
#: before the ingest ends.
MISSES, RETURNS = 2, 4
#: Workers that a shard may lose before it is taken for the cause, and cut in two: one that is killed with its machine says
#: nothing about what it was at.
LOSSES = 4
#: milliseconds after which what was sent, and is not in the queue, was lost
_LOST_AFTER = 20_000
#: milliseconds for which a writer that tells nothing of itself keeps its run
_FORGET = 7 * 24 * 3_600_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A shard that this worker encodes, until its lease ends."""

    run: str
    name: str
    #: grows with every claim of the run
    token: int
    #: of the index
    place: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """How a shard stands."""

    #: waiting, held, done or failed; ``None``: nobody knows it
    state: str | None
    outcome: Outcome


def run_of(place: str) -> str:
    """The name under which the shards of an index stand: of each there is one writer."""
    return hashlib.blake2b(place.encode(), digest_size=8).hexdigest()


class ShardStore:
    """The shards of all indices on one Redis.

    Args:
        redis: see :func:`~posology.store.connection.connect`.
        url: for messages.
        clock: milliseconds; ``None``: the server's own.
    """

    def __init__(self, redis: Redis, url: str, *, clock: Callable[[], int] | None = None) -> None:
        self.redis = redis
        self.url = url
        self._run = Scripts(redis, url, source, clock)

    async def offer(self, place: str, name: str) -> None:
        """See to it that a shard is encoded, unless it is under way or done."""
        await self._run("offer", _prefix(run_of(place)), name, place)
        await self.tell(place)

    async def tell(self, place: str) -> None:
        """The writer of an index is there."""
        with translated(self.url):
            await self.redis.zadd(RUNS, {run_of(place): await self.now()})

    async def standing(self, place: str, name: str) -> Standing:
        """How a shard stands."""
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
        """Drop shards, and the run with its last one."""
        run = run_of(place)
        left = await self._run("forget", _prefix(run), *names)
        if not left:
            with translated(self.url):
                await self.redis.zrem(RUNS, run)

    async def runs(self) -> list[str]:
        """The runs that have shards."""
        with translated(self.url):
            await self.redis.zremrangebyscore(RUNS, 0, await self.now() - _FORGET)
            return cast("list[str]", await self.redis.zrange(RUNS, 0, -1))

    async def take(self, run: str) -> str | None:
        """The shard of a run that has waited longest, to be sent to the broker."""
        return cast("str | None", await self._run("take", _prefix(run)))

    async def claim(self, run: str, name: str, *, worker: str, lease: float) -> Claim | None:
        """Take up a shard; ``None`` where there is nothing to do: done, gone, or another's."""
        delivery = uuid4().hex
        found = await self._run("claim", _prefix(run), name, worker, _ms(lease), delivery)
        if not found:
            return None
        token, place = found
        return Claim(run=run, name=name, token=int(token), place=place)

    async def unsend(self, run: str, name: str) -> None:
        """Put back what was sent and not claimed, for another worker."""
        await self._run("unsend", _prefix(run), name)

    async def heartbeat(self, claim: Claim, *, lease: float) -> bool:
        """Extend a lease; whether it is still ours."""
        said = await self._run("heartbeat", _prefix(claim.run), claim.name, claim.token, _ms(lease))
        return bool(said)

    async def finish(self, claim: Claim) -> None:
        """The rows are there."""
        await self._run("finish", _prefix(claim.run), claim.name)

    async def miss(self, claim: Claim, why: str, *, lacking: bool) -> None:
        """It could not be encoded.

        Args:
            claim: the shard.
            why: one line.
            lacking: whether this worker lacks what it takes; else what is in the shard is at fault.
        """
        most = RETURNS if lacking else MISSES
        await self._run(
            "miss", _prefix(claim.run), claim.name, claim.token, why, int(lacking), most
        )

    async def sweep(self, run: str) -> int:
        """Find shards whose workers are gone, and messages that were lost; how many were found."""
        with translated(self.url):
            empty = not await self.redis.llen(INGEST)
        why = f"{LOSSES} workers were lost at it: look at their logs"
        unclaimed = _LOST_AFTER if empty else 0
        return int(await self._run("sweep", _prefix(run), LOSSES, unclaimed, why))

    async def announce(self, worker: str) -> None:
        """A worker of the queue is there."""
        with translated(self.url):
            await self.redis.zadd(WORKERS, {worker: await self.now()})

    async def leave(self, worker: str) -> None:
        """It is no longer."""
        with translated(self.url):
            await self.redis.zrem(WORKERS, worker)

    async def workers(self, *, within: float) -> int:
        """How many have told of themselves in so many seconds."""
        with translated(self.url):
            return int(await self.redis.zcount(WORKERS, await self.now() - _ms(within), "+inf"))

    async def now(self) -> int:
        """The server's time, milliseconds."""
        seconds, micros = await self.redis.time()
        return int(seconds) * 1000 + int(micros) // 1000


@asynccontextmanager
async def open_shards(url: str, *, patience: int = TRIES) -> AsyncIterator[ShardStore]:
    """The store of shards at an address; closes its connection."""
    async with connect(url, patience=patience) as redis:
        yield ShardStore(redis, url)


def _prefix(run: str) -> str:
    # in braces, so that all keys of a run are on one node of a cluster
    return f"posology:{{ingest.{run}}}:"


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
