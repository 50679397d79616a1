"""Records of the batch lane in Redis: calls that are wanted, and providers' batches."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from orchestrator.jobs import tenants
from orchestrator.logs.events import note
from posology.store import keys
from posology.store.connection import translated
from workers.engine.claims import WorkStore, raise_if_refused
from workers.engine.lane.calls import LaneCalls
from workers.engine.units import ClaimedUnit

#: batches that a call may go into before it has failed
BATCHES = 3
#: seconds for which the record of a provider's batch is kept after its end
_KEPT = 7 * 86_400


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A call that waits to be sent."""

    job: str
    #: its content, see :func:`~posology.llm.memo.call_key`
    key: str
    #: line of a batch, fields of its opening, and whether it asks for caching
    plan: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A provider's batch."""

    id: str
    provider: str
    #: of all rows, ``provider:name``
    model: str
    #: ``creating`` or ``sent``
    state: str
    #: the provider's id; ``None``: unknown
    provider_batch: str | None
    #: seconds since it was recorded, by the clock of Redis
    age: float
    #: number of rows that it was created with
    rows: int
    #: whether a cancellation was asked for
    cancelling: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Reserved:
    """Result of a reservation of many attempts."""

    #: ids of those that are to be sent
    attempts: tuple[str, ...]
    #: whether calls in flight have reserved the rest of a limit, so that calls stay wanted
    waits: bool
    #: number of calls that a limit refuses for good
    failed: int


