"""What a worker process does beside its units: send waiting jobs, extend leases, find what was lost."""

from __future__ import annotations

import base64
import json
import logging
from bisect import bisect_right
from collections.abc import Awaitable
from contextlib import suppress
from typing import cast

import anyio
import anyio.to_thread

from orchestrator.jobs import tenants
from posology.errors import InvalidQuery, StoreUnavailable
from posology.store import keys
from posology.store.connection import evicts, translated
from workers.engine import fairness
from workers.engine.claims import WorkStore
from workers.engine.loops import again
from workers.engine.runner import Runner
from workers.engine.units import Send, Unit

logger = logging.getLogger(__name__)

#: the broker's queues
JOBS, CALLS = "posology.jobs", "posology.calls"
#: Jobs that wait in the broker at most. The others wait in their tenants' lists, where they can still be
#: cancelled, and where one tenant's thousands do not stand before another's ten.
DEPTH = 64
#: milliseconds after which a unit that was sent, and that no queue holds, was lost
_LOST_AFTER = 10_000
#: milliseconds by which units may overtake each other between the record and the queue
_DISORDER = 5_000
#: milliseconds after which a worker that does not tell of itself is no longer listed
_FORGET = 3_600_000
#: messages at the head of a queue that are looked at to tell how far the broker is
_LOOK = 20
#: jobs that are sent before the queue is looked at again: other processes send, too
_UNSEEN = 8
#: tenants that are swept at once
_AT_ONCE = 20
#: seconds until a tenant of which enough was sent is asked again
_LATER = 0.05
#: sweeps from one look at the list of tenants to the next
_TIDY = 5


