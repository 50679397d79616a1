"""Prices, bounds, rate limits and journals of calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Protocol

from posology.types import (
    Attempt,
    Call,
    Completion,
    Limits,
    Opening,
    Scope,
    Served,
    Taken,
    Tier,
    Usage,
)


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    def __call__(self, text: str) -> int: ...


class Prices(Protocol):
    """Costs of calls, before and after."""

    @property
    def version(self) -> str:
        """Version of the prices, for the account."""
        ...

    def cost(self, model: str, usage: Usage | None, tier: Served = "standard") -> Decimal | None:
        """Return the cost of a usage in a service tier, in dollars; ``None``: unknown, because usage or price is.

        Some models are free, at any usage.
        """
        ...

    def worst(
        self,
        model: str,
        *,
        input_tokens: int,
        output_tokens: int,
        tier: Tier = "standard",
        caches: bool = False,
    ) -> Decimal:
        """Return the maximum cost of a usage within these bounds, of a call that is sent in a tier, in dollars.

        Args:
            model: ``provider:name``.
            input_tokens: bound of the input.
            output_tokens: bound of the output.
            tier: service tier.
            caches: whether the call asks the provider to cache a prefix.

        Raises:
            UnpricedModel: no price is known for the model in the tier.
        """
        ...


class Bound(Protocol):
    """Computes the maximum number of a call's input tokens."""

    def __call__(self, call: Call) -> int: ...


class Meter(Protocol):
    """Enforces one tenant's limits per minute, over all processes."""

    async def limits(self) -> Limits:
        """Return the tenant's limits, at most a second old.

        Raises:
            StoreUnavailable: the limits are unknown; nothing may be sent.
        """
        ...

    async def take(self, wanted: Mapping[Scope, int], limits: Limits, *, ticket: str) -> Taken:
        """Take from the tenant's minute if there is room and no earlier call waits.

        Args:
            wanted: amounts by scope, ``REQUESTS`` or ``TOKENS``; each at most the scope's limit.
            limits: of the tenant.
            ticket: the call's place in the queue, constant while it waits.

        Raises:
            StoreUnavailable: it is unknown whether there is room; nothing may be sent.
        """
        ...

    async def keep(self, granted: Collection[Scope], seconds: float, *, ticket: str) -> None:
        """Keep the grants of a call that waits for budget, for the next request with its ticket, once.

        Args:
            granted: scopes; none: drop what is kept.
            seconds: lifetime of the grants.
            ticket: the call's.

        Raises:
            StoreUnavailable: it is unknown whether they are kept.
        """
        ...


class Journal(Protocol):
    """Records every attempt at a model call: once before it is sent, once after."""

    async def open(self, opening: Opening) -> int:
        """Reserve the maximum cost of an attempt, record it, and return the number of its call.

        An attempt that is opened and never closed belongs to a process that ended: its billing status
        is unknown.

        Raises:
            Answered: the reply to the call came to another worker, see :mod:`posology.llm.memo`; nothing was recorded.
            HeadroomReserved: the attempt may not be made yet; nothing was recorded.
            PosologyError: the attempt may not be made; nothing was recorded.
        """
        ...

    async def close(self, attempt: Attempt, completion: Completion | None) -> None:
        """Record how an attempt ended, with its reply if there was one.

        The caller shields it from cancellation.
        """
        ...
