"""State of a stack: readiness of workers and API, and unfinished jobs."""

from __future__ import annotations

from urllib.parse import urlsplit

import anyio
from redis.exceptions import RedisError

from orchestrator.jobs import metrics
from orchestrator.jobs.store import JobStore
from orchestrator.stack.child import Child
from orchestrator.stack.folder import StackInfo
from posology.errors import StoreUnavailable
from posology.store import keys
from posology.store.connection import connect
from posology.types import JobState
from posology.types.jobs import OVER

#: states of jobs that workers have begun
UNDER_WAY = frozenset(JobState) - {JobState.QUEUED} - OVER
#: seconds for Redis to answer when the stack stops
_SOON = 1.0


async def workers_announced(info: StackInfo, workers: tuple[Child, ...]) -> bool:
    """Return whether every worker has sent a heartbeat to Redis, which it does once it can answer.

    Heartbeats are matched by host and process id, so those of earlier processes do not count.
    """
    async with connect(info.redis_url, tries=0) as client:
        try:
            announced = set(await client.zrange(keys.WORKERS, 0, -1))
        except (RedisError, OSError):
            return False
    return all(
        worker.pid is not None and keys.worker(worker.pid) in announced for worker in workers
    )


async def unfinished_jobs(info: StackInfo) -> int | None:
    """Return the number of jobs that workers have begun; ``None``: Redis does not answer at once."""
    async with connect(info.redis_url, tries=0, seconds=_SOON) as client:
        store = JobStore(client, info.redis_url)
        try:
            states = (await metrics.read(store)).states
        except StoreUnavailable:
            return None
    return sum(states[state] for state in UNDER_WAY)


async def api_answers(info: StackInfo, servers: tuple[Child, ...]) -> bool:
    """Return whether the API accepts connections."""
    if info.api_url is None or any(server.pid is None for server in servers):
        return False
    place = urlsplit(info.api_url)
    try:
        stream = await anyio.connect_tcp(place.hostname or "", place.port or 0)
    except OSError:
        return False
    await stream.aclose()
    return True
