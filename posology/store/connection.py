"""The connection to Redis: retries for a while, then a typed error."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import SplitResult, urlsplit

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import (
    BusyLoadingError,
    ClusterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisUnreachable
from redis.exceptions import TimeoutError as RedisTimeout

from posology.errors import ConfigurationError, StoreUnavailable

#: Maximum seconds between two tries, for workers, and for a person or a client of the API. All waits together end before
#: the command does, so that a Redis that refuses connections does not look like one that hangs.
_CAP, _SHORT_CAP = 1.0, 0.5
#: tries of a command; with the waits about twenty seconds: longer than a restart of Redis, shorter than
#: a lease or a deadline
TRIES = 24
#: tries of a command for a person or a client of the API: a few seconds
FEW_TRIES = 8
#: Maximum seconds of a command with all its tries, for workers, and for a person or a client of the API. A server that
#: hangs accepts connections and never replies, so each try alone would wait for its own timeout.
LONG, SHORT = 25.0, 3.0
#: Errors of a store that is full, busy or a replica now: nothing was written, and it may recover. The client
#: removes the code from the text of errors with a class of their own; a script prefixes the text.
_LATER = (OutOfMemoryError, ReadOnlyError, ClusterDownError, TryAgainError)
_SAYS_LATER = re.compile(
    r"(?:^|-|\s)(?:OOM|READONLY|MISCONF|LOADING|CLUSTERDOWN|NOREPLICAS|BUSY|MASTERDOWN|TRYAGAIN)\b"
)


class _BoundedRedis(Redis):
    """A client whose commands and pipelines end within a number of seconds, tries included."""

    seconds = LONG

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        async with asyncio.timeout(self.seconds):
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]  # redis-py's own

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:  # noqa: FBT001, FBT002 - redis-py's signature
        pipe = _BoundedPipeline(
            self.connection_pool, self.response_callbacks, transaction, shard_hint
        )
        pipe.seconds = self.seconds
        return pipe


class _BoundedPipeline(Pipeline):
    seconds = LONG

    async def execute(self, raise_on_error: bool = True) -> list[Any]:  # noqa: FBT001, FBT002 - redis-py's signature
        async with asyncio.timeout(self.seconds):
            return await super().execute(raise_on_error)


def connect(url: str, *, tries: int = TRIES, seconds: float | None = None) -> Redis:
    """Return a client that reconnects, and repeats a command that found no server.

    Every script of ours is idempotent.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``; Celery's ``redis+socket://`` works as well.
        tries: tries of a command before it fails.
        seconds: maximum seconds of a command with all its tries; ``None``: :data:`SHORT` for fewer tries than
            :data:`TRIES`, else :data:`LONG`.

    Raises:
        ConfigurationError: the address is malformed.
    """
    if _readable(url) is None:
        raise _no_address()
    cap = _SHORT_CAP if tries < TRIES else _CAP
    try:
        client: Any = _BoundedRedis.from_url(
            url.replace("redis+socket://", "unix://", 1),
            decode_responses=True,
            retry=Retry(ExponentialWithJitterBackoff(base=0.02, cap=cap), tries),
            # a replica that was the primary: the next connection may find the new one
            retry_on_error=[RedisUnreachable, RedisTimeout, BusyLoadingError, ReadOnlyError],
            socket_timeout=10.0,
            socket_connect_timeout=5.0,
            health_check_interval=0,
            max_connections=512,
        )
    except ValueError:
        # its message may contain a part of the password
        raise _no_address() from None
    assert isinstance(client, _BoundedRedis)
    client.seconds = (SHORT if tries < TRIES else LONG) if seconds is None else seconds
    return client


def shown(url: str) -> str:
    """Return an address without its password; nothing of it if the end of the password is in doubt."""
    parts = _readable(url)
    if parts is None or not (parts.hostname or parts.scheme in ("unix", "redis+socket")):
        return "an address that cannot be read"
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _no_address() -> ConfigurationError:
    return ConfigurationError(
        "POSOLOGY_REDIS_URL is not a Redis address: use redis://:PASSWORD@HOST:6379/0, and write / # ? @ "
        "in the password as %2F %23 %3F %40"
    )


def _readable(url: str) -> SplitResult | None:
    """Return the parts of an address; ``None``: a part of the password may be taken for another part."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises
    except ValueError:
        return None
    # an unescaped character of the password has ended the host part too early
    return None if "@" in f"{parts.path}{parts.query}{parts.fragment}" else parts


async def is_first(redis: Redis, url: str, key: str, seconds: float) -> bool:
    """Return whether no process has asked this for a key for a while; from now on this one has.

    A step that one process is to do for all is so done by one, or by two after one was stopped.

    Args:
        redis: the connection.
        url: of the server.
        key: present for that while.
        seconds: length of that while.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    period = max(1, round(seconds * 1000))
    with translated(url):
        if await redis.set(key, 1, nx=True, px=period):
            return True
        # from before the clock of Redis was put back, it would stand until then
        if await redis.pttl(key) > period:
            await redis.delete(key)
        return False


async def evicts(redis: Redis) -> str | None:
    """Return the policy by which a full Redis evicts keys; ``None``: it refuses writes instead."""
    info = await redis.info("memory")
    policy = str(info.get("maxmemory_policy", "noeviction"))
    return None if policy == "noeviction" or not int(info.get("maxmemory", 0)) else policy


def unanswered(error: StoreUnavailable) -> bool:
    """Return whether Redis took a command and did not answer: it may have been carried out, or will be."""
    return isinstance(error.__cause__, RedisTimeout | TimeoutError)


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Translate Redis's errors to ours.

    Raises:
        StoreUnavailable: Redis is unreachable, or cannot serve now.
    """
    try:
        yield
    except (RedisTimeout, TimeoutError) as error:
        # nothing says whether the command was carried out
        address = shown(url)
        raise StoreUnavailable(
            f"Redis at {address} does not answer ({type(error).__name__}): it hangs or is out of reach; restart "
            "it, or wait",
            address=address,
        ) from error
    except (RedisUnreachable, OSError) as error:
        address = shown(url)
        raise StoreUnavailable(
            f"Redis at {address} is unreachable ({type(error).__name__}): start it, or run "
            "`posology up`",
            address=address,
        ) from error
    except RedisError as error:
        if isinstance(error, _LATER) or _SAYS_LATER.search(str(error)):
            address = shown(url)
            raise StoreUnavailable(
                f"Redis at {address} cannot serve now: {error}", address=address
            ) from error
        raise
