"""The ledger in Redis: one script for each operation changes the counters and writes the entry."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import cast

from redis.asyncio import Redis

from posology.budget.books.reader import enlist
from posology.budget.ledger import entries
from posology.budget.ledger.base import LEASE, Ledger, dollars, lease_of, nano
from posology.budget.ledger.refusals import refuse
from posology.budget.ledger.scripts import source
from posology.budget.ledger.windows import WINDOWS, day_of, resets, window
from posology.store import keys
from posology.store.connection import translated
from posology.store.keys import at
from posology.store.scripts import Scripts
from posology.types import Attempt, Balance, Reservation, Scope, Usage

logger = logging.getLogger(__name__)

#: reply of the script for an attempt without a reservation
GONE = "gone"
#: seconds between two sweeps of orphaned reservations, while calls wait
_SWEEP = 5.0
#: seconds for which the counters of a run in process are kept
_RUN = 90 * 86_400


class RedisLedger(Ledger):
    """The ledger of one tenant, shared by all processes.

    Args:
        redis: the connection.
        url: for messages.
        tenant: name of the tenant.
        lease: seconds until a reservation expires without an extension, see :func:`~posology.budget.ledger.base.lease_of`.
        floor: fewest tokens a second of a reply; ``None``: the lease covers every reply.
        clock: milliseconds; ``None``: the server's own, which all processes share.
    """

    def __init__(
        self,
        redis: Redis,
        url: str,
        *,
        tenant: str,
        lease: float = LEASE,
        floor: float | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self._redis = redis
        self._url = url
        self.tenant = tenant
        self._prefix = keys.prefix(tenant)
        self._lease = lease
        self._floor = floor
        self._clock = clock
        self._run = Scripts(redis, url, source, clock)
        self._swept = -_SWEEP
        self._enlisted = False

    async def reserve(self, asked: Reservation) -> None:
        """See :meth:`Ledger.reserve`."""
        if not self._enlisted:
            await enlist(self._redis, self._url, self.tenant)
            self._enlisted = True
        opening = asked.opening
        reservation = {
            "id": opening.id,
            "nano": str(nano(opening.reserved)),
            "job": asked.job,
            "model": opening.model,
            "stage": opening.stage,
            "strategy": opening.strategy,
            "ticket": asked.ticket,
            "lease": int(lease_of(opening, self._lease, self._floor) * 1000),
        } | ({"batch": True} if asked.batch else {})
        reply = await self._run(
            "reserve",
            self._prefix,
            json.dumps(reservation),
            json.dumps(entries.opened(opening) | {"call": asked.call}),
            "" if asked.cap is None else nano(asked.cap),
            _RUN * 1000,
        )
        own_clock = self._clock is not None  # then the owner of the clock sweeps
        if reply[0] == "busy" and not own_clock and time.monotonic() - self._swept > _SWEEP:
            # the headroom may be reserved by a process that is gone
            self._swept = time.monotonic()
            await self.sweep()
        refuse(reply, opening, self.tenant)

    async def settle(self, attempt: Attempt) -> None:
        """See :meth:`Ledger.settle`."""
        usage = attempt.usage or Usage()
        said = await self._run(
            "settle",
            self._prefix,
            attempt.id,
            attempt.outcome,
            "" if attempt.cost is None else nano(attempt.cost),
            usage.total_input,
            usage.total_output,
            json.dumps(entries.ended(attempt)),
        )
        if said == GONE:
            log_missing(attempt)

    async def release(self, attempt: str) -> None:
        """See :meth:`Ledger.release`."""
        await self._run("release", self._prefix, attempt)

    async def leave(self, ticket: str, job: str) -> None:
        """See :meth:`Ledger.leave`."""
        await self._run("leave", self._prefix, ticket, job)

    async def extend(self, attempts: Sequence[str]) -> int:
        """See :meth:`Ledger.extend`."""
        return int(await self._run("extend", self._prefix, int(self._lease * 1000), *attempts))

    async def sweep(self) -> list[str]:
        """See :meth:`Ledger.sweep`."""
        return cast("list[str]", await self._run("sweep", self._prefix))

    async def job_limit(self) -> Decimal | None:
        """See :meth:`Ledger.job_limit`."""
        with translated(self._url):
            most = self._redis.hget(f"{self._prefix}tenant", str(Scope.JOB))
            return _known(await cast("Awaitable[str | None]", most))

    async def balances(self, job: str | None = None) -> tuple[Balance, ...]:
        """See :meth:`Ledger.balances`."""
        now = await self._now()
        names = [window(scope, day_of(now)) for scope in WINDOWS]
        fields = [f"{what}:{name}" for name in names for what in ("spent", "reserved")]
        with translated(self._url):
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.hmget(f"{self._prefix}tenant", [str(scope) for scope in WINDOWS])
                pipe.hmget(f"{self._prefix}money", fields)
                pipe.hmget(
                    keys.budget(self.tenant, job or "run_"),
                    ["cap_nano", "spent_nano", "reserved_nano"],
                )
                caps, counters, own = await pipe.execute()
        balances = [
            Balance(
                scope=scope,
                cap=_known(caps[i]),
                spent=_counted(counters[2 * i]),
                reserved=_counted(counters[2 * i + 1]),
                resets=resets(scope, now),
            )
            for i, scope in enumerate(WINDOWS)
        ]
        if job is not None:
            balances.append(
                Balance(
                    scope=Scope.JOB,
                    cap=_known(own[0]),
                    spent=_counted(own[1]),
                    reserved=_counted(own[2]),
                )
            )
        return tuple(balances)

    async def _now(self) -> datetime:
        if self._clock is not None:
            return at(self._clock())
        with translated(self._url):
            seconds, micros = await self._redis.time()
        return datetime.fromtimestamp(seconds + micros / 1e6, UTC)


def log_missing(attempt: Attempt) -> None:
    """Log an ended attempt without a reservation in the ledger.

    It was settled before and the reply got lost, or Redis lost an acknowledged write: then only the
    provider's own account has the cost.
    """
    logger.warning(
        "attempt without reservation attempt=%s model=%s charged_usd=%s: settled before, or lost by Redis",
        attempt.id,
        attempt.model,
        attempt.charged,
    )


def _known(cap: str | None) -> Decimal | None:
    return None if cap in (None, "") else dollars(cap)


def _counted(counter: str | None) -> Decimal:
    return dollars(counter or 0)
