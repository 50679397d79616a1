"""Fetches for tenants: put beside the uploaded files, for the process that ingests them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from anyio import to_thread
from redis.asyncio import Redis

from orchestrator.ingest.live.request import FETCH, FetchRequest
from orchestrator.ingest.uploads.uploads import MAX_FILES, MIB, Arrival, Uploads
from orchestrator.logs.events import note
from orchestrator.settings import Settings
from orchestrator.work.items import Limits
from posology.budget.tenants.store import TenantStore
from posology.corpus.live.forms import Asked
from posology.errors import IngestNotAllowed, InvalidQuery, TenantNotFound
from posology.published.ingests import IngestOutput, IngestState
from posology.store import keys
from posology.store.bucket import Bucket

_HOUR = 3_600.0


class FetchesSpent(Exception):
    """The tenant has fetched too often.

    Args:
        limit: maximum fetches in an hour.
        seconds: until it may fetch again.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        super().__init__(limit, seconds)
        self.limit = limit
        self.seconds = seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetches:
    """Lets fetches of tenants wait to be made, within their limits."""

    uploads: Uploads
    settings: Settings

    async def offer(self, tenant: str, asked: FetchRequest) -> tuple[IngestOutput, bool]:
        """Let a fetch wait to be made; see :meth:`complete`.

        Raises:
            NoRoom: the tenant's uploads leave no room.
            FetchesSpent: the tenant has fetched too often.
            InvalidQuery: see :func:`as_made`.
            IngestNotAllowed: see :func:`check_tenant`.
            OSError: the disk is full, or cannot be written.
            StoreUnavailable: Redis is out of reach.
        """
        work = self.uploads.work
        await check_tenant(work.redis, work.url, tenant, self.settings)
        async with self.uploads.arriving(tenant, FETCH, room(self.settings)) as arrival:
            return await self.complete(arrival, asked)

    async def complete(
        self, arrival: Arrival, asked: FetchRequest, *, after: datetime | None = None
    ) -> tuple[IngestOutput, bool]:
        """Let a fetch wait whose file arrives, within the block of its arrival.

        Args:
            arrival: the file.
            asked: what to fetch.
            after: the same fetch that was asked for after this time stands for it, unless it failed or was cancelled;
                ``None``: only one that has not ended.

        Returns:
            The ingest, and whether it is new.

        Raises:
            NoRoom: the tenant's uploads leave no room.
            FetchesSpent: the tenant has fetched too often.
            InvalidQuery: see :func:`as_made`.
        """
        content = as_made(asked, self.settings).model_dump_json().encode()
        await to_thread.run_sync(arrival.write, content)
        tenant, digest = arrival.tenant, arrival.digest.hexdigest()
        if after is not None:
            known = await self.uploads.known(tenant, digest, after=after)
            if known is not None and known.state not in (IngestState.FAILED, IngestState.CANCELLED):
                return known, False
        work, most = self.uploads.work, self.settings.fetches_per_hour
        key = f"{keys.prefix(tenant)}rates:fetches"
        bucket = Bucket(work.redis, work.url, key=key, seconds=_HOUR / most, size=most)
        if seconds := await bucket.try_take():
            raise FetchesSpent(most, seconds)
        made, new = await self.uploads.complete(arrival)
        if new:
            note("fetch requested", tenant=tenant, ingest=made.id, service=asked.service)
        return made, new


async def check_tenant(redis: Redis, url: str, tenant: str, settings: Settings) -> None:
    """Check that a tenant may add literature; one without a record may, where requests need no key.

    Raises:
        IngestNotAllowed: it may not, or is disabled.
        StoreUnavailable: Redis is out of reach.
    """
    try:
        known = await TenantStore(redis, url).get(tenant)
    except TenantNotFound:
        return
    if known.disabled or not (known.limits.may_ingest or settings.open_uploads):
        raise not_allowed(tenant)


def room(settings: Settings) -> Limits:
    """Return the limits of a tenant's files that wait."""
    return Limits(items=MAX_FILES, bytes=settings.uploads_mib * MIB)


def as_made(asked: FetchRequest, settings: Settings) -> Asked:
    """Return a fetch as it is made.

    Raises:
        InvalidQuery: it asks for more records than the service allows, or its question has no word.
    """
    most = settings.fetch_records
    if max(asked.max_records, len(asked.pmids), len(asked.trials)) > most:
        raise InvalidQuery(f"max_records must be ≤ {most} here", field="max_records")
    return asked.asked()


def not_allowed(tenant: str) -> IngestNotAllowed:
    """Return the error of a tenant that may not add literature."""
    return IngestNotAllowed(
        f"the tenant {tenant} may not add literature to the index: ask the operator of this service",
        tenant=tenant,
    )
