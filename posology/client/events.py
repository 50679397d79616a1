"""Reads server-sent events (WHATWG HTML, section 9.2) from a stream of bytes."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass

#: bytes of one event; more is no event of Posology's
_LONGEST = 16 * 1024 * 1024
_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSent:
    """One event."""

    #: of this event or the last one that had one
    id: str | None
    event: str
    data: str


class TooLong(ValueError):
    """A line of the stream does not end."""


async def parse(pieces: AsyncIterable[bytes]) -> AsyncIterator[ServerSent]:
    """The events of a stream, in order; one that is cut off at the end is dropped.

    Args:
        pieces: the stream's bytes, cut anywhere.

    Raises:
        TooLong: an event has more bytes than any of ours.
    """
    last: str | None = None
    event, data = "", list[str]()
    async for line in _lines(pieces):
        if not line:
            if data:
                yield ServerSent(id=last, event=event or "message", data="\n".join(data))
            event, data = "", []
            continue
        name, _, value = line.decode(errors="replace").partition(":")
        value = value.removeprefix(" ")
        # a comment has an empty name
        match name:
            case "id" if "\0" not in value:
                last = value
            case "event":
                event = value
            case "data":
                data.append(value)


async def _lines(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Lines, whichever of the format's three ends they have; text itself may hold others."""
    rest = b""
    async for piece in pieces:
        rest += piece
        while found := _END.search(rest):
            # a carriage return at the end may be the half of an end
            if found.end() == len(rest) and found.group() == b"\r":
                break
            yield rest[: found.start()]
            rest = rest[found.end() :]
        if len(rest) > _LONGEST:
            raise TooLong(f"a line of more than {_LONGEST} bytes")
