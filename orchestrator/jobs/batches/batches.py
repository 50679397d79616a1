"""Batches: many questions under one id, each a job of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, cast

import anyio

from orchestrator.jobs import tenants
from orchestrator.jobs.admission import raise_if_full
from orchestrator.jobs.batches.lines import CHUNK, Lines, Reader
from orchestrator.jobs.batches.pages import page_of_batches, page_of_rows
from orchestrator.jobs.batches.records import batch_id, find, output
from orchestrator.jobs.rows import Row, check_defaults
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.budget.tenants.grants import check_grants
from posology.concurrency import map_concurrently
from posology.errors import BatchCancelled, IdempotencyConflict, UnpricedModel
from posology.published.jobs import BatchOutput, BatchPage, BatchRow
from posology.store import keys
from posology.store.connection import translated
from posology.types.jobs import OPEN, BatchState

#: submissions under way at once: the server works while the client prepares the next
_AT_ONCE = 32
#: milliseconds from the begin of a submission within which its batch is not forgotten
_SUBMISSION = 3_600_000
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Batches:
    """Batches of all tenants. It may be shared by concurrent callers.

    A batch holds only what its jobs do not: their order, the rows' own ids, the rows that are no
    requests. It is kept as long as any of its jobs; the sweep forgets it. A batch of rejected rows
    alone is kept as long as a job that ended when it was submitted.

    Args:
        store: of the jobs.
        settings: for what neither rows nor defaults say.
    """

    def __init__(self, store: JobStore, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._lines = Reader(settings)

    async def submit(
        self,
        rows: Lines,
        *,
        tenant: str,
        key: str | None = None,
        defaults: Mapping[str, Any] = _NOTHING,
    ) -> BatchOutput:
        """Put many questions into the queue.

        An invalid row becomes a rejected row; the others are submitted. Blank lines are ignored. Repeat an
        interrupted submission with the same key to complete it. A batch that was cancelled stays as it is.

        Args:
            rows: JSON Lines, each a :class:`~orchestrator.question.request.JobRequest` with an optional ``id``,
                a JSON scalar that its output row repeats. They are read twice, and never held together in memory.
            tenant: name of the tenant.
            key: idempotency key: the same key and rows give the same batch and jobs while any of them is kept.
            defaults: values of the fields that a row omits.

        Raises:
            IdempotencyConflict: the key was used for other rows.
            InvalidQuery: the tenant, the key or a default is invalid, or there are too many rows.
            CollectionNotFound: the tenant may not read a collection that a row names. Nothing was submitted.
            BudgetError: the tenant can pay for none of the rows.
            QueueFull: the tenant has no room for the rows. Nothing was submitted; where other submissions took the
                room meanwhile, a part was: repeat with the same key.
            StoreUnavailable: not all rows were submitted; repeat with the same key.
        """
        if isinstance(rows, Iterator | AsyncIterator):
            raise TypeError("rows must not be an iterator, since they are read twice: pass a list")
        prefix = keys.prefix(tenant)
        batch = keys.new_id("batch") if key is None else batch_id(tenant, key)
        check_defaults(defaults, self._settings)
        seen = await self._lines.survey(rows, defaults)
        await check_grants(self._store.redis, self._store.url, tenant, seen.collections)
        name = f"{prefix}batch:{batch}"
        if key is None or not await self._begun(name):
            # one that was begun is completed, and found again, whatever has been spent since
            await self._store.admission.admit(filter(self._priced, seen.models), tenant=tenant)
        await tenants.enlist(self._store, tenant)
        verdict, *rest = await self._store.run(
            "open_batch",
            prefix,
            batch,
            seen.digest,
            seen.total,
            seen.rejected,
            int(self._settings.retention * 1000),
            _SUBMISSION,
            seen.beside,
            seen.requests,
            self._store.room.queued,
            self._store.room.stored,
        )
        raise_if_full([verdict, *rest], tenant)
        if verdict == "conflict":
            raise IdempotencyConflict(
                f"the idempotency key {key!r} was used for other rows, {batch}: use a new key",
                job=batch,
            )
        if verdict == "cancelled":
            return await self.get(batch, tenant=tenant)
        async for some in self._lines.read(rows, defaults):
            await self._note(name, some)
            fields = [str(row.number) for row in some]
            with translated(self._store.url):
                known = await cast(
                    "Awaitable[list[str | None]]",
                    self._store.redis.hmget(f"{name}:jobs", fields),
                )
            left = [row for row, job in zip(some, known, strict=True) if job is None]
            await self._submit(left, tenant, batch)
        return await self.get(batch, tenant=tenant)

    async def generation(self, key: str, *, tenant: str, fresh: bool) -> str:
        """A key of which there may be another: the one that was made last, or a new one.

        Args:
            key: stands for what is asked.
            tenant: name of the tenant.
            fresh: whether to make a new one, which the same key then leads to.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        name = f"{keys.prefix(tenant)}generation:{key}"
        with translated(self._store.url):
            if fresh:
                # longer than what it leads to, unless somebody tries jobs again for a year
                days = self._settings.retention_days + 365
                await self._store.redis.set(name, keys.new_id("at"), ex=int(days * 24 * 3_600))
            made = cast("str | None", await self._store.redis.get(name))
        return key if made is None else f"{key}:{made}"

    async def get(self, batch: str, *, tenant: str) -> BatchOutput:
        """A batch as it is now.

        Raises:
            BatchNotFound: the tenant has no such batch, or its record has expired.
            StoreUnavailable: Redis is unreachable.
        """
        return output(batch, tenant, await find(self._store, batch, tenant))

    async def page(
        self,
        *,
        tenant: str,
        state: BatchState | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> BatchPage:
        """Return some batches, newest first.

        Args:
            tenant: name of the tenant.
            state: only batches in this state; a page may then be short although more follow.
            cursor: ``next`` of the previous page; batches that are submitted meanwhile do not shift the pages.
            limit: maximum number, up to :data:`~orchestrator.jobs.store.MAX_PAGE`.

        Raises:
            InvalidQuery: ``cursor`` or ``limit`` is invalid.
            StoreUnavailable: Redis is unreachable.
        """
        return await page_of_batches(
            self._store, tenant=tenant, state=state, cursor=cursor, limit=limit
        )

    async def cancel(self, batch: str, *, tenant: str, seconds: float | None = None) -> BatchOutput:
        """Cancel the jobs of a batch that have not ended, and submit no more of its rows.

        Each job is cancelled by :meth:`JobStore.cancel`'s script; jobs that ended stay as they are. Repeat a
        cancellation that was interrupted: it continues, see :attr:`BatchOutput.open`.

        Args:
            batch: its id.
            tenant: name of the tenant.
            seconds: time after which it stops between two pieces; ``None``: it goes to the end.

        Raises:
            BatchNotFound: the tenant has no such batch, or its record has expired.
            StoreUnavailable: Redis is unreachable; repeat it.
        """
        prefix = keys.prefix(tenant)
        record = await find(self._store, batch, tenant)
        (said,) = await self._store.run("cancel_batch", prefix, batch)
        if said == "cancelled":
            until = None if seconds is None else anyio.current_time() + seconds
            for first in range(0, int(record["total"]), CHUNK):
                done = await self._cancel_rows(prefix, batch, range(first, first + CHUNK))
                # pieces without open jobs do not count, so that each repetition gets further
                if done and until is not None and anyio.current_time() >= until:
                    break
        return await self.get(batch, tenant=tenant)

    async def _cancel_rows(self, prefix: str, batch: str, numbers: range) -> int:
        """Cancel the open jobs of some rows, and return their number."""

        async def cancel(job: str) -> None:
            await self._store.run("cancel", prefix, job)

        with translated(self._store.url):
            jobs = await cast(
                "Awaitable[list[str | None]]",
                self._store.redis.hmget(f"{prefix}batch:{batch}:jobs", list(map(str, numbers))),
            )
            known = [job for job in jobs if job is not None]
            async with self._store.redis.pipeline(transaction=False) as pipe:
                for job in known:
                    pipe.hget(f"{prefix}job:{job}", "state")
                states = await pipe.execute()
        open_ = [job for job, state in zip(known, states, strict=True) if state in OPEN]
        await map_concurrently(cancel, open_, limit=_AT_ONCE)
        return len(open_)

    async def rows(
        self, batch: str, *, tenant: str, after: int = -1, limit: int = 100
    ) -> list[BatchRow]:
        """Some rows in the order of the input, each as it is now.

        A row has a result or an error once it is over, and neither before.

        Args:
            batch: its id.
            tenant: name of the tenant.
            after: the number of the last row that is known.
            limit: rows at most, up to :data:`~orchestrator.jobs.store.MAX_PAGE`.

        Raises:
            BatchNotFound: the tenant has no such batch, or its record has expired.
            InvalidQuery: ``limit`` cannot be one.
            StoreUnavailable: Redis is unreachable.
        """
        return await page_of_rows(self._store, batch, tenant=tenant, after=after, limit=limit)

    async def _begun(self, name: str) -> bool:
        with translated(self._store.url):
            return await self._store.redis.hexists(name, "digest")

    def _priced(self, model: str) -> bool:
        try:
            self._store.admission.least(model)
        except UnpricedModel:
            # its rows fail, each for itself
            return False
        return True

    async def _note(self, name: str, rows: Sequence[Row]) -> None:
        """Keep what no job keeps. It is the same each time, so that repeating it changes nothing."""
        errors = [(str(r.number), r.error.model_dump_json()) for r in rows if r.error]
        ids = [(str(r.number), r.id) for r in rows if r.id is not None]
        with translated(self._store.url):
            for part, pairs in (("rejected", errors), ("ids", ids)):
                for i in range(0, len(pairs), CHUNK):
                    chunk: dict[Any, Any] = dict(pairs[i : i + CHUNK])
                    await self._store.redis.hset(f"{name}:{part}", mapping=chunk)

    async def _submit(self, rows: Sequence[Row], tenant: str, batch: str) -> None:
        async def submit(row: Row) -> None:
            if row.request is not None:
                # it may be cancelled while it is submitted
                with suppress(BatchCancelled):
                    await self._store.submit(
                        row.request,
                        tenant=tenant,
                        key=f"{batch}:{row.number}",
                        batch=batch,
                        row=row.number,
                    )

        await map_concurrently(submit, rows, limit=_AT_ONCE)
