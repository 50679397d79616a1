"""A stack that is only an HTTP server with canned responses."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from orchestrator.settings import load_settings
from orchestrator.stack.answers import digest
from orchestrator.stack.folder import StackInfo, own_folder, write_stack
from posology.version import __version__

#: no address of a Redis: what asks it fails at once
REDIS = "nowhere://:secret@localhost/0"

#: a search that finds nothing
SEARCH: dict[str, Any] = {
    "query": "Why?", "mode": "fused", "k": 10, "hits": [], "dense": [], "bm25_rerank": [], "bm25": [],
    "fused": [], "index": "index@1", "filters": None, "seconds": 0.01, "growth": None,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A request that came."""

    #: method and path
    what: str
    headers: Mapping[str, str]
    body: Any


#: status and body, or ``None``: the connection is closed without a response
Reply = tuple[int, Any] | None


@dataclass(kw_only=True, slots=True)
class StubStack:
    """Responses by method and path without its query; what came."""

    replies: dict[str, Reply | Callable[[Sent], Reply]] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)

    def paths(self) -> list[str]:
        return [one.what for one in self.sent]


@contextmanager
def stub_stack(folder: Path, index: str, **changed: Any) -> Iterator[StubStack]:
    """Serve canned responses as the stack of a folder.

    Args:
        folder: data folder of the stack.
        index: folder of the index that it claims to have.
        changed: fields of :class:`StackInfo` that differ.
    """
    stack = StubStack()

    class Handler(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65_537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            sent = Sent(
                what=f"{self.command} {self.path}",
                headers=dict(self.headers),
                body=json.loads(body) if body else None,
            )
            stack.sent.append(sent)
            reply = stack.replies[sent.what.partition("?")[0]]
            found = reply(sent) if callable(reply) else reply
            self.close_connection = True
            if found is not None:
                content = json.dumps(found[1]).encode()
                self.send_response(found[0])
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, own_folder(folder):
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        fields = {
            "pid": 1,
            "redis_url": REDIS,
            "api_url": f"http://127.0.0.1:{server.server_port}",
            "started": "2026-01-15T09:30:00+00:00",
            "version": __version__,
            "answers": digest(load_settings(), index),
        }
        write_stack(folder, StackInfo(**{**fields, **changed}))
        try:
            yield stack
        finally:
            server.shutdown()
            thread.join()
