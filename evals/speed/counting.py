"""What Redis does in a while, by its own counters. Imports only the client: :mod:`evals.speed.idle` loads this file by its path."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

_TIMES = ("used_cpu_user_main_thread", "used_cpu_sys_main_thread")


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What Redis did."""

    #: of the wall clock
    seconds: float
    #: commands by name, those that scripts call included
    calls: Mapping[str, int]
    #: processor time of its main thread, milliseconds
    milliseconds: float

    @property
    def commands(self) -> int:
        """Number of commands."""
        return sum(self.calls.values())


async def count(redis: Redis, work: Callable[[], Awaitable[object]]) -> Done:
    """Return what Redis does, for whatever client, while some work is done.

    The milliseconds are processor time, not the sum of ``commandstats``, which has a script's commands twice.
    """
    before, began = await redis.info("all"), time.perf_counter()
    await work()
    seconds, after = time.perf_counter() - began, await redis.info("all")
    calls = {name: n - _calls(before).get(name, 0) for name, n in _calls(after).items()}
    # the first look has counted itself since
    calls["info"] -= 1
    spent = sum(float(after[name]) - float(before[name]) for name in _TIMES)
    return Done(
        seconds=seconds,
        calls={name: n for name, n in calls.items() if n},
        milliseconds=1000 * spent,
    )


def _calls(info: Mapping[str, Any]) -> dict[str, int]:
    return {
        name.removeprefix("cmdstat_"): int(row["calls"])
        for name, row in info.items()
        if name.startswith("cmdstat_")
    }
