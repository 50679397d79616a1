"""Measures the pages of the console at several numbers of jobs: ``python -m evals.load.console --jobs 100 10000``.

It starts its own Redis and serves the API over HTTP from a thread of this process. One tenant has the jobs, and as many
attempts in its ledger; 13 jobs are answered. A page's time is that of the fastest of its requests after the first, since
other work of the machine only adds to it; the median at the most jobs stands beside it. Fails if a page gives more commands
to Redis with more jobs, or has more than 150 kB.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import httpx2
import uvicorn
from redis import Redis as SyncRedis
from redis.asyncio import Redis

from evals.money.bulk import entries_of, fill_ledger
from evals.money.ledger import a_redis
from orchestrator.api.app import create_app
from orchestrator.settings import Settings
from posology.store.connection import connect
from posology.store.keys import DEFAULT_TENANT
from posology.testing.models.encoder import save_tiny_encoder
from tests.support.console_full import Full, make_full

#: bytes of a page at most
HEAVY = 150_000
#: commands by which a page may differ: a script is loaded once, a sweep runs meanwhile
_SLACK = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Cost of one page."""

    #: the fastest request, and the median, milliseconds
    ms: float
    median: float
    size: int
    #: commands to Redis
    commands: int


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """Serve the API on a port, in a thread."""
    server = uvicorn.Server(
        uvicorn.Config(create_app(settings), port=0, log_level="warning", ws="none")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.02)
        host, port = server.servers[0].sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        thread.join()


async def make(url: str, folder: Path, encoder: str, jobs: int) -> Full:
    """Fill the store, and the ledger with as many attempts as jobs."""
    redis: Redis = connect(url)
    try:
        full = await make_full(redis, url, folder, encoder, jobs=jobs, extra="")
        like = await entries_of(redis, DEFAULT_TENANT)
        await fill_ledger(redis, DEFAULT_TENANT, jobs, like, at=1000 * time.time() + 1)
        return full
    finally:
        await redis.aclose()


def measured(full: Full, redis: SyncRedis, times: int) -> Mapping[str, Cost]:
    """Return the cost of every page."""
    found = {}
    with serving(full.settings) as url, httpx2.Client(base_url=url, timeout=120) as http:
        for name, path in full.paths.items():
            http.get(path).raise_for_status()
            before = _commands(redis)
            size = len(http.get(path).raise_for_status().content)
            commands = _commands(redis) - before - 1
            taken = []
            for _ in range(times):
                started = time.perf_counter()
                http.get(path).raise_for_status()
                taken.append(1_000 * (time.perf_counter() - started))
            found[name] = Cost(
                ms=min(taken), median=statistics.median(taken), size=size, commands=commands
            )
    return found


def _commands(redis: SyncRedis) -> int:
    return int(redis.info("stats")["total_commands_processed"])


def show(found: Mapping[int, Mapping[str, Cost]]) -> None:
    """Print a row for each page, and a column for each number of jobs."""
    names = [f"{jobs:,} jobs, ms" for jobs in found]
    print(f"| page | {' | '.join(names)} | median | kB | Redis commands |")
    print(f"| --- |{' ---: |' * (len(names) + 3)}")
    last = found[max(found)]
    for name, cost in last.items():
        times = " | ".join(f"{costs[name].ms:.0f}" for costs in found.values())
        print(
            f"| {name} | {times} | {cost.median:.0f} | {cost.size / 1_000:.0f} | {cost.commands} |"
        )


def check(found: Mapping[int, Mapping[str, Cost]]) -> None:
    """Fail if a page grows.

    Raises:
        SystemExit: naming the first page.
    """
    few, many = found[min(found)], found[max(found)]
    for name, cost in many.items():
        if cost.commands > few[name].commands + _SLACK:
            raise SystemExit(f"{name}: {few[name].commands} commands, then {cost.commands}")
        if cost.size > HEAVY:
            raise SystemExit(f"{name}: {cost.size:,} bytes")


def run(counts: Sequence[int], times: int) -> None:
    """Print the table."""
    found: dict[int, Mapping[str, Cost]] = {}
    with tempfile.TemporaryDirectory() as place, a_redis(Path(place), file=False) as server:
        encoder = str(save_tiny_encoder(Path(place) / "encoder"))
        with SyncRedis.from_url(server.unix) as redis:
            for jobs in sorted(counts):
                folder = Path(place) / str(jobs)
                folder.mkdir()
                started = time.perf_counter()
                full = anyio.run(partial(make, server.unix, folder, encoder, jobs))
                memory = redis.info("memory")["used_memory"] / 1e9
                taken = time.perf_counter() - started
                print(f"{jobs:,} jobs written in {taken:.0f} s, {memory:.2f} GB", flush=True)
                found[jobs] = measured(full, redis, times)
    show(found)
    check(found)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--times", type=int, default=15)
    args = parser.parse_args()
    run(args.jobs, args.times)


if __name__ == "__main__":
    main()
