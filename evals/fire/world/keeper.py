"""Runs the stack of a run, and starts it again if it ends by itself, so that every run comes to a verdict."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from evals.fire.journal import Journal

#: seconds between two tries to start it again
_PAUSE = 1.0


class Keeper:
    """A stack that runs during the block. Each end by itself is a record, ``stack ended``.

    Args:
        options: see :mod:`evals.fire.world.stack`; with a fixed port, its address stays the same.
        log: takes its output.
        journal: takes its ends.
    """

    def __init__(self, options: dict[str, object], log: Path, journal: Journal) -> None:
        self._options, self._log, self._journal = options, log, journal
        self._process: asyncio.subprocess.Process
        self._keeping: asyncio.Task[None]
        #: address of the API
        self.url = ""

    @property
    def pid(self) -> int:
        """Id of the supervisor; another one after each end."""
        return self._process.pid

    async def __aenter__(self) -> Keeper:
        """Start it, and wait until it serves.

        Raises:
            RuntimeError: it ended before.
        """
        if not await self._start():
            raise RuntimeError(f"the stack did not start: {self._log}")
        self._keeping = asyncio.create_task(self._keep())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it."""
        self._keeping.cancel()
        await asyncio.gather(self._keeping, return_exceptions=True)
        with suppress(ProcessLookupError):
            self._process.terminate()
        await self._process.wait()

    async def _start(self) -> bool:
        """Return whether it serves."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "evals.fire.world.stack", json.dumps(self._options),
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=log,
            )  # fmt: skip
        assert self._process.stdout is not None
        if line := await self._process.stdout.readline():
            self.url = json.loads(line)["api"]
        return bool(line)

    async def _keep(self) -> None:
        while True:
            status = await self._process.wait()
            self._journal.write("stack ended", status=status)
            # a Redis that is away just now lets it not start
            while not await self._start():
                await self._process.wait()
                await asyncio.sleep(_PAUSE)
