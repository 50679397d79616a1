"""A provider on this machine: real HTTP over a real socket, and replies from a script."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import MappingProxyType, TracebackType
from typing import Any, Self

from posology.testing.provider.batches.book import BatchBook
from posology.testing.provider.batches.routes import BatchRoutes
from posology.testing.provider.responses import (
    PIECES,
    Response,
    document,
    no_such_path,
    respond,
    speaks,
    streamed,
)
from posology.testing.provider.steps import Recorded, Status, Step

#: seconds between looks at whether the stub is over
_POLL = 0.005


class StubProvider:
    """An HTTP server on a free loopback port that speaks both providers' formats.

    It serves from threads of its own, so it stands beside synchronous and asynchronous tests::

        with StubProvider([Status(code=429), Reply(text="yes")]) as stub:
            adapter = OpenAIAdapter(api_key="any", base_url=stub.openai_url)

    Args:
        script: a step for each request in order, or a function from the request to its step; a
            request beyond the script's end gets a 418, which no policy retries.
        batches: batches and files of the batch APIs; ``None``: new ones, whose rows are answered with ``yes``.
        documents: path to the body of what else is there, whatever the method; see
            :mod:`posology.testing.local_servers`.
    """

    def __init__(
        self,
        script: Iterable[Step] | Callable[[Recorded], Step] = (),
        *,
        batches: BatchBook | None = None,
        documents: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.documents = documents
        self.batches = BatchBook() if batches is None else batches
        self.routes = BatchRoutes(self.batches)
        self._answer = script if callable(script) else None
        self._steps = iter(()) if callable(script) else iter(script)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._requests: list[Recorded] = []
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start to serve."""
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.stub = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL,), name="stub-provider"
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, waking what hangs, and wait until every thread has ended."""
        assert self._server is not None
        assert self._thread is not None
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        assert self._server is not None, "use the stub in a with statement"
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """The base URL for the OpenAI adapter."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for the adapters of Anthropic, Azure and Bedrock."""
        return self.url

    @property
    def vertex_url(self) -> str:
        """The base URL for the Vertex AI adapter."""
        return f"{self.url}/v1"

    @property
    def requests(self) -> tuple[Recorded, ...]:
        """Every request so far, in the order of arrival."""
        with self._lock:
            return tuple(self._requests)

    def record(self, request: Recorded) -> None:
        """Record a request; the server's threads call this."""
        with self._lock:
            self._requests.append(request)

    def take(self, request: Recorded) -> Step:
        """Record a request and say what to do with it; the server's threads call this."""
        self.record(request)
        with self._lock:
            if self._answer is None:
                return next(self._steps, Status(code=418, message="the stub's script is over"))
        return self._answer(request)

    def wait(self, seconds: float) -> None:
        """Wait in a server's thread, but not beyond the stub's end."""
        self._over.wait(seconds)


class _Server(ThreadingHTTPServer):
    stub: StubProvider
    # not daemons: the stub's end waits for them, so none outlives its test
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        #: of requests, from 1: their ids are unique, as a provider's are
        self.numbers = count(1)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what half of the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    #: seconds; a client that stalls cannot keep a thread
    timeout = 30

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        if len(body) < length:
            # the client was gone before it had said what it wants: no provider has a request then
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self._batches(headers, body):
            return
        request = Recorded(path=self.path, headers=headers, json=json.loads(body or b"null"))
        if self._documented(request):
            return
        name = f"req_{next(self.server.numbers)}"
        step = self.server.stub.take(request)
        provider = speaks(self.path)
        if provider is None:
            self._play(no_such_path(name))
        else:
            asked = request.json
            stream = streamed(self.path, asked)
            self._play(
                respond(step, provider=provider, asked=asked, request_id=name, stream=stream)
            )

    def do_GET(self) -> None:
        self._without_body()

    def do_DELETE(self) -> None:
        self._without_body()

    def _without_body(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Recorded(path=self.path, headers=headers, json=None)
        if not self._batches(headers, b"") and not self._documented(request):
            self._play(no_such_path("none"))

    def _documented(self, request: Recorded) -> bool:
        """Answer with a document; false: there is none at the path."""
        stub = self.server.stub
        if request.path not in stub.documents:
            return False
        stub.record(request)
        self._play(document(stub.documents[request.path]))
        return True

    def _batches(self, headers: dict[str, str], body: bytes) -> bool:
        """Answer a request of the batch APIs; false: it is of another API."""
        stub = self.server.stub
        response = stub.routes.handle(self.command, self.path, headers, body)
        if response is None:
            return False
        form = headers.get("content-type", "").startswith("multipart/")
        asked = body.decode() if form else json.loads(body or b"null")
        path = f"{self.command} {self.path}"
        stub.record(Recorded(path=path, headers=headers, json=asked))
        self._play(response)
        return True

    def _play(self, response: Response) -> None:
        self.server.stub.wait(response.latency)
        if response.code is not None:
            self.send_response(response.code)
            # one request a connection: a thread never waits for a client's next one
            for name, value in (response.framing | {"connection": "close"}).items():
                self.send_header(name, value)
            self.end_headers()
            self._write(response)
            self.server.stub.wait(response.silence)
        if response.cut:
            self._hang_up()

    def _write(self, response: Response) -> None:
        if not response.drip:
            self.wfile.write(response.body)
            return
        # a client that has left need not be waited for
        with suppress(OSError):
            for piece in response.pieces:
                self.wfile.write(piece)
                self.server.stub.wait(response.drip / PIECES)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Keep quiet: tests look at :attr:`StubProvider.requests`."""
