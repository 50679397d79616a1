"""Redis at rest, by worker processes and tenants: ``python -m evals.speed.rest [--processes 1 10 50] [--tenants 1 200]``.

Each row is a Redis of its own, tenants with an ended job, and the loops of worker processes, in one process: the sweeps,
the dispatch of jobs, the batch lane, webhooks and watches. Celery's own commands are not among them: a consumer's ``BRPOP`` a
second, and its heartbeat. Prints commands and milliseconds of Redis's processor time a second, and the commands made most.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import cast

import anyio
from pydantic import SecretStr

from evals.load.fanout import a_request
from evals.speed.counting import Done, count
from orchestrator.jobs.store import open_store
from orchestrator.service import Services
from orchestrator.settings import load_settings
from orchestrator.stack.redis_server import own_redis
from workers.process import Process

#: until every loop has begun, and for which commands are counted
SETTLE, SECONDS = 10.0, 30.0


async def _nothing(*_: object) -> None:
    return None


async def measured(url: str, processes: int, tenants: int) -> Done:
    """Count what Redis does for idle worker processes in :data:`SECONDS`.

    Args:
        url: of an empty Redis.
        processes: number of worker processes.
        tenants: number of tenants with records.
    """
    settings = load_settings().model_copy(update={"redis_url": SecretStr(url)})
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(url))
        for tenant in (f"tenant{i}" for i in range(tenants)):
            made = await store.submit(a_request(), tenant=tenant)
            await store.cancel(made.job, tenant=tenant)
        group = await stack.enter_async_context(anyio.create_task_group())
        for _ in range(processes):
            process = await stack.enter_async_context(Process(settings, lambda _: None))
            process.service = cast("Services", _nothing)
            group.start_soon(partial(process.run_maintenance, dispatches=True, calls=True))
        await anyio.sleep(SETTLE)
        done = await count(store.redis, lambda: anyio.sleep(SECONDS))
        group.cancel_scope.cancel()
    return done


async def resting(processes: int, tenants: int) -> Done:
    """The same, on a Redis of its own."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        async with own_redis(
            place / "redis",
            environment=os.environ,
            log=place / "log",
            hurry=anyio.Event(),
            seconds=30,
        ) as url:
            return await measured(url, processes, tenants)


def main() -> None:
    """Measure each pair and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 10, 50])
    parser.add_argument("--tenants", nargs="+", type=int, default=[1, 200])
    given = parser.parse_args()
    print("| processes | tenants | commands a second | ms of Redis a second | most |")
    print("| ---: | ---: | ---: | ---: | --- |")
    for processes in given.processes:
        for tenants in given.tenants:
            done = anyio.run(resting, processes, tenants)
            first = sorted(done.calls.items(), key=lambda item: -item[1])[:5]
            most = ", ".join(f"{name} {n / done.seconds:.1f}" for name, n in first)
            rates = f"{done.commands / done.seconds:.1f} | {done.milliseconds / done.seconds:.2f}"
            print(f"| {processes} | {tenants} | {rates} | {most} |", flush=True)


if __name__ == "__main__":
    main()
