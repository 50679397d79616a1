"""Measures model calls a second of one worker process, and the CPU time of each.

BriefContext jobs of 48 partitions (49 calls each) go through Redis and one Celery worker on its thread pool, against
a stub provider of 0.2 s in another process. Many partitions a job keep the share of retrieval small; it costs tens of
milliseconds a job. ``python -m evals.load.throughput``. Questions a second, beside other libraries: :mod:`evals.peers`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio

from evals.load.fanout import a_request, a_stack, sample_index
from evals.speed.counting import count
from orchestrator.jobs.store import JobStore
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub
from posology.types import JobState

LATENCY = 0.2
PARTITIONS = 48


def cpu_seconds() -> Mapping[int, tuple[str, float]]:
    """What each of our processes on this machine is, and its CPU time so far."""
    found: dict[int, tuple[str, float]] = {}
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        name = next(
            (kind for kind, mark in _KINDS.items() if any(mark in word for word in words)), None
        )
        if name is not None:
            ticks = int(fields[11]) + int(fields[12])
            found[int(folder.name)] = name, ticks / os.sysconf("SC_CLK_TCK")
    return found


def spent(
    before: Mapping[int, tuple[str, float]], after: Mapping[int, tuple[str, float]]
) -> Mapping[str, float]:
    """CPU seconds by kind, of the processes that were there all the time."""
    found: dict[str, float] = {}
    for pid in before.keys() & after.keys():
        kind, seconds = after[pid]
        found[kind] = found.get(kind, 0.0) + seconds - before[pid][1]
    return found


_KINDS = {
    "worker": b"workers.app",
    "stub": b"posology.testing.provider.serve",
}


async def _measure(store: JobStore, stub: LoadStub, jobs: int) -> None:
    for _ in range(2):
        # connections, models
        await over(store, [(await store.submit(a_request(k=PARTITIONS))).job])
    stub.reset()
    before, own = cpu_seconds(), time.process_time()
    request = a_request(k=PARTITIONS)

    async def answered() -> None:
        await over(store, [(await store.submit(request)).job for _ in range(jobs)])

    done = await count(store.redis, answered)
    seconds, after = done.seconds, cpu_seconds()
    calls = stub.stats()
    served = jobs * (PARTITIONS + 1)
    print(f"{served} calls in {seconds:.1f} s: {served / seconds:.0f} calls/s (wanted ≥ 150)")
    print(f"at the stub: at most {calls['peak_in_flight']} calls at once, of {LATENCY:g} s each")
    print(f"  {'bench':<8}{(time.process_time() - own) / seconds:5.2f} cores")
    # by its own word: other programs have a Redis, too
    cores = {**spent(before, after), "redis": done.milliseconds / 1000}
    for kind, cpu in sorted(cores.items()):
        print(f"  {kind:<8}{cpu / seconds:5.2f} cores  {cpu / served * 1000:6.2f} ms of CPU a call")
    print(f"  {done.commands / served:.0f} commands of Redis a call")


async def over(store: JobStore, jobs: Sequence[str]) -> None:
    """Wait for all, by looks that cost next to nothing beside the work."""
    for job in jobs:
        while not (state := await store.state(job)).over:  # noqa: ASYNC110 - other processes change it
            await anyio.sleep(0.1)
        if state is not JobState.SUCCEEDED:
            raise SystemExit(f"{job} is {state}: {(await store.get(job)).error}")


async def _run(jobs: int, concurrency: int) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        index = folder / "index"
        await sample_index(index)
        with LoadStub(Faults(latency=(LATENCY, LATENCY))) as stub:
            async with a_stack(folder / "stack", index, stub, concurrency=concurrency) as store:
                await _measure(store, stub, jobs)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument(
        "--concurrency", type=int, default=48, help="threads of the worker, and calls at once"
    )
    given = parser.parse_args()
    anyio.run(_run, given.jobs, given.concurrency)


if __name__ == "__main__":
    main()
