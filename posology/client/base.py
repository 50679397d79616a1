"""The connection that all methods of the client share."""

from __future__ import annotations

import uuid
from typing import Any

from posology.client.wire import Wire

#: seconds that a first request may take while the service loads its encoder
LOADING = 120.0
#: seconds that a response may take beyond the time for which the service holds it
_MORE = 10.0


class Base:
    """Holds the connection.

    Args:
        wire: sends requests.
        timeout: seconds of silence that one attempt bears.
    """

    def __init__(self, wire: Wire, timeout: float) -> None:
        self._wire = wire
        self._timeout = timeout

    def _patient(self, wait: float) -> dict[str, Any]:
        """Return the arguments of a request that the service may hold for some seconds."""
        return {"timeout": max(self._timeout, wait + _MORE)} if wait else {}


def new_key(key: str | None) -> dict[str, str]:
    """Return the header of an idempotency key; without a key, of a new one."""
    return {"Idempotency-Key": uuid.uuid4().hex if key is None else key}
