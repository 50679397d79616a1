"""Redis at rest, by worker processes and tenants: ``python -m evals.speed.rest [--processes 1 10 50] [--tenants 1 200]``.

Each row is a Redis of its own, tenants with an ended job, and the loops of worker processes, in one process: the sweeps,
the dispatch of jobs, the batch lane, webhooks and watches. Celery's own commands are not among them: a consumer's ``BRPOP`` a
second, and its heartbeat. Prints commands and milliseconds a second, and the commands made most, by what Redis counts.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
from pydantic import SecretStr

from evals.load.fanout import a_request
from orchestrator.jobs.store import open_store
from orchestrator.service import Services
from orchestrator.settings import load_settings
from orchestrator.stack.redis_server import own_redis
from workers.process import Process

#: until every loop has begun, and for which commands are counted
SETTLE, SECONDS = 10.0, 30.0


async def _nothing(*_: object) -> None:
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rest:
    """What Redis does while there is nothing to do."""

    commands: float
    #: milliseconds of Redis a second, scripts included
    milliseconds: float
    most: dict[str, float]


async def measured(url: str, processes: int, tenants: int) -> Rest:
    """Count the commands of idle worker processes.

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
        await store.redis.config_resetstat()
        await anyio.sleep(SECONDS)
        found: dict[str, Any] = await store.redis.info("commandstats")
        group.cancel_scope.cancel()
    by_name = {name.removeprefix("cmdstat_"): row for name, row in found.items()}
    by_name.pop("config|resetstat", None)
    most = sorted(by_name, key=lambda name: -by_name[name]["calls"])[:5]
    return Rest(
        commands=sum(row["calls"] for row in by_name.values()) / SECONDS,
        milliseconds=sum(row["usec"] for row in by_name.values()) / 1000 / SECONDS,
        most={name: by_name[name]["calls"] / SECONDS for name in most},
    )


async def _row(processes: int, tenants: int) -> Rest:
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
            rest = anyio.run(_row, processes, tenants)
            most = ", ".join(f"{name} {rate:.1f}" for name, rate in rest.most.items())
            print(
                f"| {processes} | {tenants} | {rest.commands:.1f} | {rest.milliseconds:.2f} | {most} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
