"""Audits of ledgers: they read every entry, so they run beside the pages, and their results are stored."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from pydantic import ValidationError
from redis.asyncio import Redis
from starlette.background import BackgroundTask
from starlette.responses import Response

from orchestrator.console.access import Asked
from orchestrator.spending import audit_output
from posology.budget.books.audit import Auditor
from posology.budget.books.form import LedgerAudit
from posology.errors import PosologyError
from posology.published.base import Published
from posology.store import keys
from posology.store.connection import translated

#: seconds for which a result is stored
_STORED = 90 * 86_400
#: seconds after which an audit whose process has ended no longer counts as running
_LONGEST = 3_600
#: faults of each kind that a page names
_NAMED = 20


class Audited(Published):
    """An audit that has ended, as stored."""

    at: datetime
    """Its end."""
    seconds: float
    """How long it took."""
    found: LedgerAudit | None
    """Its result, with the first faults of each kind; null: it failed."""
    failed: str | None
    """Reason of a failure; null: there was none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """The last audit of a ledger, and whether another one is running."""

    last: Audited | None
    running: bool


class Audits:
    """Audits of one tenant's ledger.

    Args:
        redis: the connection.
        url: for messages.
        tenant: name of the tenant.
    """

    def __init__(self, redis: Redis, url: str, tenant: str) -> None:
        self._redis = redis
        self._url = url
        self._tenant = tenant
        self._result = f"{keys.prefix(tenant)}audit"
        self._running = f"{self._result}:running"

    async def last(self) -> Standing:
        """Return the last audit; one that another version has stored in another form is none.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        with translated(self._url):
            result, running = cast(
                "list[str | None]", await self._redis.mget(self._result, self._running)
            )
        try:
            last = None if result is None else Audited.model_validate_json(result)
        except ValidationError:
            last = None
        return Standing(last=last, running=running is not None)

    async def begin(self) -> bool:
        """Note that an audit runs; false: one is running already.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        with translated(self._url):
            return bool(await self._redis.set(self._running, "1", nx=True, ex=_LONGEST))

    async def run(self) -> None:
        """Audit the ledger as `posology ledger verify` does, and store the result."""
        started = time.perf_counter()
        audit: LedgerAudit | None = None
        failed: str | None = None
        try:
            audit = await self._found()
        except PosologyError as error:
            failed = error.message
        except Exception:
            # else it would be shown as running
            with translated(self._url):
                await self._redis.delete(self._running)
            raise
        stored = Audited(
            at=datetime.now(UTC), seconds=time.perf_counter() - started, found=audit, failed=failed
        )
        with translated(self._url):
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.set(self._result, stored.model_dump_json(), ex=_STORED)
                pipe.delete(self._running)
                await pipe.execute()

    async def _found(self) -> LedgerAudit:
        out = audit_output(await Auditor(self._redis, self._url, self._tenant).verify())
        faults = ("differences", "over_bound", "orphans", "strangers")
        return out.model_copy(update={name: getattr(out, name)[:_NAMED] for name in faults})


async def begin(asked: Asked, tenant: str, then: Response) -> Response:
    """Begin an audit unless one is running, and return ``then``; it goes on when the response is sent.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    store = asked.api.jobs()
    audits = Audits(store.redis, store.url, tenant)
    if await audits.begin():
        then.background = BackgroundTask(_in_turn, asked, audits)
    return then


async def _in_turn(asked: Asked, audits: Audits) -> None:
    # one ledger at a time in a process, so that pages do not wait
    async with asked.api.audits:
        await audits.run()
