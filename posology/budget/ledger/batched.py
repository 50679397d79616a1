"""Rows of a provider's batch in the ledger: the account of each attempt, and whether its call is tried again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter

from posology.errors import (
    MalformedReply,
    ProviderOverloaded,
    ProviderTimeout,
    ProviderUnreachable,
    RateLimited,
)
from posology.seams import Prices
from posology.seams.batches import BatchFate, BatchResult
from posology.types import Attempt, Opening, Outcome, Usage

#: errors of one row after which the call goes into another batch
RETRYABLE = (RateLimited, ProviderOverloaded, ProviderUnreachable, ProviderTimeout, MalformedReply)
#: fates of rows that say nothing of the call
_UNTOUCHED = frozenset({BatchFate.EXPIRED, BatchFate.CANCELLED, BatchFate.UNREADABLE})

_opening = TypeAdapter(Opening)


def opening_of(entry: Mapping[str, Any]) -> Opening:
    """Return the opening of an attempt from its entry."""
    return _opening.validate_python(
        {name: entry[name] for name in Opening.__dataclass_fields__ if name in entry}
    )


def attempt_of(
    entry: Mapping[str, Any], result: BatchResult, *, prices: Prices, now: float
) -> Attempt:
    """Return the account of an attempt whose row has a result.

    Args:
        entry: of the attempt, as it was reserved.
        result: the row.
        prices: cost of the usage.
        now: POSIX seconds.
    """
    opening, completion, error = opening_of(entry), result.completion, result.error
    if completion is not None:
        usage, request = completion.usage, completion.request_id
    else:
        usage = None if error is None else error.usage
        request = None if error is None else error.request_id
    # a refused request costs nothing, whatever the price
    free = usage == Usage()
    cost = Decimal(0) if free else prices.cost(opening.model, usage, "batch")
    if cost is not None:
        # the price file may have changed since the batch was sent
        opening = replace(opening, prices=prices.version)
    return Attempt.of(
        opening,
        call=int(entry["call"]),
        outcome=Outcome.OK if completion is not None else Outcome.FAILED,
        error=None if error is None else type(error).__name__,
        usage=usage,
        cost=cost,
        latency=max(0.0, now - opening.started),
        request_id=request,
        served=None if completion is None else "batch",
    )


def tries_again(result: BatchResult) -> bool:
    """Return whether the call of a row without a reply goes into another batch."""
    if isinstance(result.error, MalformedReply) and result.error.billed:
        return False
    return result.fate in _UNTOUCHED or isinstance(result.error, RETRYABLE)