class Housekeeping:
    """The loops of one worker process. Each runs until cancelled, and waits for a store that is away.

    Args:
        work: the job records.
        runner: whose leases are extended.
        send: hands a unit to the broker; blocking.
        pause: seconds between sweeps.
    """

    def __init__(self, work: WorkStore, runner: Runner, send: Send, *, pause: float = 2.0) -> None:
        self._work = work
        self._runner = runner
        self._send = send
        self._pause = pause
        self._redis = work.store.redis
        #: the tenant whose job was sent last
        self._last = ""
        #: tenants that have something which is not to be sent yet, by when they are asked again
        self._later: dict[str, float] = {}

    async def keep(self) -> None:
        """Extend the leases of what this process holds, and find what others have lost."""
        async with anyio.create_task_group() as group:
            group.start_soon(again, self._heartbeat)
            group.start_soon(again, self._sweep)
            group.start_soon(again, self._tidy)

    async def dispatch(self) -> None:
        """Send waiting jobs to the broker."""
        await again(self._dispatch)

    async def announce(self) -> None:
        """Tell that this process works, and at the end that it no longer does."""
        try:
            await self._warn_of_eviction()
            await again(self._announce)
        finally:
            url = self._work.store.url
            with anyio.move_on_after(1.0, shield=True), suppress(StoreUnavailable), translated(url):
                await self._redis.zrem(keys.WORKERS, self._work.worker)

    async def _warn_of_eviction(self) -> None:
        try:
            with translated(self._work.store.url):
                policy = await evicts(self._redis)
        except StoreUnavailable as error:
            logger.warning("%s", error)
            return
        if policy is not None:
            logger.error(
                "a full Redis will throw jobs and accounts away (maxmemory-policy %s): set it to "
                "noeviction",
                policy,
            )

    async def _heartbeat(self) -> None:
        await self._runner.heartbeat()
        await anyio.sleep(self._work.lease / 5)

    async def _announce(self) -> None:
        with translated(self._work.store.url):
            now = await self._now()
            await self._redis.zadd(keys.WORKERS, {self._work.worker: now})
            await self._redis.zremrangebyscore(keys.WORKERS, 0, now - _FORGET)
        await anyio.sleep(self._work.lease / 3)

    async def _dispatch(self) -> None:
        """Send waiting work, one unit of each tenant in turn, while the broker has room."""
        sent = room = 0
        now = anyio.current_time()
        self._later = {tenant: at for tenant, at in self._later.items() if at > now}
        found = [t for t in await tenants.waiting(self._work.store) if t not in self._later]
        # on from whoever came last: where the broker has room for one at a time, it is not for the first
        start = bisect_right(found, self._last)
        for tenant in found[start:] + found[:start]:
            if not room:
                room = min(DEPTH - await self._length(JOBS), _UNSEEN)
            if room <= 0:
                await anyio.sleep(_LATER)
                return
            offer = await fairness.take(self._work.store, tenant)
            if offer.later:
                self._later[tenant] = now + _LATER
            if offer.unit is not None:
                await anyio.to_thread.run_sync(self._send, [offer.unit])
                self._last = tenant
                sent += 1
                room -= 1
        if not sent:
            with translated(self._work.store.url):
                pause = _LATER if self._later else 1
                await cast("Awaitable[object]", self._redis.blpop([keys.WAKE], pause))

    async def _sweep(self) -> None:
        await anyio.sleep(self._pause)
        leases = not await self._amnesty()
        jobs, calls = await self._lost_before(JOBS), await self._lost_before(CALLS)
        names = iter(await tenants.listed(self._work.store))
        failed: list[StoreUnavailable] = []

        async def work() -> None:
            for tenant in names:
                try:
                    units = await self._work.sweep(
                        tenant, jobs_before=jobs, calls_before=calls, leases=leases
                    )
                    if units:
                        logger.warning("sent again: %s", units)
                        await anyio.to_thread.run_sync(self._send, units)
                except StoreUnavailable as error:
                    failed.append(error)
                except Exception:
                    # what is wrong with one tenant's records is not to stop the others' sweep
                    logger.exception("a defect of Posology in the sweep of %s", tenant)
                if failed:
                    return

        async with anyio.create_task_group() as group:
            for _ in range(_AT_ONCE):
                group.start_soon(work)
        if failed:
            raise failed[0]

    async def _tidy(self) -> None:
        await anyio.sleep(_TIDY * self._pause)
        await tenants.tidy(self._work.store)

    async def _amnesty(self) -> bool:
        """Whether a lease that has ended tells nothing, because nobody could extend one of late.

        That is so for a while after a time in which no worker swept: Redis was away, loading its file,
        or stalled, or the machine slept. Whoever still works extends its leases in that while.
        """
        lease = int(self._work.lease * 1000)
        with translated(self._work.store.url):
            now = await self._now()
            last = await self._redis.set(keys.SWEPT, now, get=True)
            if last is None or now - int(last) > lease / 2:
                await self._redis.set(keys.AMNESTY, now, px=lease // 3)
            return bool(await self._redis.exists(keys.AMNESTY))

    async def _lost_before(self, queue: str) -> int:
        """The time, milliseconds, such that what was sent before and is unclaimed is not in the queue.

        A queue is first in, first out: what was sent before its head has left it. Units that were sent
        a moment ago are on their way. A message at the head may be an older copy than the one of which
        the record has the time, such as a message that a killed worker gave back: so the earliest
        counts of several.
        """
        with translated(self._work.store.url):
            safe = await self._now() - _LOST_AFTER
            head = await cast("Awaitable[list[str]]", self._redis.lrange(queue, -_LOOK, -1))
        if not head:
            return safe
        sent = await self._work.sent_at([unit for message in head for unit in units_of(message)])
        # without any there are only second copies of what was claimed already: they say nothing
        return min(safe, min(sent) - _DISORDER) if sent else 0

    async def _now(self) -> int:
        """The server's time, milliseconds: the one clock that all workers share."""
        seconds, micros = await self._redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    async def _length(self, queue: str) -> int:
        with translated(self._work.store.url):
            return await self._redis.llen(queue)


def units_of(message: str) -> list[Unit]:
    """The units that a message in Celery's format (protocol 2, JSON) names.

    A message that is none of ours names none: whoever consumes it will say so.
    """
    try:
        outer = json.loads(message)
        body = outer["body"]
        if outer.get("properties", {}).get("body_encoding") == "base64":
            body = base64.b64decode(body)
        tenant, job, names = json.loads(body)[0]
        keys.prefix(tenant)
        return [Unit(tenant=tenant, job=job, name=name) for name in names]
    except (ValueError, LookupError, TypeError, AttributeError, InvalidQuery):
        return []
