"""Shards as leased work: the shards of an index are a group, a *run*, without texts and rows."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from redis.asyncio import Redis

from orchestrator.work.items import Claim, Item, Kind, Sweeping
from orchestrator.work.store import WorkStore
from posology.index.shards.collector import Outcome
from posology.store.connection import connect, translated

#: name of the broker's queue
INGEST = "posology.ingest"
#: Failed tries of a shard before it is halved, and tries by workers that lack a model or the index before the ingest
#: fails.
MISSES, RETURNS = 2, 4
#: Workers that may die on a shard before the shard is considered the cause, and halved; more than one, since a worker
#: also dies with its machine.
LOSSES = 4
#: seconds after which a sent message that is not in the queue is considered lost
_LOST_AFTER = 20.0
#: causes of failed tries
_MISS, _RETURN = "misses", "returns"
SHARDS = Kind(
    # in braces, so that all keys of a run are on one node of a cluster
    prefix=lambda run: f"posology:{{ingest.{run}}}:",
    # by the last heartbeat of their writer, too
    groups="posology:ingest:runs",
    processes="posology:ingest:encoders",
    expiry=7 * 24 * 3_600,
)


def run_of(place: str) -> str:
    """Return the run of an index: the name of its shards' keys. Each index has one writer."""
    return hashlib.blake2b(place.encode(), digest_size=8).hexdigest()


class ShardStore(WorkStore):
    """The shards of all indices on one Redis. The record of a shard is the address of its index."""

    def __init__(self, redis: Redis, url: str, *, clock: Callable[[], int] | None = None) -> None:
        super().__init__(redis, url, SHARDS, clock=clock)

    async def offer_shard(self, place: str, name: str) -> None:
        """Queue a shard, unless it is in flight or done."""
        await self.offer(run_of(place), name, place, again="failed")

    async def keep_run(self, place: str) -> None:
        """Record a heartbeat of an index's writer, unless its run has no shards."""
        # one that arrives after the last shard was dropped must not bring the run back
        await self.enlist(run_of(place), known=True)

    async def standing(self, place: str, name: str) -> Item | None:
        """Return a shard as it is now; ``None``: it is unknown."""
        return await self.get(run_of(place), name)

    async def drop(self, place: str, names: Sequence[str]) -> None:
        """Drop shards, and the run with its last shard."""
        await self.forget(run_of(place), names)

    async def done(self, claim: Claim) -> None:
        """Record that a shard's rows are stored. Any worker writes the same ones, also one whose lease has ended."""
        await self.finish(claim, "done", fenced=False)

    async def miss(self, claim: Claim, why: str, *, lacking: bool) -> None:
        """Record a failed try.

        Args:
            claim: the shard.
            why: the error, one line.
            lacking: whether this worker lacks a model or the index; otherwise the shard is at fault.
        """
        cause, most = (_RETURN, RETURNS) if lacking else (_MISS, MISSES)
        await self.release(claim, cause=cause, most=most, error=why)

    async def sweep_run(self, run: str, *, lease: float) -> int:
        """Requeue shards of dead workers and lost messages; return their number."""
        with translated(self.url):
            empty = not await self.redis.llen(INGEST)
        why = f"{LOSSES} workers died while encoding it: check their logs"
        unclaimed = _LOST_AFTER if empty else 0.0
        rules = Sweeping(lease=lease, deaths=LOSSES, why=why, unclaimed=unclaimed)
        count, _ = await self.sweep(run, rules)
        return count


def outcome_of(shard: Item) -> Outcome:
    """Return the outcome of a shard that has ended."""
    return Outcome(failure=shard.error, tries=shard.runs, lacking=shard.cause == _RETURN)


@asynccontextmanager
async def open_shards(url: str) -> AsyncIterator[ShardStore]:
    """Open the store of shards at an address."""
    async with connect(url) as redis:
        yield ShardStore(redis, url)
