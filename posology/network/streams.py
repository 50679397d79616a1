"""Connections whose idleness is cheap to check.

A pool checks every idle connection when a request begins and when one ends: whether its server has closed it. httpcore looks
up the socket each time, which takes most of that check. With hundreds of idle connections that is a tenth of a call's processor
time.
"""

from __future__ import annotations

import select
from typing import Any

import httpx2


def check_quickly(client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """Have the pools of a new client open connections that remember their sockets; return the client."""
    # there is no public way, and a test watches it
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001
        pool = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = _Backend(pool._network_backend)  # noqa: SLF001
    return client


class _Backend:
    """Opens connections, as an ``AsyncNetworkBackend`` of httpcore."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def connect_tcp(self, *args: Any, **options: Any) -> _Stream:
        return _Stream(await self._inner.connect_tcp(*args, **options))

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _Stream:
    """A connection that asks its socket itself whether there is something to read, as its end is."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._socket = inner.get_extra_info("socket")
        self._poll = select.poll()
        self._poll.register(self._socket.fileno(), select.POLLIN)
        self.read, self.write, self.aclose = inner.read, inner.write, inner.aclose

    async def start_tls(self, *args: Any, **options: Any) -> _Stream:
        return _Stream(await self._inner.start_tls(*args, **options))

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            # a closed socket has no descriptor, and its number may be another's
            return self._socket.fileno() < 0 or bool(self._poll.poll(0))
        return self._inner.get_extra_info(info)
