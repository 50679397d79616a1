"""Runs Lua scripts: each changes or reads keys of one prefix in one step."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from posology.store.connection import translated
from posology.store.lua import lua


class _Script:
    """A script, which goes out as a whole where Redis does not know it.

    Loading it first is not enough: Redis may restart in between, and forget it.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    async def __call__(self, redis: Redis, *given: str | int, keys: int) -> Any:
        """Run it; the first of its arguments are keys."""
        try:
            return await redis.evalsha(self._digest, keys, *given)
        except NoScriptError:
            return await redis.eval(self._text, keys, *given)


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
        self._scripts: dict[str, _Script] = {}

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
            self._scripts[name] = _Script(self._source(name))
        now = 0 if self._clock is None else self._clock()
        with translated(self._url):
            return await self._scripts[name](self._redis, prefix, now, *arguments, keys=1)


async def read_together(redis: Redis, *names: str) -> tuple[dict[str, str], ...]:
    """Return hashes as they are at one instant, also of a Redis that is full; one that is missing is empty.

    Args:
        redis: the connection, which decodes replies.
        names: keys of the hashes, of one tenant.
    """
    script = _Script(lua("posology.store", "together"))
    found: list[list[str]] = await script(redis, *names, keys=len(names))
    return tuple(dict(zip(flat[::2], flat[1::2], strict=True)) for flat in found)
