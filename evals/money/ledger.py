"""Measures the ledger: latency of a pair, pairs a second, and growth with tenants and entries.

It starts its own Redis with an append-only file, written every second. A pair is a reservation under limits of day,
month and total, and its settlement. ``python -m evals.money.ledger``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import anyio
import anyio.to_thread
from redis.asyncio import Redis

from evals.money.bulk import entries_of, fill_ledger
from orchestrator.stack.ports import free_port
from orchestrator.stack.redis_server import find_server
from posology.budget.ledger.base import MAX_CAP, Ledger, nano
from posology.budget.ledger.memory import MemoryLedger
from posology.budget.ledger.redis import RedisLedger
from posology.store import keys
from posology.store.connection import connect
from posology.types import Attempt, Limits, Opening, Outcome, PromptId, Reservation, Stage, Usage

HOST = "127.0.0.1"
BOUND, COST = Decimal("0.0042"), Decimal("0.0017")
PROMPT = PromptId(name="answer", digest="0123456789abcdef")
MODEL = "openai:gpt-4o-mini"
#: ms for a pair, p50
WANTED = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """A Redis of ours."""

    tcp: str
    unix: str


@contextmanager
def a_redis(folder: Path, *, file: bool = True) -> Iterator[Server]:
    """Keep a Redis that listens on a port and on a socket; ``file``: it has an append-only file."""
    port, socket = free_port(HOST), folder / "redis.sock"
    command = [str(find_server(os.environ.get("PATH"))), "--bind", HOST, "--port", str(port),
               "--unixsocket", str(socket), "--dir", str(folder), "--save", "",
               "--appendonly", "yes" if file else "no", "--appendfsync", "everysec",
               "--auto-aof-rewrite-percentage", "0"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            while not socket.exists():
                if process.poll() is not None:
                    raise SystemExit("Redis does not start")
                time.sleep(0.02)
            yield Server(tcp=f"redis://{HOST}:{port}/0", unix=f"unix://{socket}")
        finally:
            process.kill()


async def pair(ledger: Ledger, run: str) -> None:
    """Reserve one attempt, and settle it."""
    attempt = uuid4().hex
    shared: dict[str, Any] = {
        "id": attempt, "call": 1, "attempt": 1, "stage": Stage.ANSWER, "model": MODEL, "prompt": PROMPT,
        "started": time.time(), "strategy": "direct", "input_bound": 4_000, "max_tokens": 500,
        "reserved": BOUND, "prices": "packaged@2026-01-01",
    }  # fmt: skip
    opening = Opening(key=attempt, **shared)
    await ledger.reserve(
        Reservation(opening=opening, call=1, job=run, ticket=f"{run}|{attempt}", cap=MAX_CAP)
    )
    ended = Attempt(
        outcome=Outcome.OK,
        error=None,
        usage=Usage(input=3_211, cache_read=400, output=187, reasoning=12),
        cost=COST,
        latency=1.234567,
        request_id="req_0123456789abcdef01234567",
        **shared,
    )
    await ledger.settle(ended)


async def limited(redis: Redis, tenant: str) -> None:
    """Give a tenant limits in every scope, none of which is met."""
    caps = {scope: nano(MAX_CAP) for scope in ("day", "month", "total")} | {"calls": 100_000}
    await redis.hset(f"{keys.prefix(tenant)}tenant", mapping=cast("dict[Any, Any]", caps))


def spread(seconds: list[float]) -> str:
    """Percentiles in milliseconds."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    p50, p95, p99 = (cuts[i - 1] * 1000 for i in (50, 95, 99))
    return f"p50 {p50:.3f}  p95 {p95:.3f}  p99 {p99:.3f} ms"


async def timed(run: Callable[[int], Awaitable[None]], count: int) -> list[float]:
    """How long each of so many took, one after the other; the first ones are warm-up."""
    found = []
    for i in range(count + 50):
        started = time.perf_counter()
        await run(i)
        found.append(time.perf_counter() - started)
    return found[50:]


