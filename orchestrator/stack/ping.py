"""Whether a Redis answers."""

from __future__ import annotations

from enum import StrEnum
from urllib.parse import urlsplit

from posology.errors import ConfigurationError

#: seconds for one answer
_TIMEOUT = 5.0


class Ping(StrEnum):
    """What a Redis said."""

    READY = "ready"
    #: it reads its data
    LOADING = "loading"
    #: nobody answers
    SILENT = "silent"


async def ping(url: str) -> Ping:
    """Ask a Redis once.

    Raises:
        ConfigurationError: the URL cannot be read, or the password is wrong.
    """
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import AuthenticationError, BusyLoadingError, RedisError

    try:
        client = Redis.from_url(
            url,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=_TIMEOUT,
            socket_connect_timeout=_TIMEOUT,
        )
    except ValueError as error:
        raise ConfigurationError(f"the Redis URL cannot be read: {error}") from None
    try:
        await client.ping()
    except AuthenticationError:
        raise ConfigurationError(f"{address(url)} does not accept the password") from None
    except BusyLoadingError:
        return Ping.LOADING
    except (RedisError, OSError):
        return Ping.SILENT
    finally:
        await client.aclose()
    return Ping.READY


def address(url: str) -> str:
    """The URL without user and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
