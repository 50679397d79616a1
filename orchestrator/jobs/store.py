"""The submitter's side of the job store: submit, look, watch, cancel, try again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

from redis.asyncio import Redis

from orchestrator.jobs import records, tenants
from orchestrator.jobs.admission import Admission, Room, raise_if_full
from orchestrator.jobs.events import check_event, entries
from orchestrator.jobs.scripts import source
from orchestrator.logs import events
from orchestrator.question.request import JobRequest
from posology.budget.ledger.base import nano
from posology.budget.ledger.refusals import raise_if_not_admitted
from posology.errors import (
    BatchCancelled,
    BatchNotFound,
    IdempotencyConflict,
    InvalidQuery,
    JobFinished,
    JobNotFailed,
    JobNotFound,
)
from posology.published.jobs import JobEvent, JobOutput, JobPage
from posology.seams import Prices
from posology.store import keys
from posology.store.connection import SHORT, TRIES, connect, translated
from posology.store.keys import DEFAULT_TENANT
from posology.store.scripts import Scripts, read_together
from posology.types import JobState

#: seconds for which the record of a job is kept after its end
RETENTION = 7 * 24 * 3_600
#: characters of an idempotency key
MAX_KEY = 200
#: jobs on one page
MAX_PAGE = 500
#: seconds that one wait for events lasts, after which the job is looked at again; within the time of a command
_LISTEN = SHORT / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    """Result of a submission."""

    #: the job's id
    job: str
    #: false where the idempotency key stood for this job already
    created: bool


class JobStore:
    """Jobs of all tenants on one Redis. It may be shared by concurrent callers.

    Args:
        redis: see :func:`~posology.store.connection.connect`.
        url: its address, for messages.
        clock: milliseconds; ``None``: the server's own.
        retention: seconds for which the record of a finished job is kept.
        prices: with prices, a question that the tenant cannot pay for is rejected at submission.
        room: limits of tenants without limits of their own.
        advice: whether errors of jobs say what an operator would have to do; a tenant cannot.
    """

    def __init__(
        self,
        redis: Redis,
        url: str,
        *,
        clock: Callable[[], int] | None = None,
        retention: float = RETENTION,
        prices: Prices | None = None,
        room: Room | None = None,
        advice: bool = True,
    ) -> None:
        self.redis = redis
        self.url = url
        self.run = Scripts(redis, url, source, clock)
        self._retention = int(retention * 1000)
        self.admission = Admission(self.run, prices)
        self.room = room or Room()
        self.advice = advice

    async def submit(
        self,
        request: JobRequest,
        *,
        tenant: str = DEFAULT_TENANT,
        key: str | None = None,
        batch: str | None = None,
        row: int | None = None,
    ) -> Submitted:
        """Put a question into the queue.

        Args:
            request: with its defaults filled in, see :meth:`JobRequest.settled`.
            tenant: name of the tenant.
            key: idempotency key: the same key and request give the same job while its record is kept.
            batch: id of its batch.
            row: its row there, from 0.

        Raises:
            IdempotencyConflict: the key was used for another request.
            BatchNotFound: the batch has expired.
            BatchCancelled: the batch was cancelled.
            InvalidQuery: the tenant, the key or the parent is invalid.
            CollectionNotFound: the tenant may not read the collection.
            BudgetError: the tenant may not use the model, or its remaining budget is too small for one call.
                Rows of a batch are accepted, and fail one by one.
            QueueFull: the tenant has no room for another job.
            UnpricedModel: the model has no price in the tier.
            StoreUnavailable: nothing was submitted, or that is unknown; submitting with the same key is safe.
        """
        prefix = keys.prefix(tenant)
        if key is not None and not (0 < len(key) <= MAX_KEY and key.isprintable()):
            raise InvalidQuery(
                f"an idempotency key must have 1 to {MAX_KEY} printable characters (got {len(key)})",
                field="key",
            )
        if request.parent or request.collection:
            from orchestrator.jobs.conversations import completed

            request = await completed(request, tenant, self.get, self)
        body, model = request.model_dump_json(), str(request.model)
        record = {
            "tenant": tenant,
            "request": body,
            "patience": str(int(request.deadline_seconds * 1000)),
            "retention": str(self._retention),
        }
        if row is not None:
            record["row"] = str(row)
        least = Decimal(0) if batch is not None else self.admission.least_of(request)
        job = keys.new_id("job")
        await tenants.enlist(self, tenant)
        verdict, subject, *rest = await self.run(
            "submit",
            prefix,
            job,
            json.dumps(record),
            key or "",
            hashlib.sha256(body.encode()).hexdigest(),
            batch or "",
            model,
            "" if batch else nano(least),
            "" if request.max_cost_usd is None else nano(request.max_cost_usd),
            self.room.queued,
            self.room.stored,
        )
        with events.refusals(tenant=tenant, batch=batch, row=row, model=model):
            raise_if_full([verdict, subject, *rest], tenant)
            if verdict == "refused":
                raise_if_not_admitted([subject, *rest], model, least, tenant)
        if verdict == "conflict":
            raise IdempotencyConflict(
                f"the idempotency key {key!r} was used for another request, job {subject}: use a new key",
                job=subject,
            )
        if verdict == "gone":
            raise BatchNotFound(f"there is no batch {subject}, or it has expired", batch=subject)
        if verdict == "cancelled":
            raise BatchCancelled(f"batch {subject} was cancelled", batch=subject)
        # the reply to a script may be lost and the script repeated: our own id then exists already
        created = verdict == "created" or subject == job
        if created:
            asked = {
                "batch": batch,
                "row": row,
                "model": model,
                **events.question(request.question),
            }
            events.note("job submitted", tenant=tenant, job=subject, **asked)
            await tenants.wake(self, tenant)
        return Submitted(job=subject, created=created)

    async def get(self, job: str, *, tenant: str = DEFAULT_TENANT) -> JobOutput:
        """A job as it is now.

        Raises:
            JobNotFound: the tenant has no such job, or its record has expired.
            StoreUnavailable: Redis is unreachable.
        """
        name = self._key(job, tenant)
        with translated(self.url):
            record, calls, lane = await read_together(
                self.redis, name, f"{name}:calls", f"{name}:lane"
            )
        if not record:
            raise self._missing(job)
        return records.output(record, calls, list(lane.values()), advice=self.advice)

    async def state(self, job: str, *, tenant: str = DEFAULT_TENANT) -> JobState:
        """A job's state alone.

        Raises:
            JobNotFound: the tenant has no such job, or its record has expired.
            StoreUnavailable: Redis is unreachable.
        """
        name = self._key(job, tenant)
        with translated(self.url):
            found = await cast("Awaitable[str | None]", self.redis.hget(name, "state"))
        if found is None:
            raise self._missing(job)
        return JobState(found)

    async def page(
        self,
        *,
        tenant: str = DEFAULT_TENANT,
        state: JobState | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> JobPage:
        """Some jobs, newest first: by when they were submitted, whatever their state.

        Args:
            tenant: name of the tenant.
            state: only jobs in it; ``FAILED`` is the dead-letter list.
            cursor: of a page before; jobs that come meanwhile do not shift the pages.
            limit: jobs at most, up to :data:`MAX_PAGE`.

        Raises:
            InvalidQuery: ``cursor`` or ``limit`` cannot be one.
            StoreUnavailable: Redis is unreachable.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidQuery(f"limit must be 1 to {MAX_PAGE} (got {limit})", field="limit")
        if cursor is not None and not cursor.replace("_", "").isalnum():
            raise InvalidQuery(
                f"unknown cursor {cursor!r}: use `next` of the previous page", field="cursor"
            )
        prefix = keys.prefix(tenant)
        name = "jobs" if state is None else f"state:{state}"
        # all have the same score, and ids sort by the time they were made
        below = f"({cursor}" if cursor else "+"
        with translated(self.url):
            ids = cast(
                "list[str]",
                await self.redis.zrevrangebylex(f"{prefix}{name}", below, "-", 0, limit),
            )
        with translated(self.url):
            async with self.redis.pipeline(transaction=False) as pipe:
                for job in ids:
                    pipe.hgetall(f"{prefix}job:{job}")
                found = await pipe.execute()
        jobs = tuple(records.summary(record) for record in found if record)
        return JobPage(jobs=jobs, next=ids[-1] if len(ids) == limit else None)

    async def cancel(self, job: str, *, tenant: str = DEFAULT_TENANT) -> JobOutput:
        """Send nothing more for a job, and let what is on its way settle.

        Once this returns, no further model call of the job is admitted, by any worker; one that was
        admitted just before may only be sent now. Cancelling what is cancelled already changes nothing.

        Raises:
            JobNotFound: the tenant has no such job, or its record has expired.
            JobFinished: it is over.
            StoreUnavailable: Redis is unreachable.
        """
        self._key(job, tenant)
        said, *rest = await self.run("cancel", keys.prefix(tenant), job)
        if said == "gone":
            raise self._missing(job)
        if said == "over":
            raise JobFinished(f"job {job} has ended: {rest[0]}", job=job)
        events.note("job cancellation requested", tenant=tenant, job=job)
        return await self.get(job, tenant=tenant)

    async def retry(self, job: str, *, tenant: str = DEFAULT_TENANT) -> JobOutput:
        """Try a failed, expired or cancelled job again; what it paid for is replayed.

        Raises:
            JobNotFound: the tenant has no such job, or its record has expired.
            JobNotFailed: it has succeeded, or is under way.
            StoreUnavailable: Redis is unreachable.
        """
        before = await self.get(job, tenant=tenant)
        patience = int(JobRequest.model_validate(before.request).deadline_seconds * 1000)
        # the script may be repeated when its reply is lost: it knows itself again by that
        nonce = keys.new_id("try")
        said, *rest = await self.run("retry", keys.prefix(tenant), job, patience, nonce)
        if said == "gone":
            raise self._missing(job)
        if said == "refused":
            raise JobNotFailed(
                f"job {job} is {rest[0]}: only failed, expired or cancelled jobs can be retried",
                job=job,
            )
        events.note("job retried", tenant=tenant, job=job)
        await tenants.wake(self, tenant)
        return await self.get(job, tenant=tenant)

    async def events(
        self, job: str, *, tenant: str = DEFAULT_TENANT, after: str = "0"
    ) -> AsyncGenerator[JobEvent]:
        """Yield past and new events of a job until it ends.

        Args:
            job: its id.
            tenant: name of the tenant.
            after: id of the last known event.

        Raises:
            JobNotFound: the tenant has no such job, or its record has expired.
            InvalidQuery: ``after`` is no event's id.
            StoreUnavailable: Redis is unreachable.
        """
        check_event(after)
        stream = f"{self._key(job, tenant)}:events"
        while True:
            # asked before the events are read: what a job that is over has to tell is all there
            over = (await self.state(job, tenant=tenant)).over
            with translated(self.url):
                read = await self.redis.xread(
                    {stream: after}, count=100, block=None if over else int(_LISTEN * 1000)
                )
            for stream_id, entry in entries(read):
                after = stream_id
                yield records.event(stream_id, entry)
            if over and not read:
                return

    async def told(
        self, job: str, *, tenant: str = DEFAULT_TENANT, limit: int = 100
    ) -> tuple[JobEvent, ...]:
        """Return the first events of a job until now.

        Args:
            job: its id.
            tenant: name of the tenant.
            limit: maximum number of events.

        Raises:
            JobNotFound: the tenant has no such job.
            StoreUnavailable: Redis is unreachable.
        """
        stream = f"{self._key(job, tenant)}:events"
        with translated(self.url):
            found = cast(
                "list[tuple[str, Mapping[str, str]]]", await self.redis.xrange(stream, count=limit)
            )
        return tuple(records.event(stream_id, entry) for stream_id, entry in found)

    async def wait(self, job: str, *, tenant: str = DEFAULT_TENANT) -> JobOutput:
        """A job when it is over.

        Raises:
            JobNotFound: the tenant has no such job, or its record has expired.
            StoreUnavailable: Redis is unreachable.
        """
        async for _ in self.events(job, tenant=tenant):
            pass
        return await self.get(job, tenant=tenant)

    def _key(self, job: str, tenant: str) -> str:
        # an id with a colon would name one of the keys that stand beside a job's record
        if not job.isascii() or not job.replace("_", "").isalnum():
            raise self._missing(job)
        return f"{keys.prefix(tenant)}job:{job}"

    def _missing(self, job: str) -> JobNotFound:
        return JobNotFound(f"there is no job {job}, or its record has expired", job=job)


@asynccontextmanager
async def open_store(
    url: str,
    *,
    retention: float = RETENTION,
    patience: int = TRIES,
    prices: Prices | None = None,
    room: Room | None = None,
    advice: bool = True,
) -> AsyncIterator[JobStore]:
    """A store for as long as it is needed.

    Args:
        url: see :func:`~posology.store.connection.connect`.
        retention: seconds for which the record of a finished job is kept.
        patience: tries at each command while Redis is unreachable.
        prices: see :class:`JobStore`.
        room: see there.
        advice: see there.

    Raises:
        ConfigurationError: the address cannot be one.
    """
    redis = connect(url, tries=patience)
    try:
        yield JobStore(redis, url, retention=retention, prices=prices, room=room, advice=advice)
    finally:
        await redis.aclose()
