"""Makes providers' batches of wanted calls, and settles their rows.

Any worker does any step. What a batch is created for is recorded before it is created, with its reservations; a worker
that dies in between leaves a record whose batch another worker looks for at the provider, so no call is paid for twice.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import anyio

from orchestrator.concurrency import map_concurrently
from orchestrator.logs.events import note
from posology.budget.ledger import entries
from posology.budget.ledger.base import nano
from posology.budget.ledger.batched import RETRYABLE, attempt_of, opening_of, tries_again
from posology.errors import (
    AuthenticationFailed,
    ConfigurationError,
    MalformedReply,
    ProviderError,
    StoreUnavailable,
)
from posology.llm.accounting import priced
from posology.llm.models.names import parse
from posology.seams import Prices
from posology.seams.batches import BatchEndpoint, BatchFate, BatchLimits, BatchLine, BatchResult
from posology.store import keys
from posology.types import Opening, Usage
from workers.engine.journal import JobJournal
from workers.engine.lane.records import LaneStore, Sent, Wanted
from workers.engine.lane.rows import reason
from workers.engine.units import ClaimedUnit, Unit

logger = logging.getLogger(__name__)

#: tenants, and batches of one, that are worked on at the same time
_AT_ONCE = 4
#: seconds for which calls that wait for budget are not looked at
_FULL = 5.0
#: rows that are settled between two notes that the batch is still being read
_STRETCH = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneOptions:
    """Times and sizes of the lane. Times are in seconds."""

    #: time that a call waits for others of its tenant to share a batch
    wait: float = 60.0
    #: maximum rows of a batch; as many wanted calls are sent without a wait
    rows: int = 500
    #: maximum time between two polls of a batch
    poll: float = 60.0
    #: time within which a batch is created, and in which one worker reads its results
    lease: float = 120.0
    #: time after that in which a batch that was not found may yet appear
    grace: float = 60.0
    #: time after which a batch without an end is given up
    patience: float = 48 * 3_600.0


class Collector:
    """Sends wanted calls of all tenants, and watches their batches.

    Args:
        lane: records of the lane.
        endpoint: returns the batch endpoint of a model.
        prices: costs of calls.
        options: times and sizes.
    """

    def __init__(
        self,
        lane: LaneStore,
        endpoint: Callable[[str], BatchEndpoint],
        prices: Prices,
        options: LaneOptions = LaneOptions(),
    ) -> None:
        self._lane = lane
        self._endpoint = endpoint
        self._prices = prices
        self._options = options

    async def step(self) -> None:
        """Do what is due now, for every tenant.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        await map_concurrently(self._tend, await self._lane.tenants(), limit=_AT_ONCE)

    async def _tend(self, tenant: str) -> None:
        try:
            await self._send(tenant)
            due = await self._lane.due(tenant, seconds=self._options.lease, most=_AT_ONCE)
            await map_concurrently(lambda one: self._watch(tenant, one), due, limit=_AT_ONCE)
        except StoreUnavailable:
            raise
        except Exception:
            # one tenant's damaged records must not stop the others' batches
            logger.exception("internal error in the batch lane tenant=%s", tenant)

    async def _send(self, tenant: str) -> None:
        options = self._options
        wanted = await self._lane.wanted(
            tenant,
            most=options.rows,
            wait=options.wait,
            at_once=options.rows,
            hold=options.lease,
        )
        if not wanted:
            return
        pause = 0.0
        for model, calls in _by_endpoint(wanted).items():
            try:
                endpoint = self._endpoint(model)
                for some in _within(calls, endpoint.limits):
                    pause = max(pause, await self._create(tenant, model, endpoint, some))
            except ConfigurationError as error:
                # another worker may have the key, or the price; the jobs' deadlines bound the wait
                logger.error("no batch can be sent tenant=%s model=%s: %s", tenant, model, error)
                pause = max(pause, options.poll)
        await self._lane.hold(tenant, pause)

    async def _create(
        self, tenant: str, model: str, endpoint: BatchEndpoint, calls: Sequence[Wanted]
    ) -> float:
        """Reserve, record, and then create one batch; return for how long no other is to be created, seconds."""
        options, batch = self._options, keys.new_id("pb")
        rows, lines = {}, {}
        for call in calls:
            opening = self._opening(call)
            rows[opening.id] = (
                json.dumps(entries.opened(opening) | {"job": call.job}),
                nano(opening.reserved),
            )
            lines[opening.id] = BatchLine(**call.plan["line"])
        record = {"provider": parse(model).provider, "model": model}
        began = time.monotonic()
        reserved = await self._lane.reserve(
            tenant, batch, record, list(rows.values()), seconds=options.lease
        )
        pause = _FULL if reserved.waits else 0.0
        if not reserved.attempts:
            return pause
        ids = {"tenant": tenant, "lane_batch": batch, "model": model}
        # a worker that looks for the batch later must find all that this worker can still create
        with anyio.move_on_after(options.lease - (time.monotonic() - began)):
            try:
                made = await endpoint.create(
                    {one: lines[one] for one in reserved.attempts}, label=batch
                )
            except ProviderError as error:
                return max(pause, await self._refused(tenant, batch, error))
            await self._made(tenant, _creating(batch, model), made, endpoint)
            note("batch sent", **ids, rows=len(reserved.attempts), provider_batch=made)
            return pause
        note("batch not confirmed", logging.WARNING, **ids, rows=len(reserved.attempts))
        return pause

    async def _made(self, tenant: str, batch: Sent, made: str, endpoint: BatchEndpoint) -> None:
        if await self._lane.note(tenant, batch, seconds=1.0, state="sent", provider_batch=made):
            return
        # another worker found it, or gave it up: then its calls may be in another batch
        if made not in await self._lane.known(tenant):
            note("batch cancelled", logging.WARNING, tenant=tenant, lane_batch=batch.id)
            await endpoint.cancel(made, model=batch.model)

    async def _refused(self, tenant: str, batch: str, error: ProviderError) -> float:
        """Undo a batch that was certainly not created; leave one that may exist to the worker that looks for it next."""
        certain = error.usage == Usage()
        note(
            "batch refused" if certain else "batch not confirmed",
            logging.WARNING,
            tenant=tenant,
            lane_batch=batch,
            error=type(error).__name__,
            status=error.status,
        )
        if not certain:
            return 0.0
        if not isinstance(error, RETRYABLE):
            await self._lane.undo(tenant, batch, reason=reason(error))
            return 0.0
        await self._lane.undo(tenant, batch)
        return max(self._options.poll, error.retry_after or 0.0)

    async def _watch(self, tenant: str, batch: Sent) -> None:
        """Look at a batch once, and settle its rows if it has ended."""
        try:
            endpoint = self._endpoint(batch.model)
            if batch.age > self._options.patience:
                await self._give_up(tenant, batch)
            elif batch.provider_batch is None:
                await self._find(tenant, batch, endpoint)
            else:
                await self._poll(tenant, batch, batch.provider_batch, endpoint)
        except (ProviderError, ConfigurationError) as error:
            level = logging.ERROR if isinstance(error, AuthenticationFailed) else logging.WARNING
            note(
                "batch not read",
                level,
                tenant=tenant,
                lane_batch=batch.id,
                error=type(error).__name__,
            )
            await self._later(tenant, batch)

    async def _find(self, tenant: str, batch: Sent, endpoint: BatchEndpoint) -> None:
        """Look for a batch whose creator has not said that it was created."""
        options, rows = self._options, await self._lane.rows(tenant, batch.id)
        # the clock of Redis tells ages: its time of day may be another than the provider's, and may have been put back
        since = min([time.time() - batch.age, *(float(row["started"]) for row in rows.values())])
        found = await endpoint.find(
            batch.id,
            model=batch.model,
            ids=frozenset(rows),
            since=datetime.fromtimestamp(since, UTC),
            known=await self._lane.known(tenant),
        )
        ids = {"tenant": tenant, "lane_batch": batch.id, "provider_batch": found.batch}
        if found.batch is not None:
            await self._lane.note(
                tenant, batch, seconds=1.0, state="sent", provider_batch=found.batch
            )
            note("batch found", **ids)
        elif found.sure and batch.age > options.lease + options.grace:
            await self._lane.undo(tenant, batch.id)
            note("batch was not created", **ids)
        else:
            await self._later(tenant, batch)

    async def _poll(
        self, tenant: str, batch: Sent, provider_batch: str, endpoint: BatchEndpoint
    ) -> None:
        status = await endpoint.status(provider_batch, model=batch.model)
        if not status.ended:
            fields = {} if status.expires is None else {"due": str(status.expires.timestamp())}
            if not batch.cancelling and await self._unwanted(tenant, batch):
                await endpoint.cancel(provider_batch, model=batch.model)
                fields["cancelling"] = "1"
                note("batch cancelled", tenant=tenant, lane_batch=batch.id)
            await self._later(tenant, batch, **fields)
            return
        rows = await self._lane.rows(tenant, batch.id)
        try:
            await self._settle(tenant, batch, rows, endpoint, provider_batch)
        except MalformedReply:
            note("batch results lost", logging.ERROR, tenant=tenant, lane_batch=batch.id)
            await self._lose(tenant, batch, rows, "the results of the provider's batch are gone")
        if await self._lane.end(tenant, batch.id):
            ids = {"tenant": tenant, "lane_batch": batch.id, "provider_batch": provider_batch}
            note("batch ended", **ids, rows=batch.rows, seconds=round(batch.age, 3))
            await endpoint.discard(provider_batch, model=batch.model)

    async def _settle(
        self,
        tenant: str,
        batch: Sent,
        rows: Mapping[str, Mapping[str, Any]],
        endpoint: BatchEndpoint,
        provider_batch: str,
    ) -> None:
        """Settle rows as they come, each once."""
        landed: set[str] = set()
        results = endpoint.results(provider_batch, model=batch.model, ids=frozenset(rows))
        async for result in results:
            if result.id in landed or result.id not in rows:
                note(
                    "batch row ignored",
                    logging.WARNING,
                    tenant=tenant,
                    lane_batch=batch.id,
                    attempt=result.id,
                    twice=result.id in landed,
                )
                continue
            landed.add(result.id)
            await self._land(tenant, batch, rows[result.id], result)
            if len(landed) % _STRETCH == 0:
                await self._lane.note(tenant, batch, seconds=self._options.lease)

    async def _land(
        self, tenant: str, batch: Sent, entry: Mapping[str, Any], result: BatchResult
    ) -> None:
        """Settle one attempt, then go on with its call: in this order, so that a crash in between repeats both."""
        attempt = attempt_of(entry, result, prices=self._prices, now=time.time())
        unit = Unit(tenant=tenant, job=entry["job"], name=entry["unit"])
        # no claim is needed: the end of an attempt is accepted from any worker
        claimed = ClaimedUnit(unit=unit, token=0, deadline=0.0, patience=0.0, request="")
        await JobJournal(self._lane.work, claimed).close(attempt, result.completion)
        if attempt.over_bound:
            logger.error(
                "attempt exceeded its bound attempt=%s model=%s cost_usd=%s bound_usd=%s",
                attempt.id,
                attempt.model,
                attempt.cost,
                attempt.reserved,
            )
        if result.completion is not None:
            fate, why = "done", ""
        else:
            error = result.error or _lost(batch, "the provider's batch has no result for it")
            fate, why = "again" if tries_again(result) else "failed", reason(error)
        await self._lane.land(tenant, batch.id, result.id, fate, why)

    async def _give_up(self, tenant: str, batch: Sent) -> None:
        """Charge the bounds of a batch that has no end."""
        note("batch given up", logging.ERROR, tenant=tenant, lane_batch=batch.id)
        rows = await self._lane.rows(tenant, batch.id)
        await self._lose(tenant, batch, rows, "the provider's batch did not end in time")
        await self._lane.end(tenant, batch.id)

    async def _lose(
        self, tenant: str, batch: Sent, rows: Mapping[str, Mapping[str, Any]], why: str
    ) -> None:
        for attempt in await self._lane.rows(tenant, batch.id):
            lost = BatchResult(id=attempt, fate=BatchFate.UNREADABLE, error=_lost(batch, why))
            await self._land(tenant, batch, rows[attempt], lost)

    async def _unwanted(self, tenant: str, batch: Sent) -> bool:
        rows = await self._lane.rows(tenant, batch.id)
        return await self._lane.jobs_over(tenant, sorted({row["job"] for row in rows.values()}))

    async def _later(self, tenant: str, batch: Sent, **fields: str) -> None:
        # soon at first: small batches often end within a minute
        pause = min(self._options.poll, 1.0 + batch.age / 10)
        await self._lane.note(tenant, batch, seconds=pause, **fields)

    def _opening(self, call: Wanted) -> Opening:
        """Return the opening of a new attempt at a call, at the prices of now."""
        entry = {**call.plan["opening"], "id": uuid4().hex, "attempt": 1, "call": None}
        opening = opening_of(entry | {"started": time.time()})
        # a plan of version 0.1 does not say whether its line asks for caching: then it is taken to
        return priced(opening, self._prices, caches=call.plan.get("caches", True))


