"""Applies a function to many items concurrently, with a limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


async def map_concurrently(
    work: Callable[[_Item], Awaitable[_Result]], items: Iterable[_Item], *, limit: int
) -> list[_Result]:
    """Return the results of all items, in their order.

    Args:
        work: applied to each item.
        items: started in their order.
        limit: most items in work at the same time.

    Raises:
        Exception: the first error of ``work``, unwrapped; items in work are cancelled, and no others are started.
    """
    done: dict[int, _Result] = {}
    waiting = iter(enumerate(items))
    raised: list[Exception] = []

    async def run() -> None:
        for place, item in waiting:
            try:
                done[place] = await work(item)
            except Exception as error:  # noqa: BLE001 - raised again below, out of the group's wrapping
                raised.append(error)
                group.cancel_scope.cancel()
                return

    async with anyio.create_task_group() as group:
        for _ in range(limit):
            group.start_soon(run)
    if raised:
        raise raised[0]
    return [done[place] for place in sorted(done)]
