"""The part of a file that is looked at: bytes that are read when they are needed and dropped when they are not."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

from posology.corpus import decoding
from posology.corpus.items import sentence

_CHUNK = 262_144
_SPACE = re.compile(rb"[ \t\r\n]+")


class Window:
    """Bytes of a stream from a place on. What is before the place may go at :meth:`drop`, and only then."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self._stream = stream
        self._ended = False
        #: what is held of the stream
        self.buffer = bytearray()
        #: how far into the buffer everything has been dealt with
        self.at = 0
        #: bytes of the stream that were forgotten, before the buffer
        self.dropped = 0
        #: why the stream broke off before its end; ``None``: it did not
        self.broken: str | None = None

    def __len__(self) -> int:
        """Bytes that are held and not yet dealt with."""
        return len(self.buffer) - self.at

    def fill(self) -> bool:
        """Read the next block; return False at the end."""
        if not self._ended:
            chunk = b""
            try:
                # not `read`, which loses what it has when a stream breaks off in the middle
                chunk = self._stream.read1(_CHUNK)
            except (OSError, EOFError, zlib.error) as error:
                # not raised here: what is held may be whole records
                reason = error.strerror if isinstance(error, OSError) else None
                self.broken = sentence(reason or str(error))
            self._ended = not chunk
            self.buffer += chunk
        return not self._ended

    def need(self, count: int) -> None:
        """Hold that many bytes after the place, or all that there are."""
        self.need_to(self.at + count)

    def need_to(self, end: int) -> None:
        """Hold the bytes up to ``end`` of the buffer, or all that there are."""
        while len(self.buffer) < end and self.fill():
            pass

    def drop(self) -> None:
        """Forget what has been dealt with, once that is worth the move."""
        if self.at > _CHUNK or self.at == len(self.buffer):
            del self.buffer[: self.at]
            self.dropped += self.at
            self.at = 0

    def skip_space(self) -> None:
        """Go on to the next byte that is not white space, or to the end."""
        while True:
            if (space := _SPACE.match(self.buffer, self.at)) is not None:
                self.at = space.end()
            if self.at < len(self.buffer) or not self.fill():
                return
            self.drop()

    def find(self, wanted: bytes, at: int, *, within: int, since: int | None = None) -> int | None:
        """Where ``wanted`` stands from ``at`` on, less than ``within`` bytes after ``since``, or ``at``."""
        last = (at if since is None else since) + within
        while True:
            found = self.buffer.find(wanted, at, last)
            if found >= 0:
                return found
            if len(self.buffer) >= last:
                return None
            at = max(at, len(self.buffer) - len(wanted) + 1)
            if not self.fill():
                return None


@contextmanager
def opened(path: Path) -> Iterator[Window]:
    """Open a file's bytes, unpacked if it is gzipped (detected by content)."""
    with decoding.opened(path) as stream:
        yield Window(stream)
