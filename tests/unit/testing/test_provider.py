"""What the stub provider takes for a request."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import httpx2
import pytest

from posology.testing import Status, StubProvider


@pytest.mark.parametrize("sent", [b"", b'{"model": '])
def test_half_a_request_is_none(sent: bytes) -> None:
    with StubProvider(lambda _: Status(code=500)) as stub:
        where = urlsplit(stub.openai_url)
        assert where.hostname is not None
        assert where.port is not None
        with socket.create_connection((where.hostname, where.port)) as client:
            head = f"POST {where.path}/chat/completions HTTP/1.1\r\ncontent-length: 40\r\n\r\n"
            client.sendall(head.encode() + sent)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b"", "nobody answers it"
        whole = httpx2.post(f"{stub.openai_url}/chat/completions", json={"model": "m"})
        assert whole.status_code == 500
        (request,) = stub.requests
        assert request.json == {"model": "m"}
