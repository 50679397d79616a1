from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from posology.concurrency import map_concurrently

pytestmark = pytest.mark.anyio


async def test_what_is_done_last_keeps_its_place() -> None:
    events = [anyio.Event() for _ in range(3)]

    async def work(number: int) -> int:
        # each waits for the one after it
        if number + 1 < len(events):
            await events[number + 1].wait()
        events[number].set()
        return number * 10

    assert await map_concurrently(work, range(3), limit=3) == [0, 10, 20]


async def test_no_more_than_the_limit_are_under_way() -> None:
    under_way, most = 0, 0

    async def work(_: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await anyio.lowlevel.checkpoint()
        under_way -= 1

    assert await map_concurrently(work, range(20), limit=4) == [None] * 20
    assert most == 4


async def test_the_first_error_comes_out_as_it_is_and_ends_the_rest() -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def work(number: int) -> None:
        begun.append(number)
        if number == 1:
            raise LookupError(number)
        await anyio.sleep_forever()
        ended.append(number)

    with pytest.raises(LookupError, match="1"):
        await map_concurrently(work, range(9), limit=3)
    assert set(begun) <= {0, 1, 2}
    assert not ended
