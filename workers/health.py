"""Whether a worker of this host tells of itself: ``python -m workers.health`` for health checks.

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

#: leases after which a silent worker counts as lost
_SILENT = 3


async def healthy(url: str, *, within: float) -> bool:
    """Whether any worker of this host has told of itself lately.

    Args:
        url: of Redis.
        within: seconds.

    Raises:
        StoreUnavailable: Redis is out of reach.
    """
    with translated(url):
        async with connect(url, tries=0) as redis:
            seconds, _ = await redis.time()
            since = (int(seconds) - within) * 1000
            found = await redis.zrangebyscore(keys.WORKERS, since, "+inf")
    return any(str(name).startswith(f"{socket.gethostname()}:") for name in found)


def main() -> None:
    """The exit status is 0 when there is one."""
    try:
        settings = load_settings()
        ok = anyio.run(lambda: healthy(settings.redis, within=_SILENT * settings.lease))
    except PosologyError as error:
        sys.exit(str(error))
    if not ok:
        sys.exit("no worker of this host has told of itself lately")


if __name__ == "__main__":
    main()