async def shown(redis: Redis, run: Callable[[int], Awaitable[None]], count: int) -> str:
    """Percentiles of pairs, and what each took of Redis alone."""
    await redis.config_resetstat()
    found = await timed(run, count)
    scripts = (await redis.info("commandstats"))["cmdstat_evalsha"]
    return f"{spread(found)}   in Redis {2 * scripts['usec_per_call'] / 1000:.3f} ms"


async def latencies(server: Server, count: int) -> float:
    """One process, one call after the other. Returns p50 of a pair over TCP, ms."""
    print("\nA pair, one after the other")
    memory = MemoryLedger(Limits(day=MAX_CAP, month=MAX_CAP, total=MAX_CAP))
    print(f"  in memory    {spread(await timed(lambda _: pair(memory, 'run_m'), count))}")
    medians = {}
    for name, url in (("unix socket", server.unix), ("TCP", server.tcp)):
        redis = connect(url)
        try:
            pings = await timed(lambda _, r=redis: _pinged(r), count)  # type: ignore[misc]
            await limited(redis, "latency")
            ledger = RedisLedger(redis, url, tenant="latency")
            found = await timed(lambda _, to=ledger: pair(to, "run_l"), count)  # type: ignore[misc]
        finally:
            await redis.aclose()
        medians[name] = statistics.median(found) * 1000
        print(
            f"  {name:<12} {spread(found)}   (two pings: p50 {2000 * statistics.median(pings):.3f} ms)"
        )
    return medians["TCP"]


async def _pinged(redis: Redis) -> None:
    await redis.ping()


async def _pairs(url: str, tenant: str, tasks: int, seconds: float) -> int:
    """How many pairs so many tasks make in a time."""
    redis = connect(url)
    try:
        await limited(redis, tenant)
        ledger = RedisLedger(redis, url, tenant=tenant)
        await pair(ledger, "run_0")
        end, done = time.perf_counter() + seconds, 0

        async def one(i: int) -> None:
            nonlocal done
            while time.perf_counter() < end:
                await pair(ledger, f"run_{i}")
                done += 1

        async with anyio.create_task_group() as group:
            for i in range(tasks):
                group.start_soon(one, i)
        return done
    finally:
        await redis.aclose()


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """What one process came to."""

    #: pairs
    done: int
    #: a second
    pairs: float
    #: of its own CPU time
    cpu_seconds: float


def _in_a_process(given: tuple[str, str, int, float]) -> Rate:
    url, tenant, tasks, seconds = given
    started, cpu = time.perf_counter(), time.process_time()
    done = anyio.run(_pairs, url, tenant, tasks, seconds)
    return Rate(
        done=done,
        pairs=done / (time.perf_counter() - started),
        cpu_seconds=time.process_time() - cpu,
    )


async def throughput(server: Server, seconds: float) -> None:
    """Pairs a second of one tenant."""
    print("\nPairs a second, one tenant, TCP; CPU time a pair of ours and of Redis")
    redis = connect(server.tcp)
    try:
        for processes, tasks in ((1, 1), (1, 8), (1, 64), (2, 64)):
            before = await _cpu(redis)
            jobs = [(server.tcp, "throughput", tasks, seconds)] * processes
            with multiprocessing.get_context("spawn").Pool(processes) as pool:
                rates = await anyio.to_thread.run_sync(pool.map, _in_a_process, jobs)
            done = sum(rate.done for rate in rates)
            own, its = sum(r.cpu_seconds for r in rates), await _cpu(redis) - before
            print(
                f"  {processes} process{'es' if processes > 1 else '  '} of {tasks:>2} at a time: "
                f"{sum(rate.pairs for rate in rates):6.0f}   {own / done * 1000:.2f} ms and "
                f"{its / done * 1000:.2f} ms"
            )
    finally:
        await redis.aclose()


async def _cpu(redis: Redis) -> float:
    used = await redis.info("cpu")
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


