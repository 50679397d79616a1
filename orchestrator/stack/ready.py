"""Whether the parts of a stack serve."""

from __future__ import annotations

from urllib.parse import urlsplit

import anyio
from redis.exceptions import RedisError

from orchestrator.stack.child import Child
from orchestrator.stack.folder import StackInfo
from posology.store import keys
from posology.store.connection import connect


async def workers_announced(info: StackInfo, workers: tuple[Child, ...]) -> bool:
    """Whether every worker has told of itself in Redis, as it does once it can answer.

    By host and process id: what an earlier process left there does not count.
    """
    async with connect(info.redis_url, tries=0) as client:
        try:
            announced = set(await client.zrange(keys.WORKERS, 0, -1))
        except (RedisError, OSError):
            return False
    return all(
        worker.pid is not None and keys.worker(worker.pid) in announced for worker in workers
    )


async def api_answers(info: StackInfo, servers: tuple[Child, ...]) -> bool:
    """Whether the API accepts connections, which it does when it has started up."""
    if info.api_url is None or any(server.pid is None for server in servers):
        return False
    place = urlsplit(info.api_url)
    try:
        stream = await anyio.connect_tcp(place.hostname or "", place.port or 0)
    except OSError:
        return False
    await stream.aclose()
    return True
