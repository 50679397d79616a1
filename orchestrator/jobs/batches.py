"""Batches: many questions under one id, each a job of its own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

from anyio import to_thread

from orchestrator.concurrency import map_concurrently
from orchestrator.jobs import tenants
from orchestrator.jobs.rows import Row, check_defaults, output_row, read_row
from orchestrator.jobs.store import MAX_KEY, MAX_PAGE, JobStore
from orchestrator.question.request import MAX_DEADLINE
from orchestrator.settings import Settings
from posology.budget.ledger.base import dollars
from posology.errors import BatchNotFound, IdempotencyConflict, InvalidQuery, UnpricedModel
from posology.published.jobs import BatchOutput, BatchRow
from posology.store import keys
from posology.store.connection import translated
from posology.store.keys import at
from posology.types.jobs import OVER, JobState

#: rows of one batch
MAX_ROWS = 100_000
#: seconds for a batch's rows, from submission, unless they or the defaults say
DEADLINE = MAX_DEADLINE
#: rows that are read, or written to the store, in one go
_CHUNK = 500
#: submissions under way at once: the server works while the client prepares the next
_AT_ONCE = 32
#: milliseconds from the begin of a submission within which its batch is not forgotten
_SUBMISSION = 3_600_000
_ID = re.compile(r"batch_[0-9a-f]{28}")
_STATE: Final = "state:"
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

    async def submit(
        self,
        rows: Iterable[str | bytes] | AsyncIterable[str | bytes],
        *,
        tenant: str,
        key: str | None = None,
        defaults: Mapping[str, Any] = _NOTHING,
    ) -> BatchOutput:
        """Put many questions into the queue.

        An invalid row becomes a rejected row; the others are submitted. Blank lines are ignored. Repeat an
        interrupted submission with the same key to complete it.

        Args:
            rows: JSON Lines, each a :class:`~orchestrator.question.request.JobRequest` with an optional ``id``,
                a JSON scalar that its output row repeats.
            tenant: name of the tenant.
            key: idempotency key: the same key and rows give the same batch and jobs while any of them is kept.
            defaults: values of the fields that a row omits.

        Raises:
            IdempotencyConflict: the key was used for other rows.
            InvalidQuery: the tenant, the key or a default is invalid, or there are too many rows.
            BudgetError: the tenant can pay for none of the rows.
            StoreUnavailable: not all rows were submitted; repeat with the same key.
        """
        prefix = keys.prefix(tenant)
        batch = keys.new_id("batch") if key is None else batch_id(tenant, key)
        check_defaults(defaults, self._settings)
        # a row waits for all that come before it
        found = await self._read(rows, {"deadline_seconds": DEADLINE, **defaults})
        digest = await to_thread.run_sync(_digest, found)
        keep = int(self._settings.retention * 1000)
        bad = sum(row.request is None for row in found)
        priced = {str(row.request.model) for row in found if row.request is not None}
        if key is None or not await self._begun(f"{prefix}batch:{batch}"):
            # one that was begun is completed, and found again, whatever has been spent since
            await self._store.admit(filter(self._priced, priced), tenant=tenant)
        await tenants.enlist(self._store, tenant)
        (said,) = await self._store.run(
            "open_batch", prefix, batch, digest, len(found), bad, keep, _SUBMISSION
        )
        if said == "conflict":
            raise IdempotencyConflict(
                f"the idempotency key {key!r} was used for other rows, {batch}: use a new key",
                job=batch,
            )
        name = f"{prefix}batch:{batch}"
        await self._note(name, found)
        with translated(self._store.url):
            known = set(await cast("Awaitable[list[str]]", self._store.redis.hkeys(f"{name}:jobs")))
        await self._submit([r for r in found if str(r.number) not in known], tenant, batch)
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
        record = await self._record(batch, tenant)
        states = {
            JobState(name.removeprefix(_STATE)): int(count)
            for name, count in record.items()
            if name.startswith(_STATE) and count != "0"
        }
        total, rejected = int(record["total"]), int(record["rejected"])
        ended = sum(count for state, count in states.items() if state in OVER)
        return BatchOutput(
            id=batch,
            tenant=tenant,
            created=at(record["created"]),
            total=total,
            rejected=rejected,
            states=states,
            known_cost_usd=dollars(record["known_nano"]),
            unknown_costs=int(record["unknown_costs"]),
            over=ended + rejected == total,
        )

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
        total = int((await self._record(batch, tenant))["total"])
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
                number, own, error, job, next(found) if job else {}, next(found) if job else {}
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

    async def _read(
        self,
        rows: Iterable[str | bytes] | AsyncIterable[str | bytes],
        defaults: Mapping[str, Any],
    ) -> list[Row]:
        found: list[Row] = []
        chunk: list[tuple[int, str | bytes]] = []

        async def read() -> None:
            if len(found) + len(chunk) > MAX_ROWS:
                raise InvalidQuery(
                    f"the batch has more than {MAX_ROWS} rows: split it", field="rows"
                )
            first = len(found)
            # checking takes a while, in which the event loop has others to serve
            found.extend(
                await to_thread.run_sync(
                    lambda: [
                        read_row(first + i, line, raw, defaults, self._settings)
                        for i, (line, raw) in enumerate(chunk)
                    ]
                )
            )
            chunk.clear()

        line = 0
        async for raw in _each(rows):
            line += 1
            if raw.strip():
                chunk.append((line, raw))
            if len(chunk) == _CHUNK:
                await read()
        await read()
        return found

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
                await self._store.submit(
                    row.request,
                    tenant=tenant,
                    key=f"{batch}:{row.number}",
                    batch=batch,
                    row=row.number,
                )

        await map_concurrently(submit, rows, limit=_AT_ONCE)


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


def _digest(rows: Iterable[Row]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(row.content)
    return digest.hexdigest()


async def _each(
    rows: Iterable[str | bytes] | AsyncIterable[str | bytes],
) -> AsyncIterator[str | bytes]:
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row
