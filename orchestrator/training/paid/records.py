"""A run's records of the batch lane: its journal of batches, and the replies that its calls wait for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any

import anyio

from orchestrator.lane.failures import failure
from orchestrator.lane.records import BATCHES, BatchRecords, Entry, Reserved, Sent, Wanted
from orchestrator.training.paid.journal import (
    Created,
    Dropped,
    JournalFile,
    Over,
    Planned,
    Settled,
)
from orchestrator.training.paid.journal import Sent as Journaled
from posology.budget.ledger.base import Ledger
from posology.budget.ledger.batched import opening_of
from posology.budget.ledger.journal import until_recorded
from posology.errors import BudgetError, HeadroomReserved, ProviderError
from posology.llm.models.names import parse
from posology.store import keys
from posology.types import Attempt, Completion, Reservation


@dataclass(kw_only=True, slots=True)
class Reply:
    """The reply to a call, or what it waits for."""

    #: how it is sent; ``None``: an earlier process sent it, and nothing has asked for it yet
    plan: Entry | None = None
    #: monotonic seconds
    since: float = field(default_factory=time.monotonic)
    #: whether it is in no batch
    wanted: bool = False
    #: batches that it has been in
    tries: int = 0
    #: dollars charged so far
    cost: Decimal = Decimal(0)
    completion: Completion | None = None
    #: why its row failed, which concerns no other call
    failed: ProviderError | None = None
    #: why neither it nor others can be sent
    error: Exception | None = None
    over: anyio.Event = field(default_factory=anyio.Event)
    #: whether the run's file has what came of it
    kept: bool = False

    def end(self, error: Exception | None = None) -> None:
        """Hand over what came of the call."""
        self.error = self.error or error
        self.over.set()


class RunRecords(BatchRecords):
    """Records of one run.

    What a batch is made of is in the journal before anything is reserved or sent, so that a process which is killed at any
    point finds the batch again when the run resumes, and pays for no call twice. The journal has no replies: a batch whose
    replies are not all in the run's file is read again.

    Args:
        ledger: of the tenant.
        journal: of the run's batches.
        cap: dollars that all calls of this object may cost; ``None``: only the tenant's limits apply.
        is_kept: whether the run's file has the reply to a call, by its digest.
    """

    def __init__(
        self,
        ledger: Ledger,
        journal: JournalFile,
        *,
        cap: Decimal | None,
        is_kept: Callable[[str], bool],
    ) -> None:
        self.tenant = ledger.tenant
        self._ledger = ledger
        self._journal = journal
        self._cap = cap
        self._name = keys.new_id("run")
        self._numbers = count(1)
        #: by the call's digest
        self.replies: dict[str, Reply] = {}
        #: attempts whose results this process has read
        self._read: set[str] = set()
        #: monotonic seconds of the next look at a batch, and of the next one that may be created
        self._due: dict[str, float] = {}
        self._send_at = 0.0
        self._put_off_until = 0.0
        for sent in self._sent.values():
            for entry in sent.attempts.values():
                self.replies.setdefault(entry["key"], Reply(kept=is_kept(entry["key"])))

    @property
    def _sent(self) -> dict[str, Journaled]:
        return self._journal.content.sent

    def want(self, key: str, plan: Entry) -> Reply:
        """Return the reply to a call, which is sent unless it was."""
        reply = self.replies.setdefault(key, Reply(wanted=True))
        reply.plan = plan
        return reply

    async def extend(self) -> None:
        """Extend the reservations of attempts without an end."""
        await self._ledger.extend(self._journal.content.open)

    def keep_all(self) -> None:
        """Take all replies as kept: nothing asks for any that is left."""
        self._due.clear()
        for reply in self.replies.values():
            reply.kept, reply.wanted = True, False

    async def wanted(
        self,
        *,
        most: int,
        wait: float,
        at_once: int,
        hold: float,  # noqa: ARG002 - nobody else sends a run's calls
    ) -> Sequence[Wanted]:
        """See :meth:`~orchestrator.lane.records.BatchRecords.wanted`."""
        now = time.monotonic()
        found = [(k, one) for k, one in self.replies.items() if one.wanted and one.plan is not None]
        waited = now - min((one.since for _, one in found), default=now)
        if (
            now < max(self._send_at, self._put_off_until)
            or not found
            or (len(found) < at_once and waited < wait)
        ):
            return ()
        return [Wanted(job=self._name, key=k, plan=one.plan or {}) for k, one in found[:most]]

    async def hold(self, seconds: float) -> None:
        """See :meth:`~orchestrator.lane.records.BatchRecords.hold`."""
        self._send_at = time.monotonic() + seconds

    async def put_off(self, model: str, calls: Sequence[Wanted], *, seconds: float) -> None:
        """See :meth:`~orchestrator.lane.records.BatchRecords.put_off`; here all calls are of one model."""
        del model, calls
        self._put_off_until = time.monotonic() + seconds

    async def reserve(
        self,
        batch: str,
        record: Mapping[str, str],
        rows: Sequence[Entry],
        *,
        seconds: float,
    ) -> Reserved:
        """See :meth:`~orchestrator.lane.records.BatchRecords.reserve`."""
        attempts: dict[str, dict[str, Any]] = {}
        for row in rows:
            reply = self.replies[row["key"]]
            reply.wanted = False
            numbers = {"call": next(self._numbers), "attempt": reply.tries + 1}
            attempts[row["id"]] = {k: v for k, v in row.items() if k != "job"} | numbers
        # first of all, since what is not in the journal is not found again
        self._journal.write(
            Planned(batch=batch, created=time.time(), model=record["model"], attempts=attempts)
        )
        self._due[batch] = time.monotonic() + seconds
        reserved, waits = list[str](), False
        for name, entry in attempts.items():
            reply = self.replies[entry["key"]]
            try:
                if not waits:
                    await self._reserve(entry)
                    reserved.append(name)
                    continue
            except HeadroomReserved:
                await self._ledger.leave(self._ticket(entry), self._name)
                waits = True
            except BudgetError as error:
                reply.end(error)
            reply.wanted = not reply.over.is_set()
            # neither reserved nor sent
            self._journal.write(Dropped(batch=batch, attempt=name))
        if not reserved:
            self._journal.write(Over(batch=batch))
        return Reserved(attempts=tuple(reserved), waits=waits)

    async def _reserve(self, entry: Entry) -> None:
        """Set aside what an attempt may cost, as no concurrent call: it goes into a provider's batch."""
        opening = opening_of(entry)
        await self._ledger.reserve(
            Reservation(
                opening=opening,
                call=int(entry["call"]),
                job=self._name,
                ticket=self._ticket(entry),
                cap=self._cap,
                batch=True,
            )
        )

    def _ticket(self, entry: Entry) -> str:
        return f"{self._name}|{entry['key']}"

    async def due(self, *, seconds: float) -> Sequence[Sent]:
        """See :meth:`~orchestrator.lane.records.BatchRecords.due`. A batch is left alone while replies that were read are not kept."""
        now, batches = time.monotonic(), list[Sent]()
        for name, sent in self._sent.items():
            read = sent.attempts.keys() <= self._read
            if (read and not self._kept(sent)) or now < self._due.get(name, 0.0):
                continue
            self._due[name] = now + seconds
            batches.append(
                Sent(
                    id=name,
                    provider=parse(sent.planned.model).provider,
                    model=sent.planned.model,
                    state="creating" if sent.provider_batch is None else "sent",
                    provider_batch=sent.provider_batch,
                    age=max(0.0, time.time() - sent.planned.created),
                    rows=len(sent.attempts),
                    cancelling=False,
                )
            )
        return batches

    async def rows(self, batch: str) -> Mapping[str, Entry]:
        """See :meth:`~orchestrator.lane.records.BatchRecords.rows`. Those that an earlier process settled are read again."""
        found = self._sent[batch].attempts.items()
        return {name: entry for name, entry in found if name not in self._read}

    async def known(self) -> Sequence[str]:
        """See :meth:`~orchestrator.lane.records.BatchRecords.known`."""
        return self._journal.content.known

    async def unwanted(self, rows: Mapping[str, Entry]) -> bool:  # noqa: ARG002 - the run waits for all
        """See :meth:`~orchestrator.lane.records.BatchRecords.unwanted`."""
        return False

    async def note(self, batch: Sent, *, seconds: float, **fields: str) -> bool:
        """See :meth:`~orchestrator.lane.records.BatchRecords.note`."""
        if batch.id not in self._sent:
            return False
        self._due[batch.id] = time.monotonic() + seconds
        if (made := fields.get("provider_batch")) is not None:
            self._journal.write(Created(batch=batch.id, provider_batch=made))
        return True

    async def undo(self, batch: str, *, reason: str = "") -> bool:
        """See :meth:`~orchestrator.lane.records.BatchRecords.undo`."""
        sent = self._sent[batch]
        for name in sent.open:
            await self._ledger.release(name)
        self._journal.write(Over(batch=batch))
        for entry in sent.attempts.values():
            if reason:
                self.replies[entry["key"]].end(failure(json.loads(reason)))
            else:
                self._again(entry["key"])
        return True

    async def settle(
        self, batch: str, entry: Entry, attempt: Attempt, completion: Completion | None
    ) -> None:
        """See :meth:`~orchestrator.lane.records.BatchRecords.settle`."""
        if attempt.id not in self._sent[batch].settled:
            await until_recorded(lambda: self._ledger.settle(attempt))
            self._journal.write(Settled(batch=batch, attempt=attempt.id))
        reply = self.replies[entry["key"]]
        reply.tries += 1
        reply.cost += attempt.charged
        reply.completion = reply.completion or completion

    async def land(self, batch: str, attempt: str, fate: str, reason: str = "") -> bool:
        """See :meth:`~orchestrator.lane.records.BatchRecords.land`."""
        self._read.add(attempt)
        key = self._sent[batch].attempts[attempt]["key"]
        reply = self.replies[key]
        if reply.over.is_set():
            return True
        if fate == "again" and reply.tries < BATCHES:
            self._again(key)
            return True
        if fate != "done":
            reply.failed = failure(json.loads(reason))
        reply.end()
        return True

    def _again(self, key: str) -> None:
        """Want a call once more, unless another batch has it."""
        rows = (row for sent in self._sent.values() for row in sent.attempts.items())
        if not any(entry["key"] == key and name not in self._read for name, entry in rows):
            reply = self.replies[key]
            reply.wanted, reply.since = True, time.monotonic()

    async def end(self, batch: str) -> bool:
        """See :meth:`~orchestrator.lane.records.BatchRecords.end`: the run's file has to have the replies."""
        if not self._kept(self._sent[batch]):
            return False
        self._journal.write(Over(batch=batch))
        return True

    def _kept(self, sent: Journaled) -> bool:
        return all(self.replies[entry["key"]].kept for entry in sent.attempts.values())
