"""Health check: ``python -m workers.health`` checks that a worker of this host sends heartbeats.

It reads one key and imports neither Celery nor models, so that a check every few seconds costs little.
"""

from __future__ import annotations

import socket
import sys

import anyio

from orchestrator.settings import load_settings
from posology.errors import PosologyError
from posology.store import keys
from posology.store.connection import connect, translated

#: leases without a heartbeat after which a worker is considered dead
_SILENT = 3


async def healthy(url: str, *, within: float) -> bool:
    """Return whether any worker of this host has sent a heartbeat lately.

    Args:
        url: address of Redis.
        within: most seconds since the heartbeat.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    with translated(url):
        async with connect(url, tries=0) as redis:
            seconds, _ = await redis.time()
            since = (int(seconds) - within) * 1000
            found = await redis.zrangebyscore(keys.WORKERS, since, "+inf")
    return any(str(name).startswith(f"{socket.gethostname()}:") for name in found)


def main() -> None:
    """Exit with 0 if there is one."""
    try:
        settings = load_settings()
        ok = anyio.run(lambda: healthy(settings.redis, within=_SILENT * settings.lease))
    except PosologyError as error:
        sys.exit(str(error))
    if not ok:
        sys.exit(f"no heartbeat of a worker on {socket.gethostname()}: check that it runs")


if __name__ == "__main__":
    main()
