"""The events of a streamed reply, out of pieces of its body."""

from __future__ import annotations

from typing import Protocol


class Events(Protocol):
    """Divides a body into the data of its events."""

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the events that a piece of the body completes."""
        ...

    def rest(self) -> list[bytes]:
        """Return the event that the end of the body completes."""
        ...


class ServerSentEvents:
    """Server-sent events (WHATWG, *HTML*, section 9.2.6): comments, names and ids are left out."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """See :class:`Events`."""
        if b"\n" not in piece:
            # joined once it is whole: a long line in many pieces would be copied for each
            self._line.append(piece)
            return []
        *lines, rest = (b"".join((*self._line, piece)) if self._line else piece).split(b"\n")
        self._line = [rest] if rest else []
        found: list[bytes] = []
        for line in lines:
            self._take(line, found)
        return found

    def rest(self) -> list[bytes]:
        """See :class:`Events`; the last event need not end with an empty line."""
        found: list[bytes] = []
        for line in (b"".join(self._line), b""):
            self._take(line, found)
        self._line = []
        return found

    def _take(self, line: bytes, found: list[bytes]) -> None:
        # a carriage return at its end is white space to JSON
        if line[:5] == b"data:":
            self._data.append(line[5:])
        elif line in (b"", b"\r"):
            if self._data:
                found.append(b"\n".join(self._data))
                self._data = []
        elif line[:6] == b"error:":
            # older servers of llama.cpp send errors in a field of their own
            self._data.append(line[6:])


class JsonLines:
    """Lines of JSON, an event each (Ollama, ``docs/api.md``)."""

    def __init__(self) -> None:
        self._line: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """See :class:`Events`."""
        if b"\n" not in piece:
            self._line.append(piece)
            return []
        *lines, rest = b"".join((*self._line, piece)).split(b"\n")
        self._line = [rest] if rest else []
        return [line for line in lines if line.strip()]

    def rest(self) -> list[bytes]:
        """See :class:`Events`; the last line need not end."""
        line, self._line = b"".join(self._line), []
        return [line] if line.strip() else []
