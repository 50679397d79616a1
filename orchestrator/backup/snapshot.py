"""A snapshot of Redis over the network, as a replica gets it; no access to the server's files is needed."""

from __future__ import annotations

import hashlib
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from redis.connection import parse_url

from posology.errors import StoreUnavailable
from posology.store.connection import shown

#: seconds without a byte; the server writes a snapshot first and sends line ends meanwhile
_SILENCE = 120.0
_PIECE = 1024 * 1024
#: what a snapshot begins with, and the last byte before its checksum of eight bytes
_MAGIC, _END, _CHECKSUM = b"REDIS", 0xFF, 8
#: characters of the mark after a snapshot whose length the server does not know beforehand
_MARK = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """A snapshot that was written."""

    bytes: int
    #: in hexadecimal digits
    sha256: str


def snapshot(url: str, path: Path) -> Snapshot:
    """Write all that a Redis holds at one moment to a new file, in Redis's own format (RDB). Blocking.

    The server forks, as for a replica, and serves meanwhile.

    Args:
        url: address of the server.
        path: the file.

    Raises:
        StoreUnavailable: the server does not answer, refuses, or the connection is cut; the file is then incomplete.
        OSError: the file cannot be written.
    """
    try:
        opened = _connected(url)
    except OSError as error:
        raise _cut(url, error.strerror or type(error).__name__) from error
    try:
        with opened as connection, connection.makefile("rb") as stream:
            # without it, servers write the snapshot to their own disk first
            _ask(connection, stream, "REPLCONF", "capa", "eof")
            connection.sendall(b"SYNC\r\n")
            head = stream.readline()
            while head in (b"\n", b"\r\n"):
                head = stream.readline()
            if not head.startswith(b"$"):
                raise _refused(url, head)
            length = head[1:].strip()
            with path.open("xb") as file:
                if length.startswith(b"EOF:"):
                    return _until(stream, length.removeprefix(b"EOF:"), file, url)
                return _exactly(stream, int(length), file, url)
    except (TimeoutError, ConnectionError, ssl.SSLError) as error:
        raise _cut(url, type(error).__name__) from error


def _connected(url: str) -> socket.socket:
    parts: dict[str, Any] = parse_url(url.replace("redis+socket://", "unix://", 1))  # type: ignore[no-untyped-call]  # redis-py's own
    if path := parts.get("path"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_SILENCE)
        connection.connect(path)
    else:
        host = parts.get("host", "localhost")
        connection = socket.create_connection((host, parts.get("port", 6379)), timeout=_SILENCE)
        if url.startswith("rediss://"):
            context = ssl.create_default_context(cafile=parts.get("ssl_ca_certs"))
            if parts.get("ssl_cert_reqs") in ("none", "CERT_NONE"):
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = context.wrap_socket(connection, server_hostname=host)
    try:
        if password := parts.get("password"):
            user = [name] if (name := parts.get("username")) else []
            with connection.makefile("rb") as stream:
                _ask(connection, stream, "AUTH", *user, password)
    except BaseException:
        connection.close()
        raise
    return connection


def _ask(connection: socket.socket, stream: IO[bytes], *words: str) -> None:
    """Send a command, and read its reply of one line."""
    encoded = [word.encode() for word in words]
    parts = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)
    connection.sendall(b"*%d\r\n%s" % (len(encoded), parts))
    reply = stream.readline()
    if not reply.startswith(b"+"):
        raise StoreUnavailable(
            f"Redis refuses {words[0]}: {_line(reply)}", address="see POSOLOGY_REDIS_URL"
        )


def _exactly(stream: IO[bytes], length: int, file: IO[bytes], url: str) -> Snapshot:
    digest, left, tail = hashlib.sha256(), length, b""
    while left:
        piece = stream.read(min(left, _PIECE))
        if not piece:
            raise _cut(url, f"{left} of {length} bytes are missing")
        left -= len(piece)
        digest.update(piece)
        file.write(piece)
        tail = (tail + piece)[-_CHECKSUM - 1 :]
        if left + len(piece) == length:
            _check_magic(piece, url)
    return _whole(length, digest.hexdigest(), tail, url)


def _until(stream: IO[bytes], mark: bytes, file: IO[bytes], url: str) -> Snapshot:
    """Write what comes before the mark, which may be split over two pieces."""
    assert len(mark) == _MARK
    digest, length, held, tail = hashlib.sha256(), 0, b"", b""
    while not held.endswith(mark):
        piece = stream.read1(_PIECE)  # type: ignore[attr-defined]  # of buffered readers
        if not piece:
            raise _cut(url, "the end is missing")
        held += piece
        ready = held[:-_MARK]
        if length == 0 and ready:
            _check_magic(ready, url)
        length += len(ready)
        digest.update(ready)
        file.write(ready)
        tail = (tail + ready)[-_CHECKSUM - 1 :]
        held = held[-_MARK:]
    return _whole(length, digest.hexdigest(), tail, url)


def _check_magic(start: bytes, url: str) -> None:
    if not start.startswith(_MAGIC[: len(start)]):
        raise _cut(url, "Redis sent something other than a snapshot")


def _whole(length: int, digest: str, tail: bytes, url: str) -> Snapshot:
    if len(tail) != _CHECKSUM + 1 or tail[0] != _END:
        raise _cut(url, "the snapshot is not complete")
    return Snapshot(bytes=length, sha256=digest)


def _refused(url: str, head: bytes) -> StoreUnavailable:
    address = shown(url)
    return StoreUnavailable(
        f"Redis at {address} gives no snapshot: {_line(head)}. Services that forbid SYNC have backups of their own.",
        address=address,
    )


def _cut(url: str, reason: str) -> StoreUnavailable:
    address = shown(url)
    return StoreUnavailable(f"no snapshot of Redis at {address}: {reason}", address=address)


def _line(reply: bytes) -> str:
    return reply.decode(errors="replace").strip()[:200] or "the connection ended"
