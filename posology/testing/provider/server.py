"""A stub provider for load: HTTP/1.1 with connections that stay open, all on one event loop.

The reader of HTTP is written out here because a request costs a framework several times what the
stub itself does with it, and the stub shares its processor with what it measures.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus
from itertools import count
from typing import Any

from posology.testing.provider.batches.book import BatchBook
from posology.testing.provider.batches.routes import BatchRoutes
from posology.testing.provider.ledger import Entry
from posology.testing.provider.responses import (
    PIECES,
    Response,
    no_such_path,
    respond,
    speaks,
    streamed,
)
from posology.testing.provider.steps import Recorded, Step

_MAX_HEAD = 64 * 1024
_MAX_BODY = 32 * 1024 * 1024
_CLIENT_ID = "x-client-request-id"
_JSON = {"content-type": "application/json"}


class LoadServer:
    """Answers requests by a function, and keeps a ledger of them.

    Args:
        answer: from a request to its step; it must not block.
        batches: of the batch APIs; the ledger is theirs as well.
    """

    def __init__(
        self, answer: Callable[[Recorded], Step], *, batches: BatchBook | None = None
    ) -> None:
        self._book = BatchBook() if batches is None else batches
        self.batches = BatchRoutes(self._book)
        self._answer = answer
        self._numbers = count(1)
        # two processes never give out the same id
        self._prefix = f"req_{secrets.token_hex(4)}"
        self.ledger = self._book.ledger

    async def start(self, *, host: str = "127.0.0.1", port: int = 0) -> asyncio.Server:
        """Listen; port 0 takes a free one."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: _Connection(self), host, port, backlog=1024)

    def take(self, request: Recorded) -> tuple[Response, Entry]:
        """Decide on a request and open its entry."""
        name = f"{self._prefix}_{next(self._numbers)}"
        provider = speaks(request.path)
        if provider is None:
            response = no_such_path(name)
        else:
            step = self._answer(request)
            asked = request.json
            stream = streamed(request.path, asked)
            response = respond(step, provider=provider, asked=asked, request_id=name, stream=stream)
        entry = self.ledger.arrive(
            request_id=name,
            client_id=request.headers.get(_CLIENT_ID),
            provider=provider,
            played=response.played,
        )
        return response, entry

    def look(self, method: str, path: str) -> Any:
        """Return the response of one of the stub's own paths; ``None``: another path."""
        path, _, query = path.partition("?")
        match method, path:
            case "GET", "/_ledger":
                start = query.removeprefix("start=")
                return self.ledger.entries(start=int(start) if start.isdecimal() else 0)
            case "GET", "/_stats":
                return self.ledger.stats() | {"batches": len(self._book.batches)}
            case "POST", "/_reset":
                self.ledger.reset()
                return {}
            case "POST", "/_end_batches":
                self._book.end_all()
                return {}
        return None


class _Connection(asyncio.Protocol):
    def __init__(self, server: LoadServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        #: a request is under way: the next one, if it came already, stays in the buffer
        self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.ledger.connect()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        # in-flight requests continue: a provider finishes and bills them, although the client has left
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._go_on()

    def _go_on(self) -> None:
        while not self._busy and self._transport is not None and self._next():
            pass

    def _next(self) -> bool:
        """Take one request out of the buffer; false if no whole one is there."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MAX_HEAD:
                self._refuse(431)
            return False
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        length = headers.get("content-length", "0")
        words = first.split(" ")
        if len(words) != 3 or not length.isdecimal():
            self._refuse(400)
        elif "transfer-encoding" in headers:
            self._refuse(411)
        elif int(length) > _MAX_BODY:
            self._refuse(413)
        elif len(self._buffer) >= end + 4 + int(length):
            body = bytes(self._buffer[end + 4 : end + 4 + int(length)])
            del self._buffer[: end + 4 + int(length)]
            self._handle(words[0], words[1], headers, body)
            return True
        return False

    def _handle(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        own = self._server.look(method, path)
        if own is not None:
            self._plain(200, json.dumps(own).encode())
            return
        of_batches = self._server.batches.handle(method, path, headers, body)
        if of_batches is not None:
            self._answer(of_batches)
            return
        try:
            asked = json.loads(body or b"null")
        except ValueError:
            self._refuse(400)
            return
        request = Recorded(path=path, headers=headers, json=asked)
        response, entry = self._server.take(request)
        if response.latency:
            self._busy = True
            loop = asyncio.get_running_loop()
            loop.call_later(response.latency, self._resume, response, entry)
        else:
            self._play(response, entry)

    def _resume(self, response: Response, entry: Entry) -> None:
        self._busy = False
        self._play(response, entry)
        self._go_on()

    def _play(self, response: Response, entry: Entry) -> None:
        if response.code is not None and response.drip:
            self._busy = True
            self._send(response.code, response.framing, b"")
            self._drip(response, entry, response.pieces)
            return
        if response.code is not None and response.silence:
            self._busy = True
            self._send(response.code, response.framing, response.body)
            asyncio.get_running_loop().call_later(response.silence, self._fall, response, entry)
            return
        there = self._transport is not None
        self._server.ledger.end(
            entry,
            finished=response.finished,
            usage=response.usage,
            delivered=there and response.whole and not response.cut,
        )
        self._answer(response)

    def _drip(self, response: Response, entry: Entry, pieces: tuple[bytes, ...]) -> None:
        """Send a piece, and the others later, if the client is still there."""
        transport = self._transport
        if transport is not None and pieces:
            transport.write(pieces[0])
            pause = response.drip / PIECES
            asyncio.get_running_loop().call_later(pause, self._drip, response, entry, pieces[1:])
            return
        delivered = transport is not None
        self._server.ledger.end(entry, finished=True, usage=response.usage, delivered=delivered)
        self._busy = False
        self._go_on()

    def _fall(self, response: Response, entry: Entry) -> None:
        """End the connection after a silence."""
        self._server.ledger.end(
            entry, finished=response.finished, usage=response.usage, delivered=False
        )
        self._close()

    def _answer(self, response: Response) -> None:
        if response.code is not None:
            self._send(response.code, response.framing, response.body)
        if response.cut:
            self._close()

    def _refuse(self, code: int) -> None:
        self._plain(code, b'{"detail": "not a request that the stub reads"}')
        self._close()

    def _plain(self, code: int, body: bytes) -> None:
        self._send(code, {**_JSON, "content-length": str(len(body))}, body)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            # what else the client sent is not read any more
            self._transport = None

    def _send(self, code: int, headers: Mapping[str, str], body: bytes) -> None:
        if self._transport is None:
            return
        lines = [f"HTTP/1.1 {code} {_reason(code)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._transport.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)


def _reason(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "Unknown"
