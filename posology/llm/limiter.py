"""Bounds how many calls of a process are with one provider at a time."""

from __future__ import annotations

import anyio

from posology.seams import Complete
from posology.types import Call, Completion


class Limiter:
    """Waits for a place before each attempt, and gives it back after.

    It stands within retry, so that a call that waits for its next attempt holds no place.

    Args:
        inner: gets the call.
        places: shared by all calls to one provider in this process.
    """

    def __init__(self, inner: Complete, *, places: anyio.CapacityLimiter) -> None:
        self._inner = inner
        self._places = places

    async def __call__(self, call: Call) -> Completion:
        """Send one call when there is a place."""
        async with self._places:
            return await self._inner(call)
