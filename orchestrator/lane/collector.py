"""The batch lane of a tenant: makes providers' batches of wanted calls, and settles their rows.

Any process does any step. What a batch is created for is recorded before it is created, with its reservations; a process
that dies in between leaves a record whose batch another one looks for at the provider, so no call is paid for twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

import anyio

from orchestrator.lane.failures import reason
from orchestrator.lane.records import BatchRecords, Entry, Sent, Wanted
from orchestrator.logs.events import note
from posology.budget.ledger import entries
from posology.budget.ledger.batched import RETRYABLE, attempt_of, opening_of, tries_again
from posology.concurrency import map_concurrently
from posology.errors import (
    AuthenticationFailed,
    ConfigurationError,
    MalformedReply,
    ProviderError,
)
from posology.llm.accounting import priced
from posology.llm.models.names import parse
from posology.seams import Prices
from posology.seams.batches import BatchEndpoint, BatchFate, BatchLimits, BatchLine, BatchResult
from posology.store import keys
from posology.types import Opening, Usage

logger = logging.getLogger(__name__)

#: batches that are worked on at the same time
_AT_ONCE = 4
#: seconds for which calls that wait for budget are not looked at
_FULL = 5.0
#: seconds that deleting a batch at the provider may take, of a process that ends
_DISCARD = 10.0
#: rows that are settled between two notes that the batch is still being read
_STRETCH = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneOptions:
    """Times and sizes of the lane. Times are in seconds."""

    #: time that a call waits for others to share a batch
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


class _Refused(Exception):
    """No batch of a model was created, and none is to be for some seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Collector:
    """Sends wanted calls of a tenant, and watches their batches.

    Args:
        records: of the calls and batches.
        endpoint: returns the batch endpoint of a model.
        prices: costs of calls.
        options: times and sizes.
        raises: errors that :meth:`step` raises, since no other process can do what failed; after others, it tries again.
    """

    def __init__(
        self,
        records: BatchRecords,
        endpoint: Callable[[str], BatchEndpoint],
        prices: Prices,
        options: LaneOptions = LaneOptions(),
        *,
        raises: tuple[type[Exception], ...] = (),
    ) -> None:
        self._records = records
        self._endpoint = endpoint
        self._prices = prices
        self._options = options
        self._raises = raises

    @property
    def _ids(self) -> dict[str, str]:
        return {"tenant": self._records.tenant}

    async def step(self) -> None:
        """Do what is due now.

        Raises:
            StoreUnavailable: the records cannot be read or written.
            Exception: one of ``raises``.
        """
        await self._send()
        due = await self._records.due(seconds=self._options.lease)
        await map_concurrently(self._watch, due, limit=_AT_ONCE)

    async def _send(self) -> None:
        options = self._options
        wanted = await self._records.wanted(
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
                    pause = max(pause, await self._create(model, endpoint, some))
            except ConfigurationError as error:
                if isinstance(error, self._raises):
                    raise
                # another process may have the key, or the price; the jobs' deadlines bound the wait
                logger.error(
                    "no batch can be sent tenant=%s model=%s: %s",
                    self._records.tenant,
                    model,
                    error,
                )
                await self._records.put_off(model, calls, seconds=options.poll)
            except _Refused as refused:
                # other models, and other providers, may be asked meanwhile
                await self._records.put_off(model, calls, seconds=refused.seconds)
        await self._records.hold(pause)

    async def _create(self, model: str, endpoint: BatchEndpoint, calls: Sequence[Wanted]) -> float:
        """Reserve, record, and then create one batch; return for how long no other is to be created, seconds."""
        options, batch = self._options, keys.new_id("pb")
        rows, lines = list[Entry](), {}
        for call in calls:
            opening = self._opening(call)
            rows.append(entries.opened(opening) | {"job": call.job})
            lines[opening.id] = BatchLine(**call.plan["line"])
        record = {"provider": parse(model).provider, "model": model}
        began = time.monotonic()
        reserved = await self._records.reserve(batch, record, rows, seconds=options.lease)
        pause = _FULL if reserved.waits else 0.0
        if not reserved.attempts:
            return pause
        ids = self._ids | {"lane_batch": batch, "model": model}
        # a process that looks for the batch later must find all that this one can still create
        with anyio.move_on_after(options.lease - (time.monotonic() - began)):
            try:
                made = await endpoint.create(
                    {one: lines[one] for one in reserved.attempts}, label=batch
                )
            except ProviderError as error:
                if seconds := await self._refused(batch, error):
                    raise _Refused(seconds) from error
                return pause
            await self._made(_creating(batch, model), made, endpoint)
            note("batch sent", **ids, rows=len(reserved.attempts), provider_batch=made)
            return pause
        note("batch not confirmed", logging.WARNING, **ids, rows=len(reserved.attempts))
        return pause

    async def _made(self, batch: Sent, made: str, endpoint: BatchEndpoint) -> None:
        if await self._records.note(batch, seconds=1.0, state="sent", provider_batch=made):
            return
        # another process found it, or gave it up: then its calls may be in another batch
        if made not in await self._records.known():
            note("batch cancelled", logging.WARNING, **self._ids, lane_batch=batch.id)
            await endpoint.cancel(made, model=batch.model)

    async def _refused(self, batch: str, error: ProviderError) -> float:
        """Undo a batch that was certainly not created; leave one that may exist to the process that looks for it next.

        Returns:
            Seconds until its calls may be sent again; 0: at once, or never.
        """
        certain = error.usage == Usage()
        note(
            "batch refused" if certain else "batch not confirmed",
            logging.WARNING,
            **self._ids,
            lane_batch=batch,
            error=type(error).__name__,
            status=error.status,
        )
        if not certain:
            return 0.0
        if not isinstance(error, RETRYABLE):
            await self._records.undo(batch, reason=reason(error))
            return 0.0
        await self._records.undo(batch)
        return max(self._options.poll, error.retry_after or 0.0)

    async def _watch(self, batch: Sent) -> None:
        """Look at a batch once, and settle its rows if it has ended. One without an end is given up, but never unseen."""
        goes_on = True
        try:
            endpoint = self._endpoint(batch.model)
            if batch.provider_batch is None:
                goes_on = await self._find(batch, endpoint)
            else:
                goes_on = await self._poll(batch, batch.provider_batch, endpoint)
        except (ProviderError, ConfigurationError) as error:
            if isinstance(error, self._raises):
                raise
            level = logging.ERROR if isinstance(error, AuthenticationFailed) else logging.WARNING
            note(
                "batch not read",
                level,
                **self._ids,
                lane_batch=batch.id,
                error=type(error).__name__,
            )
            await self._later(batch)
        if goes_on and batch.age > self._options.patience:
            await self._give_up(batch)

    async def _find(self, batch: Sent, endpoint: BatchEndpoint) -> bool:
        """Look for a batch whose creator has not said that it was created; return whether nothing is known of it yet."""
        options, rows = self._options, await self._records.rows(batch.id)
        # the clock of the records tells ages: its time of day may be another than the provider's, and may have been put back
        since = min([time.time() - batch.age, *(float(row["started"]) for row in rows.values())])
        finding = await endpoint.find(
            batch.id,
            model=batch.model,
            ids=frozenset(rows),
            since=datetime.fromtimestamp(since, UTC),
            known=await self._records.known(),
        )
        ids = self._ids | {"lane_batch": batch.id, "provider_batch": finding.batch}
        if finding.batch is not None:
            await self._records.note(batch, seconds=1.0, state="sent", provider_batch=finding.batch)
            note("batch found", **ids)
            return False
        if finding.sure and batch.age > options.lease + options.grace:
            await self._records.undo(batch.id)
            note("batch was not created", **ids)
            return False
        await self._later(batch)
        return True

    async def _poll(self, batch: Sent, provider_batch: str, endpoint: BatchEndpoint) -> bool:
        """Settle the rows of a batch if it has ended; return whether it goes on."""
        rows = await self._records.rows(batch.id)
        if rows:
            status = await endpoint.status(provider_batch, model=batch.model)
            if not status.ended:
                fields = {} if status.expires is None else {"due": str(status.expires.timestamp())}
                if not batch.cancelling and await self._records.unwanted(rows):
                    await endpoint.cancel(provider_batch, model=batch.model)
                    fields["cancelling"] = "1"
                    note("batch cancelled", **self._ids, lane_batch=batch.id)
                await self._later(batch, **fields)
                return True
            try:
                await self._settle(batch, rows, endpoint, provider_batch)
            except MalformedReply:
                note("batch results lost", logging.ERROR, **self._ids, lane_batch=batch.id)
                await self._lose(batch, rows, "the results of the provider's batch are gone")
        if await self._records.end(batch.id):
            ids = self._ids | {"lane_batch": batch.id, "provider_batch": provider_batch}
            note("batch ended", **ids, rows=batch.rows, seconds=round(batch.age, 3))
            # it is not done later; a provider deletes by itself what could not be deleted
            with anyio.move_on_after(_DISCARD, shield=True):
                await endpoint.discard(provider_batch, model=batch.model)
        return False

    async def _settle(
        self,
        batch: Sent,
        rows: Mapping[str, Entry],
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
                    **self._ids,
                    lane_batch=batch.id,
                    attempt=result.id,
                    twice=result.id in landed,
                )
                continue
            landed.add(result.id)
            await self._land(batch, rows[result.id], result)
            if len(landed) % _STRETCH == 0:
                await self._records.note(batch, seconds=self._options.lease)

    async def _land(self, batch: Sent, entry: Entry, result: BatchResult) -> None:
        """Settle one attempt, then go on with its call: in this order, so that a crash in between repeats both."""
        attempt = attempt_of(entry, result, prices=self._prices, now=time.time())
        await self._records.settle(batch.id, entry, attempt, result.completion)
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
        await self._records.land(batch.id, result.id, fate, why)

    async def _give_up(self, batch: Sent) -> None:
        """Charge the bounds of a batch that has no end."""
        note("batch given up", logging.ERROR, **self._ids, lane_batch=batch.id)
        rows = await self._records.rows(batch.id)
        await self._lose(batch, rows, "the provider's batch did not end in time")
        await self._records.end(batch.id)

    async def _lose(self, batch: Sent, rows: Mapping[str, Entry], why: str) -> None:
        for attempt in await self._records.rows(batch.id):
            lost = BatchResult(id=attempt, fate=BatchFate.UNREADABLE, error=_lost(batch, why))
            await self._land(batch, rows[attempt], lost)

    async def _later(self, batch: Sent, **fields: str) -> None:
        # soon at first: small batches often end within a minute
        pause = min(self._options.poll, 1.0 + batch.age / 10)
        await self._records.note(batch, seconds=pause, **fields)

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
