"""Ping of a Redis server."""

from __future__ import annotations

from enum import StrEnum

from redis.exceptions import AuthenticationError, BusyLoadingError, RedisError

from posology.errors import ConfigurationError
from posology.store.connection import connect, shown


class Ping(StrEnum):
    """Reply of a Redis server."""

    READY = "ready"
    #: it is loading its data
    LOADING = "loading"
    #: no reply
    SILENT = "silent"


async def ping(url: str) -> Ping:
    """Ask a Redis once.

    Raises:
        ConfigurationError: the URL is invalid, or the password is wrong.
    """
    client = connect(url, tries=0)
    try:
        await client.ping()
    except AuthenticationError:
        raise ConfigurationError(
            f"{shown(url)} rejects the password. Check POSOLOGY_REDIS_URL."
        ) from None
    except BusyLoadingError:
        return Ping.LOADING
    except (RedisError, OSError):
        return Ping.SILENT
    finally:
        await client.aclose()
    return Ping.READY
