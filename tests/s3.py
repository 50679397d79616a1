"""A server that speaks S3, in this process: moto's."""

from __future__ import annotations

import logging
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from posology.index.places import Place, s3_options

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


@contextmanager
def running() -> Iterator[S3]:
    """The server for as long as it is needed; what it keeps is gone with it."""
    from moto.server import ThreadedMotoServer

    # a line a request
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield S3(url=f"http://{host}:{port}")
    finally:
        server.stop()
