"""Runs Lua scripts: each changes or reads keys of one prefix in one step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from redis.asyncio import Redis
from redis.commands.core import AsyncScript

from posology.store.connection import translated
from posology.store.lua import lua


class Scripts:
    """Runs scripts on one connection.

    Args:
        redis: the connection.
        url: for messages.
        source: the whole text of a script, by its name.
        clock: milliseconds; ``None``: the server's own, which all workers share.
    """

    def __init__(
        self,
        redis: Redis,
        url: str,
        source: Callable[[str], str],
        clock: Callable[[], int] | None = None,
    ) -> None:
        self._redis = redis
        self._url = url
        self._source = source
        self._clock = clock
        self._scripts: dict[str, AsyncScript] = {}

    async def __call__(self, name: str, prefix: str, *arguments: str | int) -> Any:
        """Run a script for one tenant.

        Args:
            name: of the script.
            prefix: of the tenant's keys.
            arguments: after the time, which every script gets first.

        Raises:
            StoreUnavailable: Redis is out of reach.
        """
        if name not in self._scripts:
            self._scripts[name] = self._redis.register_script(self._source(name))
        now = 0 if self._clock is None else self._clock()
        with translated(self._url):
            running = self._scripts[name](keys=[prefix], args=[now, *arguments])
            return await cast("Awaitable[Any]", running)


async def read_together(redis: Redis, *names: str) -> tuple[dict[str, str], ...]:
    """Return hashes as they are at one instant, also of a Redis that is full; one that is missing is empty.

    Args:
        redis: the connection, which decodes replies.
        names: keys of the hashes, of one tenant.
    """
    script = redis.register_script(lua("posology.store", "together"))
    found = await cast("Awaitable[list[list[str]]]", script(keys=names))
    return tuple(dict(zip(flat[::2], flat[1::2], strict=True)) for flat in found)