async def tenants(server: Server, count: int) -> None:
    """A pair of a tenant that is one of many."""
    print("\nA pair, by the number of tenants that have limits, counters and entries, TCP")
    redis = connect(server.tcp)
    try:
        there = 0
        for many in (1, 100, 10_000):
            before = await _memory(redis)
            for i in range(there, many):
                await limited(redis, f"many{i}")
                await pair(RedisLedger(redis, server.tcp, tenant=f"many{i}"), "run_0")
            grown, there = (await _memory(redis) - before) / (many - there), many
            ledgers = [
                RedisLedger(redis, server.tcp, tenant=f"many{i * many // count % many}")
                for i in range(count + 50)
            ]
            found = await shown(redis, lambda i, of=ledgers: pair(of[i], "run_0"), count)  # type: ignore[misc]
            print(f"  {many:>6}  {found}   {grown / 1000:.1f} kB each")
    finally:
        await redis.aclose()


async def growth(server: Server, count: int, most: int) -> None:
    """A pair of a tenant whose ledger is long, and what an entry takes."""
    print("\nA pair, by the number of entries in the tenant's ledger, TCP")
    redis = connect(server.tcp)
    try:
        # what is measured is Redis's memory: the file of so many entries would only fill a disk
        await redis.config_set("appendonly", "no")
        await pair(RedisLedger(redis, server.tcp, tenant="like"), "run_0")
        like = await entries_of(redis, "like")
        for many in (1_000, most):
            tenant = f"long{many}"
            await limited(redis, tenant)
            ledger = RedisLedger(redis, server.tcp, tenant=tenant)
            before, started = await _memory(redis), time.perf_counter()
            await fill_ledger(redis, tenant, many // 2, like, at=1000 * time.time() - 1000)
            filled = time.perf_counter() - started
            each = (await _memory(redis) - before) / many
            # the first pairs after so much was written pay for that
            await timed(lambda _, to=ledger: pair(to, "run_0"), count)  # type: ignore[misc]
            found = await shown(redis, lambda _, to=ledger: pair(to, "run_0"), count)  # type: ignore[misc]
            print(f"  {many:>8}  {found}   {each:.0f} bytes an entry, filled in {filled:.1f} s")
            await redis.unlink(f"{keys.prefix(tenant)}ledger")
    finally:
        await redis.aclose()


async def durability(server: Server, count: int, rounds: int = 5) -> None:
    """Compare the append-only file written every second and after each command, in turns."""
    print("\nA pair by how the append-only file is synced, TCP, in turns")
    redis = connect(server.tcp)
    found: dict[str, list[float]] = {"everysec": [], "always": []}
    rates: dict[str, list[float]] = {"everysec": [], "always": []}
    try:
        await limited(redis, "durable")
        ledger = RedisLedger(redis, server.tcp, tenant="durable")
        for _ in range(rounds):
            for how in found:
                await redis.config_set("appendfsync", how)
                found[how] += await timed(lambda i: pair(ledger, f"run_{i}"), count // rounds)
                done = await anyio.to_thread.run_sync(
                    _in_a_process, (server.tcp, "durable", 64, 3.0)
                )
                rates[how].append(done.pairs)
    finally:
        await redis.config_set("appendfsync", "everysec")
        await redis.aclose()
    for how, seconds in found.items():
        print(
            f"  {how:<9} {spread(seconds)}   64 tasks: {statistics.median(rates[how]):,.0f} a second"
        )
    before, after = (1000 * statistics.median(found[how]) for how in found)
    print(f"  a pair waits {after - before:.2f} ms longer, x{after / before:.2f}")


async def _memory(redis: Redis) -> int:
    return int((await redis.info("memory"))["used_memory"])


async def _run(given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as temporary, a_redis(Path(temporary)) as server:
        if given.durability:
            await durability(server, given.pairs)
            return
        median = await latencies(server, given.pairs)
        await throughput(server, given.seconds)
        await tenants(server, given.pairs // 2)
        await growth(server, given.pairs // 2, given.entries)
    print(f"\nreserve and settle together over TCP: p50 {median:.3f} ms (wanted < {WANTED:g} ms)")


def main() -> None:
    """Print what a pair costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=2_000, help="timed one by one")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each look at pairs a second")
    parser.add_argument("--entries", type=int, default=1_000_000, help="of the longest ledger")
    parser.add_argument(
        "--durability", action="store_true", help="compare appendfsync settings only"
    )
    anyio.run(_run, parser.parse_args())


if __name__ == "__main__":
    main()
