"""A server that speaks S3, in this process: moto's, and conditional puts are atomic there as they are in S3."""

from __future__ import annotations

import logging
import threading
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from posology.index.places import Place, s3_options

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

KEY, SECRET = "AKIATESTKEY", "not/a+secret/that/may/be/told"


@dataclass(frozen=True, kw_only=True, slots=True)
class S3:
    """A running server."""

    url: str

    def bucket(self) -> str:
        """The name of a new bucket."""
        name = f"bucket-{uuid4().hex[:12]}"
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/{name}", method="PUT")):
            return name

    def place(self, bucket: str | None = None) -> Place:
        """Where an index may lie, in a bucket of its own or in one that may be there."""
        options = s3_options(key=KEY, secret=SECRET, endpoint=self.url)
        return Place.of(f"s3://{bucket or self.bucket()}/some/index", options)

    @property
    def environment(self) -> dict[str, str]:
        """What a user sets."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "POSOLOGY_S3_ENDPOINT": self.url,
        }


class _OneAtATime:
    """Serves requests one after another.

    moto looks at a put's condition and then writes, and another put may come between the two.
    """

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        with self._lock:
            return self._app(environ, start_response)


@contextmanager
def running() -> Iterator[S3]:
    """The server for as long as it is needed; what it keeps is gone with it."""
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    # a line a request
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    app = _OneAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, name="s3", daemon=True)
    thread.start()
    try:
        yield S3(url=f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
