"""Batches: many questions under one id, each a job of its own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast

import anyio
from anyio import to_thread

from orchestrator.concurrency import map_concurrently
from orchestrator.jobs import tenants
from orchestrator.jobs.room import raise_if_full
from orchestrator.jobs.rows import Row, check_defaults, output_row, read_row
from orchestrator.jobs.store import MAX_KEY, MAX_PAGE, JobStore
from orchestrator.question.request import MAX_DEADLINE
from orchestrator.settings import Settings
from posology.budget.ledger.base import dollars
from posology.errors import (
    BatchCancelled,
    BatchNotFound,
    IdempotencyConflict,
    InvalidQuery,
    UnpricedModel,
)
from posology.published.jobs import BatchOutput, BatchPage, BatchRow
from posology.store import keys
from posology.store.connection import translated
from posology.store.keys import at
from posology.types.jobs import OPEN, OVER, BatchState, JobState

#: rows of one batch
MAX_ROWS = 100_000
#: seconds for a batch's rows, from submission, unless they or the defaults say
DEADLINE = MAX_DEADLINE
#: rows that are read, or written to the store, in one go
_CHUNK = 500
#: bytes of lines that are read in one go
_CHUNK_BYTES = 1024 * 1024
#: bytes that Redis needs for a row's place in its batch
_ENTRY = 150
#: submissions under way at once: the server works while the client prepares the next
_AT_ONCE = 32
#: milliseconds from the begin of a submission within which its batch is not forgotten
_SUBMISSION = 3_600_000
_ID = re.compile(r"batch_[0-9a-f]{28}")
#: place in a tenant's list: milliseconds of the submission, and the id
_PLACE = re.compile(r"[0-9]{13}-batch_[0-9a-f]{28}")
#: pages of the list that a search for a state reads for one page of its own
_SCANS = 20
_STATE: Final = "state:"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


#: lines of a batch; they are read more than once
Lines = Sequence[str | bytes] | AsyncIterable[str | bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Survey:
    """Sums over the rows of a batch."""

    #: SHA-256 of the rows' contents, hexadecimal
    digest: str
    total: int
    rejected: int
    #: bytes of what is kept beside the jobs: ids, errors, places
    beside: int
    #: bytes of the requests
    requests: int
    models: frozenset[str]


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
            BudgetError: the tenant can pay for none of the rows.
            QueueFull: the tenant has no room for the rows. Nothing was submitted; where other submissions took the
                room meanwhile, a part was: repeat with the same key.
            StoreUnavailable: not all rows were submitted; repeat with the same key.
        """
        if isinstance(rows, Iterator | AsyncIterator):
            raise TypeError("the rows are read twice: an iterator has none left then")
        prefix = keys.prefix(tenant)
        batch = keys.new_id("batch") if key is None else batch_id(tenant, key)
        check_defaults(defaults, self._settings)
        defaults = {"deadline_seconds": DEADLINE, **defaults}
        seen = await self._survey(rows, defaults)
        name = f"{prefix}batch:{batch}"
        if key is None or not await self._begun(name):
            # one that was begun is completed, and found again, whatever has been spent since
            await self._store.admit(filter(self._priced, seen.models), tenant=tenant)
        await tenants.enlist(self._store, tenant)
        said, *rest = await self._store.run(
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
        raise_if_full([said, *rest], tenant)
        if said == "conflict":
            raise IdempotencyConflict(
                f"the idempotency key {key!r} was used for other rows, {batch}: use a new key",
                job=batch,
            )
        if said == "cancelled":
            return await self.get(batch, tenant=tenant)
        async for some in self._read(rows, defaults):
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
        return _output(batch, tenant, await self._record(batch, tenant))

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
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidQuery(f"limit must be 1 to {MAX_PAGE} (got {limit})", field="limit")
        if cursor is not None and not _PLACE.fullmatch(cursor):
            raise InvalidQuery(
                f"unknown cursor {cursor!r}: use `next` of the previous page", field="cursor"
            )
        prefix = keys.prefix(tenant)
        found: list[BatchOutput] = []
        for _ in range(_SCANS):
            with translated(self._store.url):
                places = cast(
                    "list[str]",
                    await self._store.redis.zrevrangebylex(
                        f"{prefix}batches:listed", f"({cursor}" if cursor else "+", "-", 0, limit
                    ),
                )
                async with self._store.redis.pipeline(transaction=False) as pipe:
                    for place in places:
                        pipe.hgetall(f"{prefix}batch:{_id(place)}")
                    records = await pipe.execute()
            for place, record in zip(places, records, strict=True):
                # forgotten since the list was read
                if "digest" not in record:
                    cursor = place
                    continue
                out = _output(_id(place), tenant, record)
                if state in (None, out.state):
                    if len(found) == limit:
                        return BatchPage(batches=tuple(found), next=cursor)
                    found.append(out)
                cursor = place
            if len(places) < limit:
                return BatchPage(batches=tuple(found), next=None)
            if state is None:
                break
        return BatchPage(batches=tuple(found), next=cursor)

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
        record = await self._record(batch, tenant)
        (said,) = await self._store.run("cancel_batch", prefix, batch)
        if said == "cancelled":
            until = None if seconds is None else anyio.current_time() + seconds
            for first in range(0, int(record["total"]), _CHUNK):
                done = await self._cancel_rows(prefix, batch, range(first, first + _CHUNK))
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
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidQuery(f"limit must be 1 to {MAX_PAGE} (got {limit})", field="limit")
        record = await self._record(batch, tenant)
        total = int(record["total"])
        cancelled = (
            BatchCancelled(
                f"batch {batch} was cancelled before this row was submitted", batch=batch
            )
            if "cancelled" in record
            else None
        )
        first = max(after + 1, 0)
        numbers = range(first, min(first + limit, total))
        if not numbers:
            return []
        prefix = keys.prefix(tenant)
        name, fields = f"{prefix}batch:{batch}", [str(number) for number in numbers]
        with translated(self._store.url):
            async with self._store.redis.pipeline(transaction=False) as pipe:
                for part in ("jobs", "rejected", "ids"):
                    pipe.hmget(f"{name}:{part}", fields)
                jobs, rejected, ids = await pipe.execute()
            async with self._store.redis.pipeline(transaction=False) as pipe:
                for job in filter(None, jobs):
                    pipe.hgetall(f"{prefix}job:{job}")
                    pipe.hgetall(f"{prefix}job:{job}:calls")
                found = iter(await pipe.execute())
        return [
            output_row(
                number,
                own,
                error,
                job,
                next(found) if job else {},
                next(found) if job else {},
                cancelled=cancelled,
                advice=self._store.advice,
            )
            for number, own, error, job in zip(numbers, ids, rejected, jobs, strict=True)
        ]

    async def _begun(self, name: str) -> bool:
        with translated(self._store.url):
            return await self._store.redis.hexists(name, "digest")

    def _priced(self, model: str) -> bool:
        try:
            self._store.least(model)
        except UnpricedModel:
            # its rows fail, each for itself
            return False
        return True

    async def _record(self, batch: str, tenant: str) -> dict[str, str]:
        prefix = keys.prefix(tenant)
        if _ID.fullmatch(batch):
            with translated(self._store.url):
                record = await cast(
                    "Awaitable[dict[str, str]]", self._store.redis.hgetall(f"{prefix}batch:{batch}")
                )
            if "digest" in record:
                return record
        raise BatchNotFound(f"there is no batch {batch}, or it has expired", batch=batch)

    async def _survey(self, rows: Lines, defaults: Mapping[str, Any]) -> _Survey:
        """Read all rows once, and keep none of them.

        Raises:
            InvalidQuery: there are too many.
        """
        digest, models = hashlib.sha256(), set[str]()
        total = rejected = beside = requests = 0
        async for some in self._read(rows, defaults):
            total += len(some)
            if total > MAX_ROWS:
                raise InvalidQuery(
                    f"the batch has more than {MAX_ROWS} rows: split it", field="rows"
                )
            for row in some:
                content = row.content
                digest.update(content)
                beside += _ENTRY + len(row.id or "")
                if row.request is None:
                    rejected += 1
                    beside += len(content)
                else:
                    requests += len(content)
                    models.add(str(row.request.model))
        return _Survey(
            digest=digest.hexdigest(),
            total=total,
            rejected=rejected,
            beside=beside,
            requests=requests,
            models=frozenset(models),
        )

    async def _read(self, rows: Lines, defaults: Mapping[str, Any]) -> AsyncIterator[list[Row]]:
        """Yield the rows, checked, a few at a time."""
        chunk: list[tuple[int, str | bytes]] = []
        line = first = size = 0

        async def read() -> list[Row]:
            nonlocal first, size
            # checking takes a while, in which the event loop has others to serve
            found = await to_thread.run_sync(
                lambda: [
                    read_row(first + i, line, raw, defaults, self._settings)
                    for i, (line, raw) in enumerate(chunk)
                ]
            )
            first, size = first + len(chunk), 0
            chunk.clear()
            return found

        async for raw in _each(rows):
            line += 1
            if raw.strip():
                chunk.append((line, raw))
                size += len(raw)
            if len(chunk) == _CHUNK or size >= _CHUNK_BYTES:
                yield await read()
        if chunk:
            yield await read()

    async def _note(self, name: str, rows: Sequence[Row]) -> None:
        """Keep what no job keeps. It is the same each time, so that repeating it changes nothing."""
        errors = [(str(r.number), r.error.model_dump_json()) for r in rows if r.error]
        ids = [(str(r.number), r.id) for r in rows if r.id is not None]
        with translated(self._store.url):
            for part, pairs in (("rejected", errors), ("ids", ids)):
                for i in range(0, len(pairs), _CHUNK):
                    chunk: dict[Any, Any] = dict(pairs[i : i + _CHUNK])
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


def _output(batch: str, tenant: str, record: Mapping[str, str]) -> BatchOutput:
    states = {
        JobState(name.removeprefix(_STATE)): int(count)
        for name, count in record.items()
        if name.startswith(_STATE) and count != "0"
    }
    total, rejected = int(record["total"]), int(record["rejected"])
    cancelled = "cancelled" in record
    # no further row of a cancelled batch becomes a job
    rows = rejected + sum(states.values()) if cancelled else total
    ended = rejected + sum(count for state, count in states.items() if state in OVER)
    over = ended == rows
    return BatchOutput(
        id=batch,
        tenant=tenant,
        created=at(record["created"]),
        state=BatchState.CANCELLED
        if cancelled
        else BatchState.ENDED
        if over
        else BatchState.RUNNING,
        cancelled=at(record["cancelled"]) if cancelled else None,
        total=total,
        rejected=rejected,
        states=states,
        known_cost_usd=dollars(record["known_nano"]),
        unknown_costs=int(record["unknown_costs"]),
        over=over,
    )


def _id(place: str) -> str:
    return place.partition("-")[2]


def batch_id(tenant: str, key: str) -> str:
    """The id of the batch that a key stands for.

    Raises:
        InvalidQuery: no key can be that.
    """
    if not (0 < len(key) <= MAX_KEY and key.isprintable()):
        raise InvalidQuery(
            f"an idempotency key must have 1 to {MAX_KEY} printable characters (got {len(key)})",
            field="key",
        )
    return f"batch_{hashlib.sha256(f'{tenant} {key}'.encode()).hexdigest()[:28]}"


async def _each(rows: Lines) -> AsyncIterator[str | bytes]:
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row