class LaneStore:
    """The lane's records of all tenants.

    Args:
        work: the job records.
    """

    def __init__(self, work: WorkStore) -> None:
        self.work = work
        self._store = work.store

    async def park(self, claimed: ClaimedUnit, calls: LaneCalls) -> None:
        """Record the calls that a unit wants, and park it until they have their replies.

        Args:
            claimed: the unit.
            calls: its calls.

        Raises:
            JobCancelled: the job was cancelled.
            JobSuperseded: the unit is another worker's.
        """
        unit = claimed.unit
        await self._enlist(unit.tenant)
        reply = await self._run(
            "want",
            unit.tenant,
            unit.job,
            unit.name,
            claimed.token,
            1 if calls.repairs_live else BATCHES,
            *(one for pair in calls.wanted.items() for one in pair),
        )
        raise_if_refused(claimed, reply[0])
        # again: a worker that found no call yet may have dropped the tenant
        await self._enlist(unit.tenant)
        note("unit waits for a batch", **claimed.ids, calls=len(calls.wanted))
        # a reply may have come meanwhile
        await tenants.wake(self._store, unit.tenant)

    async def failed(self, claimed: ClaimedUnit, key: str) -> str | None:
        """Return why a call failed, JSON; ``None``: it has not failed."""
        name = f"{keys.prefix(claimed.unit.tenant)}job:{claimed.unit.job}:lane"
        with translated(self._store.url):
            found = await cast("Awaitable[str | None]", self._store.redis.hget(name, key))
        return None if found is None else json.loads(found).get("e")

    async def flawed(self, claimed: ClaimedUnit, key: str, error: str) -> None:
        """Record that the reply to a call cannot be used."""
        await self._run("flawed", claimed.unit.tenant, claimed.unit.job, key, error)

    async def tenants(self) -> list[str]:
        """Return the tenants that may have calls in the lane, and drop those that have none."""
        redis, found = self._store.redis, []
        with translated(self._store.url):
            names = sorted(await cast("Awaitable[set[str]]", redis.smembers(keys.LANE)))
            for name in names:
                if await self._occupied(name):
                    found.append(name)
                    continue
                await redis.srem(keys.LANE, name)
                if await self._occupied(name):
                    # a call came meanwhile
                    await redis.sadd(keys.LANE, name)
        return found

    async def wanted(
        self, tenant: str, *, most: int, wait: float, at_once: int, hold: float
    ) -> tuple[Wanted, ...]:
        """Return calls that are to be sent now, in the order in which they came. Then call :meth:`hold`.

        Args:
            tenant: name of the tenant.
            most: maximum number of calls.
            wait: seconds that a call waits for others.
            at_once: number of wanted calls that are sent without a wait.
            hold: seconds for which no other worker gets any.
        """
        found = await self._run("wanted", tenant, int(wait * 1000), at_once, most, int(hold * 1000))
        return tuple(
            Wanted(job=job, key=key, plan=json.loads(plan))
            for job, key, plan in zip(found[::3], found[1::3], found[2::3], strict=True)
        )

    async def hold(self, tenant: str, seconds: float) -> None:
        """Send no call of a tenant for some seconds, 0 for none."""
        await self._run("hold_lane", tenant, int(seconds * 1000))

    async def reserve(
        self,
        tenant: str,
        batch: str,
        record: Mapping[str, str],
        rows: Sequence[tuple[str, int]],
        *,
        seconds: float,
    ) -> Reserved:
        """Reserve attempts and record their batch, before it is created at the provider.

        Args:
            tenant: name of the tenant.
            batch: our id of the batch.
            record: its fields.
            rows: opening (JSON) and nano-dollars of each attempt.
            seconds: time within which the caller creates it.
        """
        attempts, said, failed, _ = await self._run(
            "send_batch",
            tenant,
            batch,
            json.dumps(dict(record)),
            int(seconds * 1000),
            *(one for row in rows for one in row),
        )
        if failed:
            await tenants.wake(self._store, tenant)
        return Reserved(attempts=tuple(attempts), waits=bool(said), failed=int(failed))

    async def due(self, tenant: str, *, seconds: float, most: int) -> list[Sent]:
        """Take providers' batches that are to be looked at now, for some seconds."""
        found, now = await self._run("watch_batches", tenant, int(seconds * 1000), most)
        records = [dict(zip(flat[::2], flat[1::2], strict=True)) for flat in found]
        return [_sent(record, int(now)) for record in records if record]

    async def rows(self, tenant: str, batch: str) -> dict[str, dict[str, Any]]:
        """Return the entries of a batch's rows that have not landed, by attempt."""
        with translated(self._store.url):
            found = await cast(
                "Awaitable[dict[str, str]]",
                self._store.redis.hgetall(f"{keys.prefix(tenant)}lane:batch:{batch}:rows"),
            )
        return {attempt: json.loads(raw) for attempt, raw in found.items()}

    async def known(self, tenant: str) -> tuple[str, ...]:
        """Return the providers' ids of the tenant's batches."""
        prefix = f"{keys.prefix(tenant)}lane:batch"
        with translated(self._store.url):
            ids = cast("list[str]", await self._store.redis.zrange(f"{prefix}es", 0, -1))
            async with self._store.redis.pipeline(transaction=False) as pipe:
                for one in ids:
                    pipe.hget(f"{prefix}:{one}", "provider_batch")
                found = await pipe.execute()
        return tuple(one for one in found if one)

    async def jobs_over(self, tenant: str, jobs: Sequence[str]) -> bool:
        """Return whether none of the jobs waits for its replies."""
        prefix = keys.prefix(tenant)
        with translated(self._store.url):
            async with self._store.redis.pipeline(transaction=False) as pipe:
                for job in jobs:
                    pipe.hget(f"{prefix}job:{job}", "state")
                states = await pipe.execute()
        waiting = ("queued", "running", "extracting", "reducing")
        return not any(state in waiting for state in states)

    async def note(self, tenant: str, batch: Sent, *, seconds: float, **fields: str) -> bool:
        """Write down how far a batch is; return false if it is in another state by now.

        Args:
            tenant: name of the tenant.
            batch: as it was read.
            seconds: time until the next look at it.
            **fields: that change.
        """
        said = await self._run(
            "note_batch", tenant, batch.id, batch.state, int(seconds * 1000), json.dumps(fields)
        )
        return str(said) == "noted"

    async def undo(self, tenant: str, batch: str, *, reason: str = "") -> bool:
        """Release the reservations of a batch that was certainly not created.

        Args:
            tenant: name of the tenant.
            batch: our id of it.
            reason: why its calls have failed, JSON; empty: they are wanted again.
        """
        said = await self._run("undo_batch", tenant, batch, reason)
        await tenants.wake(self._store, tenant)
        return str(said) == "undone"

    async def land(
        self, tenant: str, batch: str, attempt: str, fate: str, reason: str = ""
    ) -> bool:
        """Go on with the call of a row whose attempt is settled; return false if it had landed before.

        Args:
            tenant: name of the tenant.
            batch: our id of the batch.
            attempt: its id.
            fate: ``done``, ``again`` or ``failed``.
            reason: why it failed, JSON.
        """
        return str(await self._run("land", tenant, batch, attempt, fate, reason)) == "landed"

    async def end(self, tenant: str, batch: str) -> bool:
        """End a batch whose rows have all landed; return false if some have not."""
        await tenants.wake(self._store, tenant)
        return str(await self._run("end_batch", tenant, batch, _KEPT * 1000)) != "open"

    async def _enlist(self, tenant: str) -> None:
        with translated(self._store.url):
            await self._store.redis.sadd(keys.LANE, tenant)

    async def _occupied(self, tenant: str) -> bool:
        prefix = keys.prefix(tenant)
        async with self._store.redis.pipeline(transaction=False) as pipe:
            pipe.zcard(f"{prefix}lane:wanted")
            pipe.zcard(f"{prefix}lane:batches")
            return any(await pipe.execute())

    async def _run(self, script: str, tenant: str, *arguments: str | int) -> Any:
        return await self._store.run(script, keys.prefix(tenant), *arguments)


def _sent(record: Mapping[str, str], now: int) -> Sent:
    created = int(record["created"])
    return Sent(
        id=record["id"],
        provider=record["provider"],
        model=record["model"],
        state=record["state"],
        provider_batch=record.get("provider_batch"),
        # negative if the clock was put back
        age=max(0, now - created) / 1000,
        rows=int(record["rows"]),
        cancelling="cancelling" in record,
    )
