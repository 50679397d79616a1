"""One side of :mod:`evals.throughput` with ``--questions``: a stack of this checkout answers questions from its queue.

``python -m evals.throughput_side INDEX QUESTIONS SHAPE LATENCY WORKERS`` prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from evals.fanout import MODEL, provider
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub
from posology.types import JobState

#: jobs at once in each worker, and calls at once: more than the cores can keep busy
JOBS, CALLS = 64, 512
#: questions before the clock starts
WARM = 16
#: passages of a question, and the request of each shape
PASSAGES = 8
SHAPES: Mapping[str, Mapping[str, Any]] = {
    "router": {},
    "same shape": {"strategy": "briefcontext", "partition_size": 1},
}
_TICK = os.sysconf("SC_CLK_TCK")


def processor(root: int) -> float:
    """Return the processor time of a process and of all below it so far, in seconds; ended children included."""
    times: dict[int, tuple[int, float]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        times[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15])) / _TICK
    below, found = {root}, 0
    while len(below) > found:
        found = len(below)
        below |= {pid for pid, (parent, _) in times.items() if parent in below}
    return sum(times[pid][1] for pid in below if pid in times)


async def _all(store: JobStore, questions: list[str], shape: Mapping[str, Any]) -> None:
    settings = Settings()
    requests = [
        JobRequest(question=text, model=MODEL, k=PASSAGES, **shape).settled(settings)
        for text in questions
    ]
    jobs = [(await store.submit(request)).job for request in requests]
    for job in jobs:
        while not (state := await store.state(job)).over:  # noqa: ASYNC110 - other processes change it
            await anyio.sleep(0.1)
        if state is not JobState.SUCCEEDED:
            raise SystemExit(f"{job} is {state}: {(await store.get(job)).error}")


async def _run(index: str, questions: list[str], shape: str, latency: float, workers: int) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        LoadStub(Faults(latency=(latency, latency))) as stub,
    ):
        options = StackOptions(
            environment=os.environ,
            folder=Path(folder),
            concurrency=JOBS,
            workers=workers,
            api=False,
            index=index,
            overrides=provider(stub)
            | {"POSOLOGY_CONCURRENCY": str(CALLS), "POSOLOGY_EMBEDDER_THREADS": "1"},
        )
        async with running_stack(options) as stack, open_store(stack.redis_url) as store:
            # connections, models and caches
            await _all(store, questions[-WARM:], SHAPES[shape])
            stub.reset()
            spent, began = processor(os.getpid()) - stub_time(stub), time.perf_counter()
            await _all(store, questions, SHAPES[shape])
            seconds = time.perf_counter() - began
            spent = processor(os.getpid()) - stub_time(stub) - spent
            entries = stub.ledger()
    usage = [entry["usage"] for entry in entries if entry["usage"]]
    figures = {
        "seconds": seconds,
        "processor": spent,
        "calls": len(entries),
        "input": sum(one["input"] for one in usage),
        "output": sum(one["output"] for one in usage),
    }
    print(json.dumps(figures))


def stub_time(stub: LoadStub) -> float:
    """Return the stub's processor time, which no provider's customer pays."""
    return processor(stub.pid)


def main() -> None:
    """Measure and print."""
    index, file, shape, latency, workers = sys.argv[1:]
    questions = json.loads(Path(file).read_text(encoding="utf-8"))
    anyio.run(_run, index, questions, shape, float(latency), int(workers))


if __name__ == "__main__":
    main()
