"""A provider on this machine: real HTTP over a real socket, and replies from a script."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self

from posology.testing import formats
from posology.testing.steps import Cut, Hang, Malformed, NoSuchModel, Recorded, Reply, Status, Step

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
    """

    def __init__(self, script: Iterable[Step] | Callable[[Recorded], Step]) -> None:
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
        """The base URL for the Anthropic adapter."""
        return self.url

    @property
    def requests(self) -> tuple[Recorded, ...]:
        """Every request so far, in the order of arrival."""
        with self._lock:
            return tuple(self._requests)

    def take(self, request: Recorded) -> Step:
        """Record a request and say what to do with it; the server's threads call this."""
        with self._lock:
            self._requests.append(request)
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

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what half of the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    #: seconds; a client that stalls cannot keep a thread
    timeout = 30
    _routes: ClassVar[dict[str, str]] = {
        "/v1/chat/completions": "openai",
        "/v1/messages": "anthropic",
    }

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = Recorded(
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            json=json.loads(body or b"null"),
        )
        step = self.server.stub.take(request)
        provider = self._routes.get(self.path.partition("?")[0])
        if provider is None:
            self._send(404, b'{"detail": "no such path"}')
            return
        self._play(step, provider, request.json)

    def _play(self, step: Step, provider: str, asked: Any) -> None:
        model = str(asked.get("model")) if isinstance(asked, dict) else ""
        error = getattr(formats, f"{provider}_error")
        match step:
            case Reply():
                self.server.stub.wait(step.latency)
                self._send(200, _good(step, provider, model, asked))
            case Status():
                body = step.body
                if body is None:
                    body = _encode(error(step.code, step.kind, step.message))
                self._send(step.code, body, headers=step.headers)
            case NoSuchModel():
                self._send(404, _encode(getattr(formats, f"{provider}_no_such_model")(model)))
            case Hang():
                self.server.stub.wait(step.seconds)
                self._hang_up()
            case Cut():
                if step.after_bytes is not None:
                    whole = _good(Reply(text="cut short"), provider, model, asked)
                    self._send(200, whole[: step.after_bytes], promised=len(whole))
                self._hang_up()
            case Malformed():
                self._send(200, step.body, content_type=step.content_type)

    def _send(
        self,
        code: int,
        body: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        promised: int | None = None,
    ) -> None:
        self.send_response(code)
        fixed = {
            "content-type": content_type,
            "content-length": str(len(body) if promised is None else promised),
            "x-request-id": "req_1",
            "request-id": "req_1",
            # one request a connection: a thread never waits for a client's next one
            "connection": "close",
        }
        for name, value in (fixed | dict(headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Keep quiet: tests look at :attr:`StubProvider.requests`."""


def _good(step: Reply, provider: str, model: str, asked: Any) -> bytes:
    text = step.text if isinstance(step.text, str) else step.text(asked)
    write = getattr(formats, f"{provider}_reply")
    return _encode(write(model, text, step.usage, step.finish))


def _encode(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode()
