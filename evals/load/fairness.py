"""Measures whether one tenant's thousands of jobs slow down another tenant's ten.

A stack with one worker process over an index of a few sentences, with an encoder of random weights. The provider is a
stub in another process. One tenant (*many*) has thousands of jobs waiting, in four situations; another (*few*)
submits ten and waits for them. ``python -m evals.load.fairness``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import anyio.to_thread

from evals.load.fanout import MODEL, provider
from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.budget.ledger.redis import RedisLedger
from posology.budget.tenants import limits
from posology.store import keys
from posology.testing.models.encoder import save_tiny_encoder
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub
from posology.types import JobState, Limits, Opening, PromptId, Reservation, Scope, Stage

#: the stub's replies, seconds
LATENCY = (0.2, 0.5)
#: jobs of the tenant that is measured
TEN = 10
#: requests a minute of the tenant that is limited in them
RPM = 60
#: partitions of each of the jobs that are read in parts
PARTITIONS = 16
#: dollars
CAP = Decimal(1)
#: seconds for the other tenant's work to spread
SETTLE = 6.0
#: seconds for what it has under way to end
_REST = 3.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """What the other tenant does meanwhile."""

    name: str
    #: sets the stage, and returns the tenant
    start: Callable[[], Awaitable[str]]


@asynccontextmanager
async def a_stack(folder: Path, stub: LoadStub, threads: int) -> AsyncIterator[JobStore]:
    """Redis and one worker process over some notes, ready for jobs."""
    rows, index = folder / "rows.jsonl", folder / "index"
    texts = [
        f"Aspirin lowered the risk of stroke in group {n} of adults." for n in range(PARTITIONS)
    ]
    rows.write_text(
        "".join(json.dumps({"id": f"n:{n}", "text": text}) + "\n" for n, text in enumerate(texts)),
        encoding="utf-8",
    )
    encoder = str(save_tiny_encoder(folder / "encoder"))
    await anyio.to_thread.run_sync(
        lambda: run_ingest([rows], Settings(), Target(place=str(index), embedder=encoder))
    )
    options = StackOptions(
        environment=os.environ,
        folder=folder / "stack",
        concurrency=threads,
        api=False,
        index=str(index),
        overrides=provider(stub)
        | {"POSOLOGY_CONCURRENCY": str(4 * threads), "POSOLOGY_EMBEDDER": encoder},
    )
    async with running_stack(options) as stack, open_store(stack.redis_url) as store:
        yield store


def a_request(number: int, *, strategy: str = "direct") -> JobRequest:
    """Return a new question."""
    asked = JobRequest(
        question=f"Does aspirin lower the risk of stroke in adults of group {number}?",
        model=MODEL,
        k=PARTITIONS,
        strategy=strategy,
        partition_size=1 if strategy == "briefcontext" else None,
        deadline_seconds=3_600,
    )
    return asked.settled(Settings())


async def submit(
    store: JobStore, tenant: str, count: int, *, strategy: str = "direct"
) -> list[str]:
    """Submit jobs, some at a time."""
    jobs: list[str] = []
    numbers = iter(range(count))

    async def one() -> None:
        for number in numbers:
            request = a_request(number, strategy=strategy)
            jobs.append((await store.submit(request, tenant=tenant)).job)

    async with anyio.create_task_group() as group:
        for _ in range(min(count, 16)):
            group.start_soon(one)
    return jobs


async def makespan(store: JobStore) -> float:
    """Seconds from the first submission of ten jobs to the end of the last."""
    tenant = f"few-{uuid4().hex[:8]}"
    started = time.perf_counter()
    jobs = await submit(store, tenant, TEN)
    states: list[JobState] = []

    async def wait(job: str) -> None:
        states.append((await store.wait(job, tenant=tenant)).state)

    async with anyio.create_task_group() as group:
        for job in jobs:
            group.start_soon(wait, job)
    if set(states) != {JobState.SUCCEEDED}:
        raise SystemExit(f"the jobs ended as {sorted(states)}")
    return time.perf_counter() - started


async def limit(store: JobStore, tenant: str, allowed: Limits) -> None:
    """Give a tenant limits."""
    record = f"{keys.prefix(tenant)}tenant"
    fields: Any = limits.written(allowed)
    await store.redis.hset(record, mapping=fields)


async def hold(ledger: RedisLedger, amount: Decimal) -> None:
    """Reserve a tenant's money for a call that does not end while this runs."""
    opening = Opening(
        id=uuid4().hex, call=None, attempt=1, stage=Stage.ANSWER, model=MODEL, key="held",
        prompt=PromptId(name="answer", digest="0" * 16), started=time.time(), reserved=amount,
    )  # fmt: skip
    held = Reservation(opening=opening, call=1, job="run_held", ticket="held")
    await ledger.reserve(held)


