"""Calls of a run by way of the provider's batches: half the price, and a day for each step (decision 56).

What a batch is made of is in the journal before anything is reserved or sent, so that a process which is killed at any
point finds the batch again when the run resumes, and pays for no call twice.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count

import anyio

from orchestrator.logs.events import note
from orchestrator.training.paid.calls import Bought, Purchase, RowFailed
from orchestrator.training.paid.journal import (
    Created,
    Dropped,
    JournalFile,
    Over,
    Planned,
    Sent,
    Settled,
)
from orchestrator.training.paid.replies import (
    LaneTerms,
    Reply,
    failure,
    fitting,
    lost,
    reservation,
)
from orchestrator.training.paid.rows import Failed
from posology.budget.ledger import entries
from posology.budget.ledger.batched import RETRYABLE, attempt_of, tries_again
from posology.budget.ledger.journal import until_recorded
from posology.errors import (
    AuthenticationFailed,
    BudgetError,
    HeadroomReserved,
    MalformedReply,
    ProviderError,
)
from posology.llm.accounting import open_attempt
from posology.llm.memo import call_key
from posology.llm.second import SecondCalls
from posology.llm.structured import Structured
from posology.seams.batches import BatchLine, BatchResult
from posology.store import keys
from posology.types import Call, Completion, Opening, Usage

#: batches that a call may go into before it has failed
_BATCHES = 3
#: seconds between two extensions of reservations
_EXTEND = 30.0
#: seconds that deleting a batch at the provider may take
_DISCARD = 30.0
#: seconds after which a batch without an end is given up
_PATIENCE = 48 * 3_600.0
#: maximum seconds between two looks at what is due
_TICK = 1.0


class BatchBuyer:
    """Buys calls as :class:`~orchestrator.training.paid.calls.Buyer` does, in the provider's batches.

    Args:
        purchase: how calls are paid for.
        terms: how they become batches.
        journal: of the run's batches.
        spent: dollars that the run has spent before.
        failed: called for each call that was sent and failed.
        kept: whether the run's file has the reply to a call, by its digest.
    """

    def __init__(
        self,
        purchase: Purchase,
        terms: LaneTerms,
        journal: JournalFile,
        *,
        spent: Decimal,
        failed: Callable[[Failed], None],
        kept: Callable[[str], bool],
    ) -> None:
        self._ledger = purchase.ledger
        self._terms = terms
        self._journal = journal
        self._failed = failed
        self._name = keys.new_id("run")
        cap = purchase.cap
        # earlier reservations may be charged in full
        before = spent + journal.content.reserved
        self._cap = None if cap is None else max(Decimal(0), cap - before)
        self._numbers = count(1)
        self._replies: dict[str, Reply] = {}
        #: attempts whose results this process has read
        self._read: set[str] = set()
        #: monotonic seconds of the next look at a batch, and of the next one that may be created
        self._due: dict[str, float] = {}
        self._create_at = 0.0
        self._extended = time.monotonic()
        #: why no call can be made any more
        self._broken: Exception | None = None
        for sent in journal.content.sent.values():
            for entry in sent.attempts.values():
                self._replies.setdefault(entry["key"], Reply(kept=kept(entry["key"])))

    async def __call__(self, call: Call) -> Bought:
        """Wait for the reply to a call, and to its repair if it needs one.

        Raises:
            RowFailed: its row failed for good. Its cost is reported to ``failed``.
            PosologyError: it cannot be sent, or its reply cannot be used.
        """
        asked: list[Reply] = []

        async def one(call: Call) -> Completion:
            reply = self._want(call)
            asked.append(reply)
            await reply.over.wait()
            if reply.failed is not None:
                raise RowFailed from reply.failed
            if reply.error is not None:
                raise reply.error
            assert reply.completion is not None
            return reply.completion

        terms = self._terms
        try:
            structured = Structured(one, SecondCalls(prices=terms.prices, bound=terms.bound))
            completion = await structured(replace(call, tier="batch"))
        except Exception as error:
            cost = sum((reply.cost for reply in asked), Decimal(0))
            if cost or any(reply.tries for reply in asked):
                self._failed(failure(call, error, cost))
                _keep(asked)
            raise
        # the caller keeps the reply before anything else runs
        _keep(asked)
        return Bought(completion=completion, cost=sum((reply.cost for reply in asked), Decimal(0)))

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Send calls and collect their replies meanwhile."""
        raised: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._work)
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised below, outside the group
                raised = error
            group.cancel_scope.cancel()
        if raised is not None:
            raise raised
        # all is answered: what is left is asked for no more
        await self._finish(all_kept=True)

    def _want(self, call: Call) -> Reply:
        reply = self._replies.setdefault(call_key(call), Reply(wanted=True))
        reply.call = call
        if self._broken is not None and not reply.over.is_set():
            reply.error = self._broken
            reply.over.set()
        return reply

    async def _work(self) -> None:
        while True:
            try:
                await self._step()
            except Exception as error:  # noqa: BLE001 - raised where the reply is waited for
                self._break(error)
                return
            await anyio.sleep(min(_TICK, self._terms.poll))

    def _break(self, error: Exception) -> None:
        self._broken = error
        for reply in self._replies.values():
            if reply.call is not None and not reply.over.is_set():
                reply.error = error
                reply.over.set()

    async def _step(self) -> None:
        now = time.monotonic()
        if now - self._extended >= _EXTEND:
            self._extended = now
            await self._ledger.extend(self._journal.content.open)
        if now >= self._create_at:
            await self._send(now)
        for sent in list(self._journal.content.sent.values()):
            if now >= self._due.get(sent.planned.batch, 0.0):
                self._due[sent.planned.batch] = now + self._terms.poll
                await self._look(sent)
        await self._finish()

    async def _finish(self, *, all_kept: bool = False) -> None:
        """End the batches whose rows are settled and whose replies are kept."""
        for sent in list(self._journal.content.sent.values()):
            calls = {entry["key"] for entry in sent.attempts.values()}
            if sent.open or not (all_kept or all(self._replies[key].kept for key in calls)):
                continue
            self._journal.write(Over(batch=sent.planned.batch))
            if sent.provider_batch is not None:
                # a provider deletes by itself what could not be deleted now; the run's end does not cut it off
                with contextlib.suppress(ProviderError), anyio.move_on_after(_DISCARD, shield=True):
                    await self._terms.endpoint.discard(
                        sent.provider_batch, model=sent.planned.model
                    )

    async def _send(self, now: float) -> None:
        """Create a batch of the wanted calls, if it is due."""
        terms = self._terms
        wanted = [one for one in self._replies.values() if one.wanted and one.call is not None]
        waited = now - min((one.since for one in wanted), default=now)
        if not wanted or (len(wanted) < terms.rows and waited < terms.wait):
            return
        openings: dict[str, Opening] = {}
        lines: dict[str, BatchLine] = {}
        for reply, line in fitting(wanted[: terms.rows], terms.endpoint):
            assert reply.call is not None
            new = open_attempt(
                reply.call,
                number=None,
                attempt=reply.tries + 1,
                bound=terms.bound(reply.call),
                prices=terms.prices,
                tier="batch",
                started=time.time(),
            )
            openings[new.id], lines[new.id] = new, line
        await self._create(openings, lines)

    async def _create(
        self, openings: Mapping[str, Opening], lines: Mapping[str, BatchLine]
    ) -> None:
        batch = keys.new_id("pb")
        model = next(iter(openings.values())).model
        attempts = {
            name: entries.opened(opening) | {"call": next(self._numbers)}
            for name, opening in openings.items()
        }
        # first of all, since what is not in the journal is not found again
        self._journal.write(
            Planned(batch=batch, created=time.time(), model=model, attempts=attempts)
        )
        sent = self._journal.content.sent[batch]
        for opening in openings.values():
            self._replies[opening.key].wanted = False
        reserved = await self._reserve(sent, openings)
        if not reserved:
            self._journal.write(Over(batch=batch))
            return
        try:
            made = await self._terms.endpoint.create(
                {name: lines[name] for name in reserved}, label=batch
            )
        except ProviderError as error:
            self._tell("batch refused", sent, error)
            # otherwise it may exist, and is looked for
            if error.usage == Usage():
                await self._undo(sent, error)
            return
        self._journal.write(Created(batch=batch, provider_batch=made))
        note("batch sent", lane_batch=batch, model=model, rows=len(reserved), provider_batch=made)

    async def _reserve(self, sent: Sent, openings: Mapping[str, Opening]) -> list[str]:
        """Reserve as many attempts as the budget has room for; the calls of the others wait or have failed."""
        reserved: list[str] = []
        full = False
        for name, opening in openings.items():
            reply = self._replies[opening.key]
            number = int(sent.attempts[name]["call"])
            asked = reservation(opening, number, run=self._name, cap=self._cap)
            try:
                if not full:
                    await self._ledger.reserve(asked)
                    reserved.append(name)
                    continue
            except HeadroomReserved:
                await self._ledger.leave(asked.ticket, self._name)
                full = True
            except BudgetError as error:
                reply.error = error
                reply.over.set()
            if reply.error is None:
                reply.wanted = True
            # neither reserved nor sent
            self._journal.write(Dropped(batch=sent.planned.batch, attempt=name))
        if full:
            self._create_at = time.monotonic() + self._terms.poll
        return reserved

    async def _undo(self, sent: Sent, error: ProviderError | None = None) -> None:
        """Release the reservations of a batch that was certainly not created."""
        for name in sent.open:
            await self._ledger.release(name)
        self._journal.write(Over(batch=sent.planned.batch))
        for entry in sent.attempts.values():
            if error is not None and not isinstance(error, RETRYABLE):
                reply = self._replies[entry["key"]]
                reply.error = error
                reply.over.set()
            else:
                self._again(entry["key"])
        if error is not None:
            self._create_at = time.monotonic() + max(self._terms.poll, error.retry_after or 0.0)

    async def _look(self, sent: Sent) -> None:
        """Look at a batch once, and settle its rows if it has ended."""
        if sent.provider_batch is not None and sent.attempts.keys() <= self._read:
            return
        late = time.time() - sent.planned.created > _PATIENCE
        try:
            if sent.provider_batch is None:
                await self._find(sent)
            elif await self._collect(sent, sent.provider_batch):
                return
        except AuthenticationFailed:
            raise
        except ProviderError as error:
            self._tell("batch not read", sent, error)
        if late and sent.planned.batch in self._journal.content.sent:
            await self._lose(sent, "The provider's batch has no end: billing status unknown.")

    async def _collect(self, sent: Sent, provider_batch: str) -> bool:
        """Settle the rows of a batch if it has ended; return whether it has."""
        endpoint, model = self._terms.endpoint, sent.planned.model
        if not (await endpoint.status(provider_batch, model=model)).ended:
            return False
        ids = frozenset(sent.attempts)
        try:
            async for result in endpoint.results(provider_batch, model=model, ids=ids):
                await self._settle(sent, result)
        except MalformedReply as error:
            self._tell("batch results lost", sent, error)
            await self._lose(
                sent, "The results of the provider's batch are gone: billing status unknown."
            )
        return True

    async def _lose(self, sent: Sent, why: str) -> None:
        """Charge the rows of a batch without results at their bounds."""
        for name in list(sent.attempts):
            await self._settle(sent, lost(name, sent.planned.model, why))

    async def _find(self, sent: Sent) -> None:
        """Look for a batch whose creation was not confirmed."""
        planned = sent.planned
        found = await self._terms.endpoint.find(
            planned.batch,
            model=planned.model,
            ids=frozenset(sent.open),
            since=datetime.fromtimestamp(planned.created, UTC),
            known=self._journal.content.known,
        )
        if found.batch is not None:
            self._journal.write(Created(batch=planned.batch, provider_batch=found.batch))
            self._due[planned.batch] = 0.0
        elif found.sure:
            await self._undo(sent)

    async def _settle(self, sent: Sent, result: BatchResult) -> None:
        """Settle an attempt once, and hand its reply over."""
        entry = sent.attempts.get(result.id)
        if entry is None or result.id in self._read:
            return
        attempt = attempt_of(entry, result, prices=self._terms.prices, now=time.time())
        if result.id not in sent.settled:
            await until_recorded(lambda: self._ledger.settle(attempt))
            self._journal.write(Settled(batch=sent.planned.batch, attempt=result.id))
        self._read.add(result.id)
        reply = self._replies[entry["key"]]
        reply.tries += 1
        reply.cost += attempt.charged
        if reply.over.is_set():
            return
        if result.completion is not None:
            reply.completion = result.completion
            reply.over.set()
        elif tries_again(result) and reply.tries < _BATCHES:
            self._again(entry["key"])
        else:
            reply.failed = result.error
            reply.over.set()

    def _again(self, key: str) -> None:
        """Want a call once more, unless another batch has it."""
        batches = self._journal.content.sent.values()
        rows = (row for sent in batches for row in sent.attempts.items())
        if not any(entry["key"] == key and name not in self._read for name, entry in rows):
            reply = self._replies[key]
            reply.wanted, reply.since = True, time.monotonic()

    def _tell(self, event: str, sent: Sent, error: ProviderError) -> None:
        ids = {"lane_batch": sent.planned.batch, "model": sent.planned.model}
        note(event, logging.WARNING, **ids, error=type(error).__name__, status=error.status)


def _keep(asked: Sequence[Reply]) -> None:
    for reply in asked:
        reply.kept = True
