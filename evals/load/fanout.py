"""Measures what the queue adds to one BriefContext job of 16 partitions, through Celery and in process.

The ideal is two rounds of calls: 16 extractions at once, then the reduce call. The index holds the sample notes; the
provider is a stub of fixed latency in another process. ``python -m evals.load.fanout``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.question.request import JobRequest
from orchestrator.service import open_service
from orchestrator.settings import Settings
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.corpus.sample import notes_file
from posology.llm.accounting import Account
from posology.published.jobs import JobEvent, JobOutput
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub
from posology.types import JobState

PARTITIONS = 16
MODEL = "openai:gpt-4o-mini"
QUESTION = "Does aspirin lower the risk of stroke in adults with hypertension?"


async def sample_index(place: Path) -> None:
    """Index the sample notes."""
    with notes_file() as notes:
        target = Target(place=str(place))
        await anyio.to_thread.run_sync(lambda: run_ingest([notes], Settings(), target))


@asynccontextmanager
async def a_stack(
    folder: Path,
    index: Path,
    stub: LoadStub,
    *,
    concurrency: int,
    environment: Mapping[str, str] = os.environ,
) -> AsyncIterator[JobStore]:
    """Redis and one worker process, ready for jobs."""
    options = StackOptions(
        environment=environment,
        folder=folder,
        concurrency=concurrency,
        api=False,
        index=str(index),
        overrides=provider(stub) | {"POSOLOGY_CONCURRENCY": str(concurrency)},
    )
    async with running_stack(options) as stack, open_store(stack.redis_url) as store:
        yield store


def provider(stub: LoadStub) -> dict[str, str]:
    """The variables that send calls to the stub."""
    return {"OPENAI_API_KEY": "stub", "OPENAI_BASE_URL": stub.openai_url}


def a_request(*, size: int = 1, k: int = PARTITIONS) -> JobRequest:
    """A BriefContext question, settled."""
    request = JobRequest(
        question=QUESTION, model=MODEL, k=k, strategy="briefcontext", partition_size=size
    )
    return request.settled(Settings())


def _stages(job: JobOutput, events: list[JobEvent]) -> dict[str, float]:
    """Seconds from one event of a job to the next that ends a stage."""
    at = {e.data.get("state"): e.at.timestamp() for e in events if e.type == "state"}
    spent = {a.call: a for a in job.spending.attempts}
    extracts = [a.started for a in spent.values() if a.stage == "extract"]
    ends = [a.started + a.latency for a in spent.values() if a.stage == "extract"]
    (reduce,) = (a for a in spent.values() if a.stage == "reduce")
    return {
        "submit to worker": at["running"] - at["queued"],
        "retrieve, decide, plan": at["extracting"] - at["running"],
        "fan-out: plan to last call sent": max(extracts) - at["extracting"],
        "extractions under way": max(ends) - max(extracts),
        "fan-in: last reply to reduce sent": reduce.started - max(ends),
        "reduce under way": reduce.latency,
        "reduce reply to result": at["succeeded"] - reduce.started - reduce.latency,
    }


async def _through_the_queue(store: JobStore, runs: int) -> tuple[list[float], dict[str, float]]:
    walls, stages = [], []
    for run in range(runs + 2):
        request = a_request()
        started = time.perf_counter()
        submitted = await store.submit(request)
        events = [event async for event in store.events(submitted.job)]
        wall = time.perf_counter() - started
        job = await store.get(submitted.job)
        if job.state is not JobState.SUCCEEDED or len(job.spending.attempts) != PARTITIONS + 1:
            raise SystemExit(f"the job is {job.state} with {len(job.spending.attempts)} calls")
        # the first ones open connections
        if run >= 2:
            walls.append(wall)
            stages.append(_stages(job, events))
    return walls, {name: statistics.median(s[name] for s in stages) for name in stages[0]}


async def _in_process(settings: Settings, index: Path, runs: int) -> list[float]:
    walls = []
    async with open_service(settings, str(index)) as service:
        request = a_request().to_request(settings)
        for run in range(runs + 2):
            account = Account()
            started = time.perf_counter()
            await service.ask(request, account)
            if run >= 2:
                walls.append(time.perf_counter() - started)
    return walls


async def _run(latency: float, runs: int) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        index = folder / "index"
        await sample_index(index)
        with LoadStub(Faults(latency=(latency, latency))) as stub:
            os.environ.update(provider(stub))
            settings = Settings.model_validate({"POSOLOGY_CONCURRENCY": str(PARTITIONS)})
            inside = await _in_process(settings, index, runs)
            async with a_stack(folder / "stack", index, stub, concurrency=PARTITIONS + 4) as store:
                queued, stages = await _through_the_queue(store, runs)
    ideal = 2 * latency
    print(
        f"{PARTITIONS} partitions, {latency:g} s a call, ideal {ideal:g} s, medians of {runs} runs"
    )
    for name, walls, limit in (("in process", inside, 1.05), ("through Celery", queued, 1.15)):
        ratio = statistics.median(walls) / ideal
        print(
            f"{name:<16}{statistics.median(walls):.3f} s  ×{ratio:.3f} of the ideal "
            f"(wanted ≤ {limit}), slowest ×{max(walls) / ideal:.3f}"
        )
    whole = statistics.median(queued)
    for name, seconds in stages.items():
        print(f"  {name:<36}{seconds * 1000:8.1f} ms  {seconds / whole:6.1%}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=1.0, help="seconds a call")
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    anyio.run(_run, given.latency, given.runs)


if __name__ == "__main__":
    main()
