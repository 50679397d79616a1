"""The scripts' calendar against Python's: every day of 1970 to 2200."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import cast

import pytest
from redis.asyncio import Redis

from posology.budget.ledger.scripts import library
from posology.budget.ledger.windows import day_of, resets
from posology.types import Scope

pytestmark = pytest.mark.anyio

DAY = 86_400_000
FIRST, LAST = date(1970, 1, 1), date(2200, 12, 31)
DAYS = (LAST - FIRST).days + 1
#: the date of the first and the last millisecond of days; ARGV: now, first day, last day
DATES = """
local found = {}
for day = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  found[#found + 1] = date(day * DAY)
  found[#found + 1] = date(day * DAY + DAY - 1)
end
return found
"""
#: when the windows of some times are over; ARGV: now, times
RESETS = """
local found = {}
for i = 2, #ARGV do
  now = tonumber(ARGV[i])
  found[#found + 1] = resets('day')
  found[#found + 1] = resets('month')
  found[#found + 1] = resets('total')
end
return found
"""


async def run(redis: Redis, script: str, *arguments: int) -> list[str]:
    running = redis.eval(library() + script, 1, "posology:{dates}:", *arguments)
    return cast("list[str]", await running)


async def test_every_day_is_the_one_of_the_calendar(redis: Redis) -> None:
    found: list[str] = []
    for start in range(0, DAYS, 20_000):
        found += await run(redis, DATES, 1, start, min(DAYS, start + 20_000) - 1)
    wanted = [(FIRST + timedelta(days=i)).isoformat() for i in range(DAYS)]
    assert found[::2] == wanted
    assert found[1::2] == wanted
    assert {"2000-02-29", "2096-02-29"} <= set(found)
    assert not {"2100-02-29", "2200-02-29"} & set(found)


async def test_every_window_ends_when_the_next_begins(redis: Redis) -> None:
    firsts = [day for i in range(DAYS) if (day := FIRST + timedelta(days=i)).day == 1]
    times = [i * DAY + 12_345_678 for i in range(0, DAYS, 17)]
    for first in firsts:
        start = (first - FIRST).days * DAY
        times += [start, start + 1, max(0, start - 1)]
    found: list[str] = []
    for start in range(0, len(times), 2_000):
        found += await run(redis, RESETS, 1, *times[start : start + 2_000])
    for i, ms in enumerate(times):
        at = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms)
        for scope, said in zip(
            (Scope.DAY, Scope.MONTH, Scope.TOTAL), found[3 * i : 3 * i + 3], strict=True
        ):
            over = resets(scope, at)
            assert said == ("" if over is None else str(round(over.timestamp() * 1000)))
            if over is not None:
                length = 10 if scope is Scope.DAY else 7
                before = day_of(over - timedelta(microseconds=1))
                assert day_of(over)[:length] != day_of(at)[:length] == before[:length]
