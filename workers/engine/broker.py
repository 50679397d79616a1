"""The transport of messages: kombu's for Redis, whose worker survives a Redis that ends while it waits for a message."""

from __future__ import annotations

from kombu.transport import redis


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
    """Redis as a broker, with these channels."""

    Channel = Channel
