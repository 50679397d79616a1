"""Calls of a unit by way of a provider's batch."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import anyio

from orchestrator.lane.failures import failure
from orchestrator.lane.records import plan_of
from posology.budget.ledger.base import dollars
from posology.budget.ledger.refusals import raise_if_not_admitted
from posology.llm.memo import call_key
from posology.llm.second import SecondCalls
from posology.llm.structured import Structured, verdict
from posology.seams import Bound, Complete, Prices, Recall
from posology.seams.batches import BatchLine
from posology.types import Call, Completion


class Waits(Exception):
    """The unit waits for a provider's batch: park it, and run it again when its calls have their replies."""

    def __init__(self, calls: LaneCalls) -> None:
        super().__init__()
        self.calls = calls


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneRecords:
    """One unit's records in the lane."""

    #: reads a stored reply by the call's content
    recall: Recall
    #: reads why a call failed, JSON, by its content; ``None``: it has not failed
    failed: Callable[[str], Awaitable[str | None]]
    #: records that the stored reply to a call cannot be used: the call's content, and the error's name
    flawed: Callable[[str, str], Awaitable[None]]


class LaneCalls:
    """A :class:`~posology.seams.Complete` whose calls are answered in a provider's batch.

    A call with a stored reply is replayed, and one that failed raises its error. Any other is listed in
    :attr:`wanted`, and :class:`Waits` is raised once no call of the unit can go on without it, so that calls which a
    strategy makes at the same time go into the same batch.

    Args:
        lane: records of the unit.
        line: renders a call as a line of a batch.
        prices: as calls are reserved by: they bound what a second call may cost.
        bound: bound of a call's input tokens.
        live: makes calls at the standard price: those that failed in a batch, or whose reply needs a repair; ``None``:
            repairs go into the next batch.
        tenant: for messages.
    """

    def __init__(
        self,
        lane: LaneRecords,
        *,
        line: Callable[[Call], BatchLine],
        prices: Prices,
        bound: Bound,
        live: Complete | None,
        tenant: str,
    ) -> None:
        self._lane = lane
        self._line = line
        self._bound = bound
        self._live = live
        self._tenant = tenant
        self._structured = Structured(self._replay, SecondCalls(prices=prices, bound=bound))
        #: what is needed to send each call that has no reply, JSON, by the call's content
        self.wanted: dict[str, str] = {}
        self._entered = 0
        self._waiting = 0
        self._changed = anyio.Event()

    @property
    def repairs_live(self) -> bool:
        """Whether calls that failed in a batch are made at the standard price."""
        return self._live is not None

    async def __call__(self, call: Call) -> Completion:
        """Replay one call, or want it.

        Raises:
            Waits: it has no reply yet.
            ProviderError: it failed in a batch, and is not tried again.
            BudgetError: the limits of the tenant or of the job refused it.
        """
        self._entered += 1
        try:
            if self._live is not None and await self._went_wrong(call):
                return await self._live(replace(call, tier="standard"))
            return await self._structured(replace(call, tier="batch"))
        finally:
            self._entered -= 1
            self._change()

    async def _went_wrong(self, call: Call) -> bool:
        key = call_key(call)
        if (found := await self._recall(key, call)) is not None:
            return verdict(call, found) is not None
        told = await self._lane.failed(key)
        return told is not None and "refused" not in json.loads(told)

    async def _replay(self, call: Call) -> Completion:
        key = call_key(call)
        if (found := await self._recall(key, call)) is not None:
            return found
        if (told := await self._lane.failed(key)) is not None:
            self._raise(call, json.loads(told))
        self.wanted[key] = self._plan(key, call)
        self._waiting += 1
        self._change()
        try:
            while self._waiting < self._entered:
                await self._changed.wait()
        finally:
            self._waiting -= 1
        raise Waits(self)

    async def _recall(self, key: str, call: Call) -> Completion | None:
        found = await self._lane.recall(key)
        if found is not None and (flaw := verdict(call, found)) is not None:
            await self._lane.flawed(key, flaw)
        return found

    def _raise(self, call: Call, told: dict[str, Any]) -> None:
        if "refused" in told:
            raise_if_not_admitted(told["refused"], call.model, dollars(told["asked"]), self._tenant)
        raise failure(told)

    def _plan(self, key: str, call: Call) -> str:
        return json.dumps(plan_of(key, call, line=self._line(call), bound=self._bound(call)))

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
