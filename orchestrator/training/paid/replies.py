"""Calls of a run as rows of a provider's batch, and what came of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import anyio

from orchestrator.training.paid.calls import RowFailed
from orchestrator.training.paid.rows import Failed
from posology.errors import MalformedReply, ProviderError
from posology.llm.memo import call_key
from posology.llm.models.names import parse
from posology.seams import Bound, Prices
from posology.seams.batches import BatchEndpoint, BatchFate, BatchLine, BatchResult
from posology.types import Call, Completion, Opening, Reservation


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneTerms:
    """How calls become batches. Times are in seconds."""

    endpoint: BatchEndpoint
    prices: Prices
    #: bound of a call's input tokens
    bound: Bound
    #: time that a call waits for others to share a batch
    wait: float
    #: maximum rows of a batch
    rows: int
    #: time between two polls of a batch
    poll: float


@dataclass(kw_only=True, slots=True)
class Reply:
    """The reply to a call, or what it waits for."""

    #: ``None``: an earlier process sent it, and nothing has asked for it yet
    call: Call | None = None
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


def failure(call: Call, error: Exception, cost: Decimal) -> Failed:
    """Return the row of a call that has failed, with the provider's error where a row had one."""
    why = error.__cause__ or error if isinstance(error, RowFailed) else error
    return Failed(call=call_key(call), error=type(why).__name__, message=str(why), cost=cost)


def lost(attempt: str, model: str, why: str) -> BatchResult:
    """Return the result of a row whose provider's batch has none: it is charged at its bound."""
    error = MalformedReply(why, provider=parse(model).provider, model=model)
    return BatchResult(id=attempt, fate=BatchFate.UNREADABLE, error=error)


def fitting(wanted: Sequence[Reply], endpoint: BatchEndpoint) -> Iterator[tuple[Reply, BatchLine]]:
    """Yield calls that one batch of the provider can hold, with their lines."""
    limits, size, path = endpoint.limits, 0, None
    for count, reply in enumerate(wanted):
        assert reply.call is not None
        line = endpoint.line(replace(reply.call, tier="batch"))
        size += len(line.body.encode()) + limits.per_line
        if count and (count >= limits.lines or size > limits.bytes or line.path != path):
            return
        path = line.path
        yield reply, line


def reservation(opening: Opening, number: int, *, run: str, cap: Decimal | None) -> Reservation:
    """Return what an attempt sets aside: no concurrent call, since it goes into a provider's batch."""
    ticket = f"{run}|{opening.key}"
    return Reservation(opening=opening, call=number, job=run, ticket=ticket, cap=cap, batch=True)