async def stop(store: JobStore, tenant: str) -> None:
    """Let nothing more of a tenant begin, and what is under way end."""
    prefix = keys.prefix(tenant)
    await store.redis.delete(f"{prefix}waiting", f"{prefix}parked")
    await anyio.sleep(_REST)


def besides(store: JobStore, backlog: int) -> tuple[Beside, ...]:
    """The four ways, in this order: the same jobs wait in the first three."""

    async def plain() -> str:
        await submit(store, "many", backlog)
        return "many"

    async def starved() -> str:
        ledger = RedisLedger(store.redis, store.url, tenant="many", lease=3_600)
        (total,) = (b for b in await ledger.balances() if b.scope is Scope.TOTAL)
        # room for one call at a time or two, and soon for none
        cap = total.spent + total.reserved + CAP
        await limit(store, "many", Limits(total=cap))
        await hold(ledger, CAP - Decimal("0.002"))
        return "many"

    async def limited() -> str:
        await limit(store, "many", Limits(requests_per_minute=RPM))
        return "many"

    async def parted() -> str:
        await stop(store, "many")
        await submit(store, "parted", backlog // 10, strategy="briefcontext")
        return "parted"

    return (
        Beside(name=f"{backlog:,} jobs", start=plain),
        Beside(name=f"{backlog:,} jobs, starved of headroom", start=starved),
        Beside(name=f"{backlog:,} jobs, {RPM} requests a minute", start=limited),
        Beside(name=f"{backlog // 10:,} jobs of {PARTITIONS} partitions", start=parted),
    )


async def _run(backlog: int, runs: int, threads: int) -> None:
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary, LoadStub(Faults(latency=LATENCY)) as stub:
        async with a_stack(Path(temporary), stub, threads) as store:
            await makespan(store)
            alone = [await makespan(store) for _ in range(runs)]
            print(
                f"{TEN} jobs beside another tenant's, {threads} threads, stub of {LATENCY[0]:g} to "
                f"{LATENCY[1]:g} s, load {load:.1f} before; medians of {runs}"
            )
            print(f"  {'alone':<44}{statistics.median(alone):6.2f} s", flush=True)
            for beside in besides(store, backlog):
                tenant = await beside.start()
                await anyio.sleep(SETTLE)
                walls = [await makespan(store) for _ in range(runs)]
                left = await store.redis.llen(f"{keys.prefix(tenant)}waiting")
                ratio = statistics.median(walls) / statistics.median(alone)
                print(
                    f"  beside {beside.name:<37}{statistics.median(walls):6.2f} s  ×{ratio:.2f} "
                    f"(slowest {max(walls):.2f} s; {left:,} of the other's waited still)",
                    flush=True,
                )
            await stop(store, tenant)
            again = [await makespan(store) for _ in range(runs)]
            print(f"  {'alone again':<44}{statistics.median(again):6.2f} s", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backlog", type=int, default=10_000, help="jobs of the other tenant")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=8, help="of the worker")
    given = parser.parse_args()
    anyio.run(_run, given.backlog, given.runs, given.threads)


if __name__ == "__main__":
    main()
