"""What calls may cost, what they cost, and who writes it down."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Protocol

from posology.types import Attempt, Call, Completion, Limits, Opening, Scope, Taken, Usage


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    def __call__(self, text: str) -> int: ...


class Prices(Protocol):
    """What calls cost, and what they can cost at most."""

    @property
    def version(self) -> str:
        """Which prices these are, for the account."""
        ...

    def cost(self, model: str, usage: Usage | None) -> Decimal | None:
        """Dollars that a usage costs; ``None``: unknown, because usage or price is.

        Some models are free, at any usage.
        """
        ...

    def worst(self, model: str, *, input_tokens: int, output_tokens: int) -> Decimal:
        """Dollars that no usage within these bounds exceeds.

        Raises:
            UnpricedModel: nobody knows what the model costs.
        """
        ...


class Bound(Protocol):
    """How many tokens a call's input can have at most."""

    def __call__(self, call: Call) -> int: ...


class Meter(Protocol):
    """Counts what one tenant asks of its minute, in all processes together."""

    async def limits(self) -> Limits:
        """What the tenant may do; it may be a second old.

        Raises:
            StoreUnavailable: it is not known; nothing may be sent.
        """
        ...

    async def take(self, wanted: Mapping[Scope, int], limits: Limits, *, ticket: str) -> Taken:
        """Take from the tenant's minute, where there is room and nobody else is to be served first.

        Args:
            wanted: how much of which scopes, ``REQUESTS`` or ``TOKENS``; each has a limit that is not lower.
            limits: what the tenant may do.
            ticket: stays the same while the same call waits: its place in the queue.

        Raises:
            StoreUnavailable: it is not known whether there is room; nothing may be sent.
        """
        ...

    async def keep(self, granted: Collection[Scope], seconds: float, *, ticket: str) -> None:
        """Keep what was granted to a call that waits for money: whoever takes with its ticket has it, once.

        Args:
            granted: scopes; none: nothing is kept any more.
            seconds: for which it holds.
            ticket: the call's.

        Raises:
            StoreUnavailable: it is not known whether it is kept.
        """
        ...


class Journal(Protocol):
    """Takes the account of every attempt at a model call: once before it is sent, once after."""

    async def open(self, opening: Opening) -> int:
        """Reserve what an attempt may cost, write it down, and return the number of its call.

        What is opened and never closed was made by a process that ended: billed or not, nobody
        knows.

        Raises:
            HeadroomReserved: the attempt may not be made yet; nothing was written down.
            PosologyError: the attempt may not be made; nothing was written down.
        """
        ...

    async def close(self, attempt: Attempt, completion: Completion | None) -> None:
        """Write down how an attempt ended, and the reply where there was one.

        It is not cancelled: whoever calls this shields it.
        """
        ...
