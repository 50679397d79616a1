"""Work in a task group whose errors are raised as they are, out of the group's wrapping."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio

from posology.errors import PosologyError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


async def map_concurrently(
    work: Callable[[_Item], Awaitable[_Result]],
    items: Iterable[_Item],
    *,
    limit: int,
    finish: bool = False,
) -> list[_Result]:
    """Return the results of all items, in their order.

    Args:
        work: applied to each item.
        items: started in their order.
        limit: most items in work at the same time.
        finish: after an error, items in work end, as they do where they are paid for; otherwise they are cancelled.

    Raises:
        Exception: an error of ``work``; defects take precedence. No other item is started.
    """
    done: dict[int, _Result] = {}
    waiting = iter(enumerate(items))
    raised: list[Exception] = []

    async def run() -> None:
        for place, item in waiting:
            if raised:
                return
            try:
                done[place] = await work(item)
            except Exception as error:  # noqa: BLE001 - raised again below
                raised.append(error)
                if not finish:
                    group.cancel_scope.cancel()
                return

    async with anyio.create_task_group() as group:
        for _ in range(limit):
            group.start_soon(run)
    _raise(raised)
    return [done[place] for place in sorted(done)]


async def work_until(
    end: Callable[[], Awaitable[object]], work: Callable[[], Awaitable[_Result]]
) -> tuple[_Result, ...]:
    """Return the result of some work; nothing: ``end`` returned before it, and the work was cancelled.

    Raises:
        Exception: the error of ``work``.
    """
    done: list[_Result] = []
    raised: list[Exception] = []

    async def watch() -> None:
        await end()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        try:
            done.append(await work())
        except Exception as error:  # noqa: BLE001 - raised again below
            raised.append(error)
        group.cancel_scope.cancel()
    _raise(raised)
    return tuple(done)


def _raise(raised: list[Exception]) -> None:
    """Raise the first defect, else the first error."""
    for error in sorted(raised, key=lambda one: isinstance(one, PosologyError)):
        raise error
