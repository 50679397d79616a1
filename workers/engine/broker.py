"""The transport of messages: kombu's for Redis, for workers that outlive a Redis that ends or is full."""

from __future__ import annotations

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis
from redis.exceptions import ConnectionError, OutOfMemoryError, ReadOnlyError  # noqa: A004 - Redis's own


class Channel(redis.Channel):
    """A channel of a connection that may be gone.

    When a connection is lost, kombu (5.7) forgets its address, and then still puts messages back and acknowledges late
    ones by it. The ``AttributeError`` of that ended the worker; an error of the connection does not. The units of these
    messages are found by their leases.

    One client serves every command of a connection pool: kombu makes one for each message that it notes or acknowledges.
    """

    _client: Any = None

    def _connparams(self, asynchronous: bool = False) -> Any:  # noqa: FBT001, FBT002 - kombu's own form
        if self.connection is None or self.connection.client is None:
            raise ConnectionError("the connection to the broker was closed")
        return super()._connparams(asynchronous)  # type: ignore[no-untyped-call]

    def _create_client(self, asynchronous: bool = False) -> Any:  # noqa: FBT001, FBT002 - kombu's own form
        # those that wait for messages have a connection of their own
        if asynchronous:
            return super()._create_client(asynchronous)  # type: ignore[no-untyped-call]
        client = self._client
        if client is None or client.connection_pool is not self.pool:
            client = self._client = super()._create_client()  # type: ignore[no-untyped-call]
        return client


class Transport(redis.Transport):
    """Redis as a broker, with these channels.

    A Redis that is full, or a replica for now, is no end of a worker: Celery connects again, after a growing pause.
    """

    Channel = Channel
    connection_errors = (*redis.Transport.connection_errors, OutOfMemoryError, ReadOnlyError)


def install() -> None:
    """Use this transport for addresses of Redis in this process."""
    for scheme in ("redis", "rediss"):
        # not the setting broker_transport, whose value would stand in every line about the connection
        TRANSPORT_ALIASES[scheme] = f"{__name__}:Transport"
