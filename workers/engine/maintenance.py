"""Maintenance of a worker process: send waiting jobs, extend leases, find orphaned units."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import anyio
import anyio.to_thread

from orchestrator.jobs import tenants
from orchestrator.jobs.metrics import ALIVE
from orchestrator.jobs.tenants import Store
from orchestrator.logs.events import note, usd
from posology.budget.books.reader import spenders
from posology.budget.ledger.base import nano
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants.alerts import NearLimit, near_limits
from posology.errors import InvalidQuery, StoreUnavailable
from posology.store import keys
from posology.store.connection import evicts, is_first, translated
from workers.engine import fairness
from workers.engine.claims import WorkStore
from workers.engine.runner import Runner
from workers.engine.units import Send, Unit

if TYPE_CHECKING:
    pass

logger = logging.getLogger(__name__)

#: seconds for which a warning of a limit is remembered; longer than any day or month
_WARNED = 40 * 86_400

#: names of the broker's queues
JOBS, CALLS = "posology.jobs", "posology.calls"
#: Most jobs in the broker. The others wait in their tenants' lists, where they can still be cancelled, and where
#: one tenant's thousands do not delay another's ten.
DEPTH = 64
#: milliseconds after which a sent unit that is in no queue is considered lost
_LOST_AFTER = 10_000
#: milliseconds by which units may overtake each other between the record and the queue
_DISORDER = 5_000
#: milliseconds for which sweeps look for times from before the clock was put back
_NOTICED = 60_000
#: milliseconds without a heartbeat after which a worker is no longer listed
_FORGET = 3_600_000
#: messages at the head of a queue that show how far the broker has got
_LOOK = 20
#: jobs to send before the queue's length is read again: other processes send, too
_UNSEEN = 8
#: tenants to sweep concurrently
_AT_ONCE = 20
#: seconds until a tenant that has enough units in the broker is looked at again
_LATER = 0.05
#: sweeps between two checks of the list of tenants
_TIDY = 5


class Maintenance:
    """The loops of one worker process. Each runs until cancelled, and waits while Redis is unreachable.

    Args:
        work: the job records.
        runner: has the claimed units.
        send: hands a unit to the broker. Blocking.
        pause: seconds between sweeps.
        answers: whether the process answers jobs, not only calls or shards of an ingest.
    """

    def __init__(
        self,
        work: WorkStore,
        runner: Runner,
        send: Send,
        *,
        pause: float = 2.0,
        answers: bool = True,
    ) -> None:
        self._work = work
        self._runner = runner
        self._send = send
        self._pause = pause
        #: lists that this process announces itself in
        self._lists = (keys.WORKERS, keys.ANSWERING) if answers else (keys.WORKERS,)
        self._redis = work.store.redis
        #: tenant of the job that was sent last
        self._last = ""
        #: tenants with units that must not be sent yet, and when to look at them again
        self._later: dict[str, float] = {}

    async def keep(self) -> None:
        """Extend the leases of this process's units, and find orphaned units."""
        async with anyio.create_task_group() as group:
            group.start_soon(run_forever, self._heartbeat)
            group.start_soon(self.in_turn, keys.SWEEP, self._pause, self._sweep)
            group.start_soon(self.in_turn, keys.TIDY, _TIDY * self._pause, self._tidy)

    async def in_turn(self, key: str, seconds: float, step: Callable[[], Awaitable[None]]) -> None:
        """Repeat a step of which one is enough, so that its load does not grow with the number of processes.

        Args:
            key: of the step, one of :data:`~posology.store.keys.TURNS`.
            seconds: between two steps of all processes together.
            step: harmless if two processes do it at once, as they may after one was stopped.
        """

        async def once() -> None:
            await anyio.sleep(seconds)
            if await self._is_its_turn(key, seconds):
                await step()

        await run_forever(once)

    async def _is_its_turn(self, key: str, seconds: float) -> bool:
        """Return whether no process did a step lately."""
        return await is_first(self._redis, self._work.store.url, key, 0.9 * seconds)

    async def dispatch(self) -> None:
        """Send waiting jobs to the broker."""
        await run_forever(self._dispatch)

    async def announce(self) -> None:
        """Send heartbeats for this process, and unregister it in the end."""
        try:
            await self._warn_of_eviction()
            await run_forever(self._announce)
        finally:
            url = self._work.store.url
            with anyio.move_on_after(1.0, shield=True), suppress(StoreUnavailable), translated(url):
                for name in self._lists:
                    await self._redis.zrem(name, self._work.worker)

    async def _warn_of_eviction(self) -> None:
        try:
            with translated(self._work.store.url):
                policy = await evicts(self._redis)
        except StoreUnavailable as error:
            logger.warning("%s", error)
            return
        if policy is not None:
            logger.error(
                "a full Redis evicts jobs and accounts: maxmemory-policy must be noeviction (got %s)",
                policy,
            )

    async def _heartbeat(self) -> None:
        await self._runner.heartbeat()
        await anyio.sleep(self._work.lease / 5)

    async def _announce(self) -> None:
        with translated(self._work.store.url):
            now = await self._now()
            for name in self._lists:
                await self._redis.zadd(name, {self._work.worker: now})
                await self._redis.zremrangebyscore(name, 0, now - _FORGET)
                # from before the clock was put back: those that live come again
                await self._redis.zremrangebyscore(name, now + int(self._work.lease * 1000), "+inf")
        # sooner than those who look take a silent worker for dead
        await anyio.sleep(min(self._work.lease / 3, ALIVE / 3_000))

    async def _dispatch(self) -> None:
        """Send waiting work, one unit of each tenant in turn, while the broker has room."""
        sent = room = 0
        now = anyio.current_time()
        self._later = {tenant: at for tenant, at in self._later.items() if at > now}
        found = [t for t in await tenants.waiting(self._work.store) if t not in self._later]
        # continue after the last tenant, so that every tenant has its turn if the broker has room for one unit
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
        put_back = await self._put_back()
        leases = not await self._amnesty()
        jobs, calls = await self._lost_before(JOBS), await self._lost_before(CALLS)
        names = iter(await tenants.listed(self._work.store))
        failed: list[StoreUnavailable] = []

        async def work() -> None:
            for tenant in names:
                try:
                    units = await self._work.sweep(
                        tenant,
                        jobs_before=jobs,
                        calls_before=calls,
                        leases=leases,
                        put_back=put_back,
                    )
                    if units:
                        for unit in units:
                            note("unit sent again", tenant=tenant, job=unit.job, unit=unit.name)
                        await anyio.to_thread.run_sync(self._send, units)
                except StoreUnavailable as error:
                    failed.append(error)
                except Exception:
                    # one tenant's damaged records must not stop the sweep of the others
                    logger.exception("internal error in the sweep tenant=%s", tenant)
                if failed:
                    return

        async with anyio.create_task_group() as group:
            for _ in range(_AT_ONCE):
                group.start_soon(work)
        if failed:
            raise failed[0]

    async def _tidy(self) -> None:
        await tenants.tidy(self._work.store)
        await self._settle_runs()
        await self.warn_of_limits()

    async def _settle_runs(self) -> None:
        """Settle the reservations of dead processes of tenants without jobs: the sweep of the others settles theirs."""
        redis, url = self._redis, self._work.store.url
        others = {*await spenders(redis, url)} - {*await tenants.listed(self._work.store)}
        for tenant in sorted(others):
            await RedisLedger(redis, url, tenant=tenant).sweep()

    async def warn_of_limits(self) -> None:
        """Write a line for each budget that is nearly spent, once in its window."""
        redis, url = self._redis, self._work.store.url
        for near in await near_limits(redis, url, await spenders(redis, url)):
            if await is_first_warning(self._work.store, near):
                note(
                    "budget nearly spent",
                    logging.WARNING,
                    tenant=near.tenant,
                    scope=near.scope,
                    cap_usd=usd(near.cap),
                    spent_usd=usd(near.spent),
                    window=near.window,
                )

    async def _put_back(self) -> bool:
        """Return whether the clock of Redis was put back lately, by more than it takes to notice."""
        with translated(self._work.store.url):
            now, last = await self._now(), await self._redis.get(keys.CLOCK)
            if last is not None and int(last) - now > int(self._work.lease * 1000):
                # before the time of this sweep is written down, so that a crash in between repeats it
                await self._redis.set(keys.PUT_BACK, now, px=_NOTICED)
                # it would stand until the old time has come
                await self._redis.delete(keys.LOOKED)
                logger.warning("the clock of Redis was put back by %d s", (int(last) - now) // 1000)
            await self._redis.set(keys.CLOCK, now)
            return bool(await self._redis.exists(keys.PUT_BACK))

    async def _amnesty(self) -> bool:
        """Return whether ended leases must be ignored, because lately no worker could extend one.

        That is so for a while after a time in which no worker swept: Redis was unreachable, loading its file or
        stalled, or the machine slept. Live workers extend their leases in that while.
        """
        lease = int(self._work.lease * 1000)
        with translated(self._work.store.url):
            now = await self._now()
            last = await self._redis.set(keys.SWEPT, now, get=True)
            if last is None or now - int(last) > lease / 2:
                await self._redis.set(keys.AMNESTY, now, px=lease // 3)
            since = await self._redis.get(keys.AMNESTY)
            # one that begins later than now stands since before the clock was put back
            return since is not None and int(since) <= now

    async def _lost_before(self, queue: str) -> int:
        """Return a time, milliseconds: unclaimed units that were sent before it are not in the queue.

        A queue is first in, first out: units sent before its head have left it. Units that were sent a moment ago are
        on their way. A message at the head may be an older copy than the one whose time is recorded, such as a message
        that a killed worker returned, so the earliest of several counts.
        """
        with translated(self._work.store.url):
            safe = await self._now() - _LOST_AFTER
            head = await cast("Awaitable[list[str]]", self._redis.lrange(queue, -_LOOK, -1))
        if not head:
            return safe
        sent = await self._work.sent_at([unit for message in head for unit in units_of(message)])
        # without any, the head has only second copies of claimed units, which tell nothing
        return min(safe, min(sent) - _DISORDER) if sent else 0

    async def _now(self) -> int:
        """Return Redis's time, milliseconds: the clock that all workers share."""
        seconds, micros = await self._redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    async def _length(self, queue: str) -> int:
        with translated(self._work.store.url):
            return await self._redis.llen(queue)


def units_of(message: str) -> list[Unit]:
    """Return the units that a message in Celery's format (protocol 2, JSON) names; none if it is not ours."""
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


async def run_forever(step: Callable[[], Awaitable[None]], pause: float = 0.0) -> None:
    """Repeat a step until cancelled; log its errors and continue a second later.

    Args:
        step: the step.
        pause: seconds between two steps, for a step that does not wait by itself.
    """
    while True:
        try:
            await step()
        except StoreUnavailable as error:
            logger.warning("%s", error)
            await anyio.sleep(1.0)
        except Exception:
            logger.exception("internal error in maintenance step=%s", step)
            await anyio.sleep(1.0)
        if pause:
            await anyio.sleep(pause)


async def is_first_warning(store: Store, near: NearLimit) -> bool:
    """Return whether this is the first warning of a limit in its window, remember it, and queue its webhooks.

    A changed limit is another one.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    mark = hashlib.sha256(f"{near.window} {near.cap}".encode()).hexdigest()[:16]
    told = {
        "scope": near.scope,
        "window": near.window,
        "cap_nano": str(nano(near.cap)),
        "spent_nano": str(nano(near.spent)),
    }
    said = await store.run("warn", keys.prefix(near.tenant), mark, _WARNED, json.dumps(told))
    return bool(said == "warned")
