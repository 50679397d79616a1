"""Memory, files and threads of every process of a run over time, and their slopes."""

from __future__ import annotations

import asyncio
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import redis

from evals.fire.journal import Journal
from evals.fire.world.redis_server import RedisServer

#: word of a command line by the part of the stack
PARTS = {"worker": "workers.app", "api": "orchestrator.api.app", "ingest": "uploads.process"}
#: seconds between two samples
EVERY = 5.0
#: seconds from the start of a process until its caches are filled, or the share of its life if that is longer
_WARM, _WARM_SHARE = 120.0, 0.25
#: the same of a steady run, in which the index keeps each version for 66 minutes, and readers know them all
_FILLED = 4_500.0
#: fewest samples of a line
_FEWEST = 12
#: seconds whose samples become one point of a line that is long enough: samples of a few seconds are not independent
_BLOCK = 300.0
#: fewest blocks of a line
_BLOCKS = 8


class Processes:
    """Processes of stacks, found by their command lines.

    Args:
        supervisors: returns their ids.
    """

    def __init__(self, supervisors: Callable[[], Sequence[int]]) -> None:
        self._supervisors = supervisors

    def of(self, part: str) -> list[int]:
        """Return the processes of a part, oldest first."""
        word = PARTS[part]
        return [
            pid
            for supervisor in self._supervisors()
            for pid in descendants(supervisor)
            if word in _line(pid)
        ]


def descendants(pid: int) -> list[int]:
    """Return the ids of all processes below one."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [one for child in map(int, children) for one in (child, *descendants(child))]


def _line(pid: int) -> str:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
    # a process that is about to become another one
    return "" if "launch.py" in line else line


async def sample(
    journal: Journal,
    processes: Processes,
    server: RedisServer,
    index: Path,
    tenants: Sequence[str],
) -> None:
    """Write samples until cancelled."""
    while True:
        await asyncio.to_thread(_sample, journal, processes, server, index, tenants)
        await asyncio.sleep(EVERY)


def _sample(
    journal: Journal,
    processes: Processes,
    server: RedisServer,
    index: Path,
    tenants: Sequence[str],
) -> None:
    for part in PARTS:
        for pid in processes.of(part):
            with suppress(OSError, ValueError):
                journal.write("sample", what=part, pid=pid, **_figures(pid))
    with suppress(OSError, ValueError, AssertionError):
        journal.write("sample", what="redis", pid=server.pid, **_figures(server.pid))
    with suppress(redis.RedisError, OSError), server.client() as client:
        used = client.info("memory")["used_memory"]
        journal.write("sample", what="redis data", pid=0, bytes=used, keys=client.dbsize())
        # entries stay until an operator archives them
        books = sum(
            client.memory_usage(f"posology:{{{name}}}:ledger", samples=0) or 0 for name in tenants
        )
        journal.write("sample", what="ledgers", pid=0, bytes=books)
        journal.write("sample", what="redis data but ledgers", pid=0, bytes=used - books)
    size = 0
    for place, _, files in os.walk(index):
        # what a blow fills the disk with is hidden
        for name in (name for name in files if not name.startswith(".")):
            with suppress(OSError):
                size += os.stat(Path(place) / name).st_blocks * 512  # noqa: PTH116 - no Path per file
    journal.write("sample", what="index", pid=0, disk=size)


def _figures(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    status = dict(line.split(":", 1) for line in lines if ":" in line)
    return {
        "rss": int(status["VmRSS"].split()[0]) * 1024,
        "threads": int(status["Threads"]),
        "files": len(list(Path(f"/proc/{pid}/fd").iterdir())),
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Slope:
    """A straight line through samples by least squares."""

    #: part of the stack and figure, such as ``worker rss``
    what: str
    samples: int
    #: seconds from the first to the last
    span: float
    #: at the beginning and the end of the line
    first: float
    last: float
    #: per hour, and its standard error
    slope: float
    error: float


def slope(what: str, points: Sequence[tuple[float, float]]) -> Slope:
    """Fit a line through ``(seconds, value)``, whose residuals the error takes as independent.

    So a line of 40 minutes or more goes through means over 5 minutes. Memory wanders by the minute: between samples of
    seconds, a wandering looks like a slope of many errors.
    """
    samples, span = len(points), points[-1][0] - points[0][0]
    points = _means(points) if span >= _BLOCK * _BLOCKS else points
    n = len(points)
    mean_x, mean_y = (sum(values) / n for values in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    rise = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    rest = sum((y - mean_y - rise * (x - mean_x)) ** 2 for x, y in points)
    error = math.sqrt(rest / max(1, n - 2) / spread)
    begin, end = points[0][0], points[-1][0]
    return Slope(
        what=what,
        samples=samples,
        span=span,
        first=mean_y + rise * (begin - mean_x),
        last=mean_y + rise * (end - mean_x),
        slope=3600 * rise,
        error=3600 * error,
    )


def _means(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    blocks: dict[int, list[tuple[float, float]]] = defaultdict(list)
    last = int((points[-1][0] - points[0][0]) / _BLOCK) - 1
    for point in points:
        blocks[min(last, int((point[0] - points[0][0]) / _BLOCK))].append(point)
    return [
        (fmean(xs), fmean(ys)) for xs, ys in (zip(*block, strict=True) for block in blocks.values())
    ]


def slopes(records: Iterable[Mapping[str, Any]]) -> list[Slope]:
    """Return a line for the longest-lived process of each part and figure, without its warm-up."""
    lines: dict[str, dict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    steady = False
    for record in records:
        if record["kind"] == "piece":
            steady = steady or record.get("steady", False)
        if record["kind"] == "sample":
            for name in ("rss", "threads", "files", "bytes", "keys", "disk"):
                if name in record:
                    lines[f"{record['what']} {name}"][record["pid"]].append((record["at"], record[name]))  # fmt: skip
    found = []
    for what, processes in sorted(lines.items()):
        points = max(processes.values(), key=lambda line: line[-1][0] - line[0][0])
        begin, end = points[0][0], points[-1][0]
        begin += max(_FILLED if steady else _WARM, _WARM_SHARE * (end - begin))
        warm = [point for point in points if point[0] >= begin]
        if len(warm) >= _FEWEST:
            found.append(slope(what, warm))
    return found
