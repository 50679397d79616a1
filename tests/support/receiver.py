"""A receiver of webhooks on this machine: it keeps what it gets, and answers as a test says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSListener


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    """A request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass(kw_only=True, slots=True)
class Receiver:
    """What was received, and what is answered."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    #: answers in order, status, headers and body; then 204
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    #: called before each answer
    before: Callable[[], Awaitable[None]] | None = None

    @property
    def ids(self) -> list[str]:
        return [one.headers["webhook-id"] for one in self.received]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def says(self, *statuses: int, body: bytes = b"", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers += [(status, named, body) for status in statuses]

    async def handle(self, stream: ByteStream) -> None:
        # a client that does not trust us leaves
        with suppress(anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead):
            await self._handle(stream)

    async def _handle(self, stream: ByteStream) -> None:
        async with stream:
            reader = BufferedByteReceiveStream(stream)
            head = (await reader.receive_until(b"\r\n\r\n", 65_536)).decode().split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:])
            }
            body = await reader.receive_exactly(int(headers.get("content-length", 0)))
            self.received.append(Received(path=head[0].split()[1], headers=headers, body=body))
            if self.before is not None:
                await self.before()
            status, more, said = self.answers.pop(0) if self.answers else (204, {}, b"")
            fields = {"Content-Length": str(len(said)), "Connection": "close", **more}
            lines = [f"HTTP/1.1 {status} Said", *(f"{n}: {v}" for n, v in fields.items())]
            await stream.send("\r\n".join([*lines, "", ""]).encode() + said)


@asynccontextmanager
async def receiving(tls: SSLContext | None = None) -> AsyncIterator[Receiver]:
    """Run a receiver on a free port of 127.0.0.1."""
    plain: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    listener = plain if tls is None else TLSListener(plain, tls)
    receiver = Receiver(port=plain.extra(anyio.abc.SocketAttribute.local_port))
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, receiver.handle)
        try:
            yield receiver
        finally:
            group.cancel_scope.cancel()
