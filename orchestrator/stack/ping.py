"""Whether a Redis answers."""

from __future__ import annotations

from enum import StrEnum

from redis.exceptions import AuthenticationError, BusyLoadingError, RedisError

from posology.errors import ConfigurationError
from posology.store.connection import connect, shown


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
    client = connect(url, tries=0)
    try:
        await client.ping()
    except AuthenticationError:
        raise ConfigurationError(f"{shown(url)} does not accept the password") from None
    except BusyLoadingError:
        return Ping.LOADING
    except (RedisError, OSError):
        return Ping.SILENT
    finally:
        await client.aclose()
    return Ping.READY
