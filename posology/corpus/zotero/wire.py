"""Requests to Zotero that heed its waits, are repeated after failures that pass, and are bounded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import httpx2

from posology.corpus.live.wire import MAX_BODY
from posology.errors import FetchFailed

SERVICE = "Zotero"
#: attempts at one request, the first included
ATTEMPTS = 5
#: maximum wait that is heeded, seconds; what asks for longer is an error
MAX_WAIT = 120.0
_PASSING = frozenset({408, 429, 500, 502, 503, 504})


class Patient(httpx2.BaseTransport):
    """Wraps a transport: ``Backoff`` and ``Retry-After`` are heeded, passing failures repeated, and bodies bounded.

    Args:
        inner: sends.
        sleep: waits.
        clock: seconds, growing.
    """

    def __init__(
        self,
        inner: httpx2.BaseTransport,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._sleep = sleep
        self._clock = clock
        self._free = float("-inf")

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; see :class:`Patient`.

        Raises:
            FetchFailed: Zotero asks for a wait of more than :data:`MAX_WAIT`, or its reply is too large.
            TransportError: no attempt reached it.
        """
        for attempt in range(1, ATTEMPTS + 1):
            if (wait := self._free - self._clock()) > 0:
                self._sleep(wait)
            try:
                reply = self._inner.handle_request(request)
            except httpx2.ConnectError:
                # a program that does not run does not start by itself
                raise
            except httpx2.TransportError:
                if attempt == ATTEMPTS:
                    raise
                self._free = self._clock() + 2.0 ** (attempt - 1)
                continue
            asked = max(_seconds(reply, "backoff"), _seconds(reply, "retry-after"))
            if asked > MAX_WAIT:
                reply.close()
                raise FetchFailed(
                    f"{SERVICE} asks to wait {asked:,.0f} s: try again then",
                    service=SERVICE,
                    status=reply.status_code,
                )
            passing = reply.status_code in _PASSING
            if asked or passing:
                self._free = self._clock() + max(asked, 2.0 ** (attempt - 1) if passing else 0.0)
            if not passing or attempt == ATTEMPTS:
                break
            reply.close()
        assert isinstance(reply.stream, httpx2.SyncByteStream)
        reply.stream = _Bounded(reply.stream)
        return reply

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


class _Bounded(httpx2.SyncByteStream):
    def __init__(self, inner: httpx2.SyncByteStream) -> None:
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for piece in self._inner:
            size += len(piece)
            if size > MAX_BODY:
                raise FetchFailed(
                    f"a reply of {SERVICE} has more than {MAX_BODY:,} bytes", service=SERVICE
                )
            yield piece

    def close(self) -> None:
        self._inner.close()


def _seconds(reply: httpx2.Response, name: str) -> float:
    given = reply.headers.get(name, "").strip()
    return float(given) if given.isascii() and given.isdigit() else 0.0
