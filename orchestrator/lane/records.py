"""Records of the batch lane: calls that are wanted, and providers' batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from posology.budget.ledger import entries
from posology.llm.accounting import planned
from posology.seams.batches import BatchLine
from posology.types import Attempt, Call, Completion

#: batches that a call may go into before it has failed
BATCHES = 3
Entry = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A call that waits to be sent."""

    #: the job or run that wants it
    job: str
    #: its content, see :func:`~posology.llm.memo.call_key`
    key: str
    #: see :func:`plan_of`
    plan: Entry


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A provider's batch."""

    id: str
    provider: str
    #: of all rows, ``provider:name``
    model: str
    #: ``creating`` or ``sent``
    state: str
    #: the provider's id; ``None``: unknown
    provider_batch: str | None
    #: seconds since it was recorded, by the clock of the records
    age: float
    #: number of rows that it was created with
    rows: int
    #: whether a cancellation was asked for
    cancelling: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Reserved:
    """Result of a reservation of many attempts."""

    #: ids of those that are to be sent
    attempts: tuple[str, ...]
    #: whether calls in flight have reserved the rest of a limit, so that calls stay wanted
    waits: bool


def plan_of(key: str, call: Call, *, line: BatchLine, bound: int) -> dict[str, Any]:
    """Return what is needed to send a call later, ready for JSON: its line, its opening, and whether it asks for caching.

    Args:
        key: the call's content.
        call: in the tier ``batch``.
        line: that the call is in a batch.
        bound: maximum input tokens.
    """
    opening = entries.opened(planned(call, bound=bound, tier=call.tier))
    return {"line": asdict(line), "opening": opening | {"key": key}, "caches": bool(call.cached)}


class BatchRecords(Protocol):
    """Records of a tenant's wanted calls and batches. Each step is written before the next one is taken."""

    #: name of the tenant, for the log
    tenant: str

    async def wanted(
        self, *, most: int, wait: float, at_once: int, hold: float
    ) -> Sequence[Wanted]:
        """Return calls that are to be sent now, in the order in which they came. Then call :meth:`hold`.

        Args:
            most: maximum number of calls.
            wait: seconds that a call waits for others.
            at_once: number of wanted calls that are sent without a wait.
            hold: seconds for which no other process gets any.
        """
        ...

    async def hold(self, seconds: float) -> None:
        """Send no call for some seconds, 0 for none."""
        ...

    async def put_off(self, model: str, calls: Sequence[Wanted], *, seconds: float) -> None:
        """Send these calls, and all others of their model, only later, so that they keep no others back."""
        ...

    async def reserve(
        self,
        batch: str,
        record: Mapping[str, str],
        rows: Sequence[Entry],
        *,
        seconds: float,
    ) -> Reserved:
        """Reserve attempts and record their batch, before it is created at the provider.

        Args:
            batch: our id of the batch.
            record: its provider and model.
            rows: opening of each attempt, with ``job``; number and attempt of the call are those of the records.
            seconds: time within which the caller creates it.
        """
        ...

    async def due(self, *, seconds: float) -> Sequence[Sent]:
        """Take providers' batches that are to be looked at now, for some seconds."""
        ...

    async def rows(self, batch: str) -> Mapping[str, Entry]:
        """Return the entries of a batch's rows that have not landed, by attempt."""
        ...

    async def known(self) -> Sequence[str]:
        """Return the providers' ids of the batches."""
        ...

    async def unwanted(self, rows: Mapping[str, Entry]) -> bool:
        """Return whether the replies of none of a batch's rows are waited for."""
        ...

    async def note(self, batch: Sent, *, seconds: float, **fields: str) -> bool:
        """Write down how far a batch is; return false if it is in another state by now.

        Args:
            batch: as it was read.
            seconds: time until the next look at it.
            **fields: that change.
        """
        ...

    async def undo(self, batch: str, *, reason: str = "") -> bool:
        """Release the reservations of a batch that was certainly not created.

        Args:
            batch: our id of it.
            reason: why its calls have failed, JSON; empty: they are wanted again.
        """
        ...

    async def settle(
        self, batch: str, entry: Entry, attempt: Attempt, completion: Completion | None
    ) -> None:
        """Settle an attempt, once, and keep its reply.

        Args:
            batch: our id of the batch.
            entry: of the attempt, as it was reserved.
            attempt: its account.
            completion: the reply; ``None``: there is none.
        """
        ...

    async def land(self, batch: str, attempt: str, fate: str, reason: str = "") -> bool:
        """Go on with the call of a row whose attempt is settled; return false if it had landed before.

        Args:
            batch: our id of the batch.
            attempt: its id.
            fate: ``done``, ``again`` or ``failed``.
            reason: why it failed, JSON.
        """
        ...

    async def end(self, batch: str) -> bool:
        """End a batch whose rows have all landed; return false if it cannot end yet."""
        ...
