"""The network between the stack and Redis: a proxy that can be cut, and that can be slow."""

from __future__ import annotations

import asyncio
import contextlib


class Network:
    """Passes connections on to a port until it is cut; a cut one neither reads nor answers, as a lost route.

    Args:
        target: port of Redis.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._whole = asyncio.Event()
        self._whole.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        #: seconds before each piece of data is passed on
        self.delay = 0.0

    @property
    def port(self) -> int:
        """Its own port."""
        assert self._server is not None, "start it first"
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)

    def cut(self) -> None:
        """Lose everything that is sent from now on; connections stay open."""
        self._whole.clear()

    def mend(self, *, reset: bool) -> None:
        """Pass data on again. After a reset, connections of before are closed instead."""
        if reset:
            self._close()
        self._whole.set()

    async def stop(self) -> None:
        """Close everything."""
        if self._server is not None:
            self._server.close()
        self._close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        writers = [writer]
        try:
            await self._whole.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            writers.append(back)
            ways = [
                asyncio.create_task(self._pass(reader, back)),
                asyncio.create_task(self._pass(there, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            for end in writers:
                with contextlib.suppress(OSError):
                    end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self.delay:
                await asyncio.sleep(self.delay)
            await self._whole.wait()
            writer.write(data)
            await writer.drain()
