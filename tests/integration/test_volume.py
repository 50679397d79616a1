"""The measurement of what one Redis carries, at tiny sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from evals.load.pages import fill
from evals.load.volume.__main__ import main
from orchestrator.jobs.store import JobStore
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from posology.store import keys


@pytest.mark.anyio
async def test_jobs_written_in_bulk_are_recorded_as_submitted_ones(
    redis: Redis, redis_url: str, tenant: str
) -> None:
    # as long, so that keys are
    store, other = JobStore(redis, redis_url), f"u{tenant[1:]}"
    await fill(store, tenant, 4, "Does it help?")
    asked = JobRequest(
        question="Does it help?", model="offline:extractive", deadline_seconds=900.0
    ).settled(Settings())
    for _ in range(4):
        await store.submit(asked, tenant=other)
    (own, parts), (others, their) = await _recorded(redis, tenant), await _recorded(redis, other)
    # an allocator may give one record some bytes more
    assert own.pop("stored") == pytest.approx(others.pop("stored"), rel=0.05)
    assert (own, parts) == (others, their)


async def _recorded(redis: Redis, tenant: str) -> tuple[dict[str, int], list[str]]:
    """Return the sizes of a tenant's keys, and the parts that its jobs have."""
    prefix, sizes, parts = keys.prefix(tenant), dict[str, int](), list[str]()
    run: dict[str, Any] = {
        "zset": redis.zcard,
        "list": redis.llen,
        "hash": redis.hlen,
        "stream": redis.xlen,
        "string": redis.get,
    }
    async for name in redis.scan_iter(f"{prefix}*"):
        size = int(await run[str(await redis.type(name))](name))
        if name.startswith(f"{prefix}job:"):
            parts.append(f"{name.removeprefix(f'{prefix}job:').partition(':')[2]} {size}")
        else:
            sizes[name.removeprefix(prefix)] = size
    return sizes, sorted(parts)


def test_every_operation_is_measured_and_an_interrupted_run_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--work", str(tmp_path), "--tenants", "2", "--processes", "--jobs", "40", "--entries"]
    main([*words, "300"])
    main([*words, "300", "700"])
    printed = capsys.readouterr().out
    assert printed.count("queued 40: ") == printed.count("archived 300: ") == 1
    table = printed.rpartition("Operations")[2]
    assert "| take and claim | 3" in table
    assert "| entries of the largest tenant | 60 | 140 |" in table
