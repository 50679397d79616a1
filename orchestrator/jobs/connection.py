"""The connection to Redis: patient for a while, then a typed error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import BusyLoadingError, RedisError
from redis.exceptions import ConnectionError as RedisUnreachable
from redis.exceptions import TimeoutError as RedisTimeout

from posology.errors import ConfigurationError, StoreUnavailable

#: seconds between tries are at most this long
_CAP = 1.0
#: tries; with the waits above, about twenty seconds: longer than a restart takes, shorter than a lease
#: and a deadline would want to wait
_TRIES = 24


def connect(url: str, *, patience: int = _TRIES) -> Redis:
    """A client that reconnects, and repeats a command that found no server.

    Every script of ours may be repeated: what was done already is recognised.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``; Celery's ``redis+socket://`` is understood, too.
        patience: tries at a command before it fails.

    Raises:
        ConfigurationError: the address cannot be one.
    """
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
    except ValueError as error:
        raise ConfigurationError(f"POSOLOGY_REDIS_URL: {error}") from None


def shown(url: str) -> str:
    """The address without its password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


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
        text = str(error)
        # a full store, or one that is a replica now, may serve again; nothing was written
        if text.startswith(("OOM", "READONLY", "MISCONF", "LOADING", "CLUSTERDOWN")):
            address = shown(url)
            raise StoreUnavailable(
                f"Redis at {address} does not serve: {text}", address=address
            ) from error
        raise
