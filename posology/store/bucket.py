"""Token buckets in Redis, which all processes share."""

from __future__ import annotations

from collections.abc import Callable

from redis.asyncio import Redis

from posology.store.lua import lua
from posology.store.scripts import Scripts

_MICRO = 1_000_000


class Bucket:
    """A token bucket.

    Args:
        redis: the connection.
        url: for messages.
        key: its key.
        seconds: until a token is there again.
        size: maximum tokens in it.
        clock: milliseconds; ``None``: the server's own.
    """

    def __init__(
        self,
        redis: Redis,
        url: str,
        *,
        key: str,
        seconds: float,
        size: int = 1,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self._run = Scripts(redis, url, lambda name: lua("posology.store", name), clock)
        self._key = key
        self._token = round(seconds * _MICRO)
        self._size = size

    async def take(self) -> float:
        """Take a token, and return the seconds until it may be used. It is not given back.

        Raises:
            StoreUnavailable: Redis is out of reach.
        """
        return float(await self._run("bucket", self._key, self._token, self._size, "wait")) / _MICRO

    async def try_take(self) -> float:
        """Take a token if there is one; return 0, or the seconds until there is.

        Raises:
            StoreUnavailable: Redis is out of reach.
        """
        return float(await self._run("bucket", self._key, self._token, self._size, "try")) / _MICRO
