"""Whether the parts of a stack serve."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import anyio
from redis.exceptions import RedisError

from orchestrator.jobs.connection import connect
from orchestrator.stack.child import Child
from orchestrator.stack.folder import StackInfo

#: a Redis hash: a worker that takes jobs is a field, its node name, with its process id
WORKERS_KEY = "posology:workers"


async def workers_announced(info: StackInfo, workers: tuple[Child, ...]) -> bool:
    """Whether every worker has announced itself in Redis.

    By name and process id: what an earlier process of that name left there does not count.
    """
    host = socket.gethostname()
    async with connect(info.redis_url, patience=0) as client:
        try:
            announced = await client.hgetall(WORKERS_KEY)
        except (RedisError, OSError):
            return False
    return all(
        worker.pid is not None and announced.get(f"{worker.command.name}@{host}") == str(worker.pid)
        for worker in workers
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
