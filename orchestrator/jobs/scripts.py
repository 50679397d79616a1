"""The Lua scripts: files under ``lua``, each with the same beginning."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any, cast

from redis.asyncio import Redis
from redis.commands.core import AsyncScript

from orchestrator.jobs.connection import translated
from posology.types.jobs import OVER, TRANSITIONS

#: upper bounds of the latency histogram, seconds
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)
#: models of a tenant that have figures of their own
MODELS = 200
#: stands for all others
OTHER = "other"


def _set(names: Iterable[str]) -> str:
    return "{" + ", ".join(f"{name} = true" for name in sorted(names)) + "}"


def _constants() -> str:
    """What Python and the scripts must agree on, as Lua; there is no second list to keep in step."""
    allowed = ", ".join(f"{old} = {_set(new)}" for old, new in TRANSITIONS.items())
    return (
        f"local ALLOWED = {{{allowed}}}\n"
        f"local OVER = {_set(OVER)}\n"
        f"local MODELS, OTHER = {MODELS}, '{OTHER}'\n"
        f"local BUCKETS = {{{', '.join(map(str, BUCKETS))}}}\n"
    )


@cache
def source(name: str) -> str:
    """The whole text of a script."""
    folder = files("orchestrator.jobs") / "lua"
    library = (folder / "_lib.lua").read_text(encoding="utf-8")
    return _constants() + library + (folder / f"{name}.lua").read_text(encoding="utf-8")


class Scripts:
    """Runs scripts on one connection.

    Args:
        redis: the connection.
        url: for messages.
        clock: milliseconds; ``None``: the server's own, which all workers share.
    """

    def __init__(self, redis: Redis, url: str, clock: Callable[[], int] | None = None) -> None:
        self._redis = redis
        self._url = url
        self._clock = clock
        self._scripts: dict[str, AsyncScript] = {}

    async def __call__(self, name: str, prefix: str, *arguments: str | int) -> Any:
        """Run a script for one tenant.

        Args:
            name: of the file, without suffix.
            prefix: of the tenant's keys.
            arguments: after the time, which every script gets first.

        Raises:
            StoreUnavailable: Redis is out of reach.
        """
        if name not in self._scripts:
            self._scripts[name] = self._redis.register_script(source(name))
        now = 0 if self._clock is None else self._clock()
        with translated(self._url):
            running = self._scripts[name](keys=[prefix], args=[now, *arguments])
            return await cast("Awaitable[Any]", running)
