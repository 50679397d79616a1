"""Does the same with each of many things, a few at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio

_Thing = TypeVar("_Thing")
_Done = TypeVar("_Done")


async def few_at_once(
    work: Callable[[_Thing], Awaitable[_Done]], things: Iterable[_Thing], *, limit: int
) -> list[_Done]:
    """What becomes of each, in their order.

    Args:
        work: done with each.
        things: taken up in their order.
        limit: how many are under way at once.

    Raises:
        Exception: the first that ``work`` raised, as it is; what was under way then is cancelled, and
            nothing more is taken up.
    """
    done: dict[int, _Done] = {}
    waiting = iter(enumerate(things))
    raised: list[Exception] = []

    async def take_up() -> None:
        for place, thing in waiting:
            try:
                done[place] = await work(thing)
            except Exception as error:  # noqa: BLE001 - raised again below, out of the group's wrapping
                raised.append(error)
                group.cancel_scope.cancel()
                return

    async with anyio.create_task_group() as group:
        for _ in range(limit):
            group.start_soon(take_up)
    if raised:
        raise raised[0]
    return [done[place] for place in sorted(done)]
