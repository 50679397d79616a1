"""Receiving a streamed reply: how long its server may be silent, and how much it may send."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import anyio

from posology.llm.calls import ReplyProgress
from posology.llm.providers.streams.assembly import Assembly, NoReply
from posology.llm.providers.streams.events import Events, JsonLines, ServerSentEvents
from posology.llm.providers.streams.frames import AwsFrames
from posology.text.repeats import endless

#: Maximum bytes of a stream: an event of each of 128,000 tokens takes less
MOST_BYTES = 128 * 1024 * 1024
#: seconds from the last event to the end of the body, after which the connection is not kept
_CLOSING = 2.0
#: fraction of a time limit by which it may be too short
_SLACK = 0.02
#: Seconds between two pieces after which the second one came over the network by itself. Reading it costs several times
#: what an event does, so once a few came so, pieces are left to gather for a pause, seconds
_WAITED, _FEW, _PAUSE = 0.001, 16, 0.1
#: tokens after which a reply is looked at for repetitions again
_LOOKS = 64
#: media types of streams
_KINDS: dict[str, Callable[[], Events]] = {
    "text/event-stream": ServerSentEvents,
    "application/vnd.amazon.eventstream": AwsFrames,
    "application/x-ndjson": JsonLines,
}
#: what a stream of another media type begins with
_BEGINNINGS = (b"data:", b"event:", b":")


class Incoming:
    """The body of a response to a request for a stream: its events, or the whole that some servers send instead.

    Args:
        assembly: takes the events.
        media_type: of the response.
        most: maximum bytes.
    """

    def __init__(self, assembly: Assembly, media_type: str, *, most: int = MOST_BYTES) -> None:
        self.assembly = assembly
        #: a body that is no stream
        self.content = bytearray()
        kind = _KINDS.get(media_type.partition(";")[0].strip().lower())
        self._events = None if kind is None else kind()
        self._bytes, self._most = 0, most

    @property
    def streamed(self) -> bool:
        """Whether the body is a stream."""
        return self._events is not None

    def feed(self, piece: bytes) -> None:
        """Take a piece of the body.

        Raises:
            NoReply: the stream holds something else than events, or is too long.
        """
        self._bytes += len(piece)
        if self._bytes > self._most:
            raise NoReply(f"it is longer than {self._most >> 20} MiB")
        if self._events is None:
            self.content += piece
            return
        for data in self._events.feed(piece):
            self.assembly.feed(data)

    def end(self) -> None:
        """Take the end of the body, which may be one in the middle of an event.

        Raises:
            NoReply: see :meth:`feed`.
        """
        if self._events is None and self.content.lstrip().startswith(_BEGINNINGS):
            self._events = ServerSentEvents()
            for data in self._events.feed(bytes(self.content)):
                self.assembly.feed(data)
        if self._events is not None:
            with suppress(NoReply):
                for data in self._events.rest():
                    self.assembly.feed(data)


async def receive(
    pieces: AsyncIterator[bytes],
    incoming: Incoming,
    *,
    first: float,
    between: float,
    began: float,
    told: Callable[[ReplyProgress], None] | None,
    cuts: bool = False,
) -> bool:
    """Receive a body until its end. Whatever comes is a sign of life, comments included; a deadline is the caller's.

    Args:
        pieces: of the body.
        incoming: takes them.
        first: seconds without a sign of life until the model writes, from ``began`` on.
        between: seconds without a sign of life after that.
        began: time when the request was sent, of the event loop's clock.
        told: takes the progress after each piece; ``None``: nothing does.
        cuts: whether a reply that repeats itself without an end is cut.

    Returns:
        Whether the end came, or the reply was cut; false: the server was silent for too long.

    Raises:
        NoReply: the stream holds something else than events, or is too long.
    """
    assembly, gathering = incoming.assembly, _Gathering()
    looked = 0
    with anyio.CancelScope(deadline=began + first) as silence:
        patience = _Patience(silence)
        async for piece in pieces:
            alone = gathering.came_alone()
            incoming.feed(piece)
            wait = _CLOSING if assembly.done else between if assembly.began else first
            patience.renew(wait)
            if told is not None and incoming.streamed:
                told(assembly.progress)
            if cuts and not assembly.finished:
                written = assembly.progress.written
                if written - looked >= _LOOKS:
                    looked = written
                    if endless(assembly.written):
                        assembly.cut()
                        return True
            if alone and not assembly.finished:
                await anyio.sleep(min(_PAUSE, wait / 10))
            gathering.next()
        incoming.end()
    return not silence.cancelled_caught


class _Patience:
    """The deadline of a silence, which is moved rarely: that costs as much as reading an event."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._wait, self._set = math.nan, -math.inf

    def renew(self, wait: float) -> None:
        """Allow a number of seconds from now on, :data:`_SLACK` apart."""
        now = time.monotonic()
        if wait != self._wait or now - self._set > wait * _SLACK:
            self._scope.deadline = anyio.current_time() + wait
            self._wait, self._set = wait, now


class _Gathering:
    """Tells when pieces come one by one over the network, see :data:`_PAUSE`."""

    def __init__(self) -> None:
        self._asked, self._alone = time.monotonic(), 0

    def came_alone(self) -> bool:
        """Return whether a piece had to be waited for, as a few before it."""
        if time.monotonic() - self._asked <= _WAITED:
            return False
        self._alone += 1
        return self._alone > _FEW

    def next(self) -> None:
        """Note that the next piece is asked for."""
        self._asked = time.monotonic()
