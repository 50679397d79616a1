"""Records of jobs' batch lane in Redis: calls that are wanted, and providers' batches."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

from orchestrator.jobs import tenants
from orchestrator.jobs.store import JobStore
from orchestrator.lane.records import BATCHES, BatchRecords, Entry, Reserved, Sent, Wanted
from orchestrator.logs.events import note
from posology.budget.ledger.base import nano
from posology.store import keys
from posology.store.connection import translated
from posology.types import Attempt, Completion
from workers.engine.claims import WorkStore, raise_if_refused
from workers.engine.journal import JobJournal
from workers.engine.lane.calls import LaneCalls
from workers.engine.units import ClaimedUnit, Unit

#: batches of a tenant that one process looks at in a step
_MOST = 4
#: seconds for which the record of a provider's batch is kept after its end
_KEPT = 7 * 86_400


async def tenants_of(store: JobStore) -> list[str]:
    """Return the tenants that may have calls in the lane, and drop those that have none."""
    redis, active = store.redis, []
    with translated(store.url):
        names = sorted(await cast("Awaitable[set[str]]", redis.smembers(keys.LANE)))
        for name in names:
            if await _occupied(store, name):
                active.append(name)
                continue
            await redis.srem(keys.LANE, name)
            if await _occupied(store, name):
                # a call came meanwhile
                await redis.sadd(keys.LANE, name)
    return active


async def _occupied(store: JobStore, tenant: str) -> bool:
    prefix = keys.prefix(tenant)
    async with store.redis.pipeline(transaction=False) as pipe:
        pipe.zcard(f"{prefix}lane:wanted")
        pipe.zcard(f"{prefix}lane:batches")
        return any(await pipe.execute())


class LaneStore(BatchRecords):
    """The lane's records of a tenant.

    Args:
        work: the job records.
        tenant: its name.
    """

    def __init__(self, work: WorkStore, tenant: str) -> None:
        self.tenant = tenant
        self._work = work
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
        await self._enlist()
        reply = await self._run(
            "want",
            unit.job,
            unit.name,
            claimed.token,
            1 if calls.repairs_live else BATCHES,
            *(one for pair in calls.wanted.items() for one in pair),
        )
        raise_if_refused(claimed, reply[0])
        # again: a worker that found no call yet may have dropped the tenant
        await self._enlist()
        note("unit waits for a batch", **claimed.ids, calls=len(calls.wanted))
        # a reply may have come meanwhile
        await tenants.wake(self._store, self.tenant)

    async def failed(self, claimed: ClaimedUnit, key: str) -> str | None:
        """Return why a call failed, JSON; ``None``: it has not failed."""
        name = f"{keys.prefix(self.tenant)}job:{claimed.unit.job}:lane"
        with translated(self._store.url):
            found = await cast("Awaitable[str | None]", self._store.redis.hget(name, key))
        return None if found is None else json.loads(found).get("e")

    async def flawed(self, claimed: ClaimedUnit, key: str, error: str) -> None:
        """Record that the reply to a call cannot be used."""
        await self._run("flawed", claimed.unit.job, key, error)

    async def wanted(
        self, *, most: int, wait: float, at_once: int, hold: float
    ) -> tuple[Wanted, ...]:
        """See :meth:`~orchestrator.lane.records.BatchRecords.wanted`."""
        found = await self._run("wanted", int(wait * 1000), at_once, most, int(hold * 1000))
        return tuple(
            Wanted(job=job, key=key, plan=json.loads(plan))
            for job, key, plan in zip(found[::3], found[1::3], found[2::3], strict=True)
        )

    async def hold(self, seconds: float) -> None:
        """See :meth:`~orchestrator.lane.records.BatchRecords.hold`."""
        await self._run("hold_lane", int(seconds * 1000))

    async def put_off(self, model: str, calls: Sequence[Wanted], *, seconds: float) -> None:
        """See :meth:`~orchestrator.lane.records.BatchRecords.put_off`."""
        named = (name for call in calls for name in (call.job, call.key))
        await self._run("put_off", int(seconds * 1000), model, *named)

    async def reserve(
        self,
        batch: str,
        record: Mapping[str, str],
        rows: Sequence[Entry],
        *,
        seconds: float,
    ) -> Reserved:
        """See :meth:`~orchestrator.lane.records.BatchRecords.reserve`."""
        attempts, said, failed, _ = await self._run(
            "send_batch",
            batch,
            json.dumps(dict(record)),
            int(seconds * 1000),
            *(one for row in rows for one in (json.dumps(row), nano(Decimal(row["reserved"])))),
        )
        if failed:
            await tenants.wake(self._store, self.tenant)
        return Reserved(attempts=tuple(attempts), waits=bool(said))

    async def due(self, *, seconds: float) -> list[Sent]:
        """See :meth:`~orchestrator.lane.records.BatchRecords.due`."""
        found, now = await self._run("watch_batches", int(seconds * 1000), _MOST)
        records = [dict(zip(flat[::2], flat[1::2], strict=True)) for flat in found]
        return [_sent(record, int(now)) for record in records if record]

    async def rows(self, batch: str) -> dict[str, Entry]:
        """See :meth:`~orchestrator.lane.records.BatchRecords.rows`."""
        with translated(self._store.url):
            found = await cast(
                "Awaitable[dict[str, str]]",
                self._store.redis.hgetall(f"{keys.prefix(self.tenant)}lane:batch:{batch}:rows"),
            )
        return {attempt: json.loads(raw) for attempt, raw in found.items()}

    async def known(self) -> tuple[str, ...]:
        """See :meth:`~orchestrator.lane.records.BatchRecords.known`."""
        prefix = f"{keys.prefix(self.tenant)}lane:batch"
        with translated(self._store.url):
            ids = cast("list[str]", await self._store.redis.zrange(f"{prefix}es", 0, -1))
            async with self._store.redis.pipeline(transaction=False) as pipe:
                for one in ids:
                    pipe.hget(f"{prefix}:{one}", "provider_batch")
                found = await pipe.execute()
        return tuple(one for one in found if one)

    async def unwanted(self, rows: Mapping[str, Entry]) -> bool:
        """See :meth:`~orchestrator.lane.records.BatchRecords.unwanted`."""
        jobs = sorted({row["job"] for row in rows.values()})
        prefix = keys.prefix(self.tenant)
        with translated(self._store.url):
            async with self._store.redis.pipeline(transaction=False) as pipe:
                for job in jobs:
                    pipe.hget(f"{prefix}job:{job}", "state")
                states = await pipe.execute()
        waiting = ("queued", "running", "extracting", "reducing")
        return not any(state in waiting for state in states)

    async def note(self, batch: Sent, *, seconds: float, **fields: str) -> bool:
        """See :meth:`~orchestrator.lane.records.BatchRecords.note`."""
        said = await self._run(
            "note_batch", batch.id, batch.state, int(seconds * 1000), json.dumps(fields)
        )
        return str(said) == "noted"

    async def undo(self, batch: str, *, reason: str = "") -> bool:
        """See :meth:`~orchestrator.lane.records.BatchRecords.undo`."""
        said = await self._run("undo_batch", batch, reason)
        await tenants.wake(self._store, self.tenant)
        return str(said) == "undone"

    async def settle(
        self,
        batch: str,  # noqa: ARG002 - the job's record has all attempts
        entry: Entry,
        attempt: Attempt,
        completion: Completion | None,
    ) -> None:
        """See :meth:`~orchestrator.lane.records.BatchRecords.settle`."""
        unit = Unit(tenant=self.tenant, job=entry["job"], name=entry["unit"])
        # no claim is needed: the end of an attempt is accepted from any worker
        claimed = ClaimedUnit(unit=unit, token=0, deadline=0.0, patience=0.0, request="")
        await JobJournal(self._work, claimed).close(attempt, completion)

    async def land(self, batch: str, attempt: str, fate: str, reason: str = "") -> bool:
        """See :meth:`~orchestrator.lane.records.BatchRecords.land`."""
        return str(await self._run("land", batch, attempt, fate, reason)) == "landed"

    async def end(self, batch: str) -> bool:
        """See :meth:`~orchestrator.lane.records.BatchRecords.end`."""
        await tenants.wake(self._store, self.tenant)
        return str(await self._run("end_batch", batch, _KEPT * 1000)) != "open"

    async def _enlist(self) -> None:
        with translated(self._store.url):
            await self._store.redis.sadd(keys.LANE, self.tenant)

    async def _run(self, script: str, *arguments: str | int) -> Any:
        return await self._store.run(script, keys.prefix(self.tenant), *arguments)


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
