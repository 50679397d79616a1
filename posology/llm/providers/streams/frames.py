"""Frames of AWS's event streams, in which Bedrock sends the events of a message."""

from __future__ import annotations

import base64
import json
import struct

from posology.llm.providers.streams.assembly import NoReply

_NO_FRAME = "its stream contains data that is not a frame of an event"
#: lengths of the frame and of its headers, and the checksum of both
_PRELUDE = struct.Struct(">III")
#: bytes of the checksum at a frame's end; TLS has checked what it is for
_CHECKSUM = 4
#: maximum bytes of a frame (AWS)
_LONGEST = 24 * 1024 * 1024
#: the type of a header whose value is a text
_TEXT = 7
#: HTTP statuses of the errors that a stream may end with (Bedrock, InvokeModelWithResponseStream)
_STATUSES = {
    "internalServerException": 500,
    "modelStreamErrorException": 424,
    "modelTimeoutException": 408,
    "serviceUnavailableException": 503,
    "throttlingException": 429,
    "validationException": 400,
}


class AwsFrames:
    """The events in frames; see :class:`~posology.llm.providers.streams.events.Events`."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the events that a piece of the body completes.

        Raises:
            NoReply: it is no frame.
        """
        self._buffer += piece
        events = []
        while len(self._buffer) >= _PRELUDE.size:
            length, headers, _ = _PRELUDE.unpack_from(self._buffer)
            if not _PRELUDE.size + headers + _CHECKSUM <= length <= _LONGEST:
                raise NoReply(_NO_FRAME)
            if len(self._buffer) < length:
                break
            start = _PRELUDE.size + headers
            named = _headers(bytes(self._buffer[_PRELUDE.size : start]))
            events.append(_event(named, bytes(self._buffer[start : length - _CHECKSUM])))
            del self._buffer[:length]
        return events

    def rest(self) -> list[bytes]:
        """Return nothing: a frame that is not whole holds no event."""
        return []


def _headers(block: bytes) -> dict[str, str]:
    """Return the headers of a frame, of which all that Bedrock sends are texts."""
    found, at = {}, 0
    while at < len(block):
        end = at + 1 + block[at]
        if block[end : end + 1] != bytes([_TEXT]):
            raise NoReply(_NO_FRAME)
        stop = end + 3 + int.from_bytes(block[end + 1 : end + 3])
        found[block[at + 1 : end].decode(errors="replace")] = block[end + 3 : stop].decode(
            errors="replace"
        )
        at = stop
    return found


def _event(headers: dict[str, str], payload: bytes) -> bytes:
    """Return the event in a frame; an exception becomes an error as Anthropic streams it."""
    try:
        held = json.loads(payload)
        if headers.get(":message-type") == "event":
            return base64.b64decode(held["bytes"], validate=True)
        name = headers.get(":exception-type") or headers.get(":error-code", "")
        words = held.get("message")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NoReply(_NO_FRAME) from None
    error = {"type": name, "code": _STATUSES.get(name), "message": words}
    return json.dumps({"type": "error", "error": error}).encode()