def _creating(batch: str, model: str) -> Sent:
    """Return a batch as it was just recorded."""
    return Sent(
        id=batch,
        provider=parse(model).provider,
        model=model,
        state="creating",
        provider_batch=None,
        age=0.0,
        rows=0,
        cancelling=False,
    )


def _by_endpoint(wanted: Sequence[Wanted]) -> dict[str, list[Wanted]]:
    """Group calls by what one batch can hold: a model and a path; returned by model, of its first path."""
    found: dict[str, list[Wanted]] = {}
    for call in wanted:
        line = call.plan["line"]
        same = found.setdefault(line["model"], [])
        if not same or same[0].plan["line"]["path"] == line["path"]:
            same.append(call)
    return found


def _within(calls: Sequence[Wanted], limits: BatchLimits) -> Iterator[list[Wanted]]:
    """Divide calls into batches that the provider accepts."""
    some: list[Wanted] = []
    size = 0
    for call in calls:
        line = len(call.plan["line"]["body"].encode()) + limits.per_line
        if some and (len(some) >= limits.lines or size + line > limits.bytes):
            yield some
            some, size = [], 0
        some.append(call)
        size += line
    if some:
        yield some


def _lost(batch: Sent, why: str) -> MalformedReply:
    return MalformedReply(
        f"{why}: whether it was billed is unknown, so it was charged at its bound",
        provider=batch.provider,
        model=batch.model,
    )
