"""Posology's side of :mod:`evals.peers`: a stack of this checkout answers questions from its queue.

``python -m evals.peers.side INDEX QUESTIONS SHAPE LATENCY WORKERS [ALONE [FAULTY]]`` prints one line of JSON. ALONE
questions are asked one after the other before all are; FAULTY is 1 for a stub with faults, 0 for one without.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from evals.load.fanout import MODEL, provider
from evals.peers.report import billed
from evals.peers.stub import answers, hesitates, usage
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
#: the router, and a stub that refuses to answer from fewer passages
LATE = "router, all needed"
SHAPES: Mapping[str, Mapping[str, Any]] = {
    "router": {},
    LATE: {},
    "same shape": {"strategy": "briefcontext", "partition_size": 1},
}
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """The arguments of the command."""

    index: str
    questions: Sequence[str]
    shape: str
    #: seconds of a call
    latency: float
    workers: int
    #: questions one after the other, before all at once
    alone: int
    faulty: bool


def processor(root: int) -> float:
    """Return the processor time of a process and of all below it so far, in seconds; ended children included."""
    found = 0.0
    for pid in _below(root):
        with contextlib.suppress(OSError, ValueError):
            found += sum(map(int, _stat(Path(f"/proc/{pid}"))[11:15])) / _TICK
    return found


def _below(root: int) -> set[int]:
    """Return the ids of a process and of all below it."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            parents[int(folder.name)] = int(_stat(folder)[1])
    below, found = {root}, 0
    while len(below) > found:
        found = len(below)
        below |= {pid for pid, parent in parents.items() if parent in below}
    return below


def _stat(folder: Path) -> list[str]:
    return (folder / "stat").read_text().rpartition(")")[2].split()


def memory(root: int) -> int:
    """Return the peak memory of a process and of all below it, in bytes; shared pages count in each."""
    found = 0
    for pid in _below(root):
        with contextlib.suppress(OSError, StopIteration):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            found += int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    return found * 1024


def faults(latency: float, *, faulty: bool) -> Faults:
    """Return what the stub does: each call takes as long, and with faults 2 % get a 429 and 1 % a 500."""
    shares = {"rate_limited": 0.02, "errors": 0.01} if faulty else {}
    return Faults(latency=(latency, latency), **shares)


async def _all(store: JobStore, requests: Sequence[JobRequest]) -> int:
    """Answer all at once, and return how many failed."""
    jobs = [(await store.submit(request)).job for request in requests]
    failed = 0
    for job in jobs:
        while not (state := await store.state(job)).over:  # noqa: ASYNC110 - other processes change it
            await anyio.sleep(0.1)
        if state is not JobState.SUCCEEDED:
            print(f"{job} is {state}: {(await store.get(job)).error}", file=sys.stderr)
            failed += 1
    return failed


async def _one_by_one(store: JobStore, requests: Sequence[JobRequest]) -> None:
    for request in requests:
        job = (await store.submit(request)).job
        async for _ in store.events(job):
            pass


async def _run(given: Given) -> None:
    settings = Settings()
    requests = [
        JobRequest(question=text, model=MODEL, k=PASSAGES, **SHAPES[given.shape]).settled(settings)
        for text in given.questions
    ]
    reply = hesitates if given.shape == LATE else answers
    with (
        tempfile.TemporaryDirectory() as folder,
        LoadStub(faults(given.latency, faulty=given.faulty), reply=reply, usage=usage) as stub,
    ):
        options = StackOptions(
            environment=os.environ,
            folder=Path(folder),
            concurrency=JOBS,
            workers=given.workers,
            api=False,
            index=given.index,
            overrides=provider(stub)
            | {"POSOLOGY_CONCURRENCY": str(CALLS), "POSOLOGY_EMBEDDER_THREADS": "1"},
        )
        async with running_stack(options) as stack, open_store(stack.redis_url) as store:
            # connections, models and caches
            await _all(store, requests[-WARM:])
            alone = time.time()
            await _one_by_one(store, requests[: given.alone])
            spent, began = processor(os.getpid()) - stub_time(stub), time.time()
            failed = await _all(store, requests)
            figures = {
                "seconds": time.time() - began,
                "processor": processor(os.getpid()) - stub_time(stub) - spent,
                "failed": failed,
                "memory": memory(os.getpid()) - memory(stub.pid),
            }
            if given.alone:
                figures["alone"] = began - alone
            entries = stub.ledger()
    print(json.dumps(figures | billed(entries, alone=alone, began=began)))


def stub_time(stub: LoadStub) -> float:
    """Return the stub's processor time, which no provider's customer pays."""
    return processor(stub.pid)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index")
    parser.add_argument("questions", type=lambda file: json.loads(Path(file).read_text()))
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("latency", type=float)
    parser.add_argument("workers", type=int)
    parser.add_argument("alone", type=int, nargs="?", default=0)
    parser.add_argument("faulty", type=lambda word: bool(int(word)), nargs="?", default=False)
    anyio.run(_run, Given(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
