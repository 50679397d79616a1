"""The connection to Redis: patient for a while, then a typed error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import SplitResult, urlsplit

from redis.asyncio import Redis
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

#: seconds between tries are at most this long
_CAP = 1.0
#: tries; with the waits above, about twenty seconds: longer than a restart takes, shorter than a lease
#: and a deadline would want to wait
TRIES = 24
#: A full store, one that is a replica now, or one that is busy may serve again; nothing was written. The
#: client takes the code off the text of those that it has a class for; a script puts words before it.
_LATER = (OutOfMemoryError, ReadOnlyError, ClusterDownError, TryAgainError)
_SAYS_LATER = re.compile(
    r"(?:^|-|\s)(?:OOM|READONLY|MISCONF|LOADING|CLUSTERDOWN|NOREPLICAS|BUSY|MASTERDOWN|TRYAGAIN)\b"
)


def connect(url: str, *, patience: int = TRIES) -> Redis:
    """A client that reconnects, and repeats a command that found no server.

    Every script of ours may be repeated: what was done already is recognised.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``; Celery's ``redis+socket://`` is understood, too.
        patience: tries at a command before it fails.

    Raises:
        ConfigurationError: the address cannot be one.
    """
    if _readable(url) is None:
        raise _no_address()
    try:
        return Redis.from_url(
            url.replace("redis+socket://", "unix://", 1),
            decode_responses=True,
            retry=Retry(ExponentialWithJitterBackoff(base=0.02, cap=_CAP), patience),
            retry_on_error=[RedisUnreachable, RedisTimeout, BusyLoadingError],
            socket_timeout=10.0,
            socket_connect_timeout=5.0,
            health_check_interval=0,
            max_connections=512,
        )
    except ValueError:
        # what it says may be a piece of the password
        raise _no_address() from None


def shown(url: str) -> str:
    """The address without its password: nothing of one in which the password's end is in doubt."""
    parts = _readable(url)
    if parts is None or not (parts.hostname or parts.scheme in ("unix", "redis+socket")):
        return "an address that cannot be read"
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _no_address() -> ConfigurationError:
    return ConfigurationError(
        "POSOLOGY_REDIS_URL is no Redis address, such as redis://:PASSWORD@HOST:6379/0: "
        "write / # ? @ in the password as %2F %23 %3F %40"
    )


def _readable(url: str) -> SplitResult | None:
    """The parts of an address; ``None`` where a piece of the password may be taken for another part."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises
    except ValueError:
        return None
    # a sign that belongs into the password has ended the host before its time
    return None if "@" in f"{parts.path}{parts.query}{parts.fragment}" else parts


async def evicts(redis: Redis) -> str | None:
    """The policy by which a full Redis would throw jobs away; ``None``: it refuses instead."""
    info = await redis.info("memory")
    policy = str(info.get("maxmemory_policy", "noeviction"))
    return None if policy == "noeviction" or not int(info.get("maxmemory", 0)) else policy


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Redis's errors as ours.

    Raises:
        StoreUnavailable: there is no Redis, or it cannot serve now.
    """
    try:
        yield
    except (RedisUnreachable, RedisTimeout, OSError) as error:
        address = shown(url)
        raise StoreUnavailable(
            f"Redis at {address} is out of reach ({type(error).__name__}): start it, or run "
            "`posology up`",
            address=address,
        ) from error
    except RedisError as error:
        if isinstance(error, _LATER) or _SAYS_LATER.search(str(error)):
            address = shown(url)
            raise StoreUnavailable(
                f"Redis at {address} does not serve: {error}", address=address
            ) from error
        raise
