"""The transport of messages: kombu's for Redis, for workers that outlive a Redis that ends or is full."""

from __future__ import annotations

from kombu.transport import TRANSPORT_ALIASES, redis
from redis.exceptions import OutOfMemoryError, ReadOnlyError


class Channel(redis.Channel):  # type: ignore[misc]  # kombu ships no types
    """A channel that can be closed twice.

    Kombu (5.7) closes a channel first when the connection is lost. If the channel was reading then, that fails before its
    unacknowledged messages are put back, and is ignored. The second time, the connection has forgotten its address:
    putting messages back raises ``AttributeError``, which Celery takes for the end of the worker. The units of these
    messages are found by their leases.
    """

    def close(self) -> None:
        """Close the channel; messages are put back as long as there is an address to put them to."""
        if self.connection is not None and self.connection.client is None:
            self.do_restore = False
        super().close()


class Transport(redis.Transport):  # type: ignore[misc]  # as above
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
