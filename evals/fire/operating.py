"""An operator at work under fire: syncs, rebuilds, a month that passes for the index, and a new price list."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from evals.fire.journal import Journal
from evals.fire.memory import Processes
from evals.fire.schedule import Sparing
from evals.fire.world.corpus import COUNT, document, write
from evals.fire.world.prices import LISTS, write_prices
from evals.fire.world.provider import told
from evals.fire.world.redis_server import in_the_future

#: documents that a file of a sync revises
_REVISED = 3
#: files of a sync: each is a commit of its own
_FILES = 4
#: seconds for a sync
_SYNC = 180.0
#: seconds for a process to end
_GRACE = 15.0
#: seconds after which replaced versions have expired
_RETENTION = 40 * 86_400


class Operator:
    """Runs commands, and changes what an operator may change while the service runs.

    Args:
        journal: takes each change.
        processes: of the stack.
        provider: address of the provider.
        folder: of the run.
        environment: of commands.
        sparing: by part of the stack; restarts are ends of processes as kills are.
    """

    def __init__(
        self,
        journal: Journal,
        processes: Processes,
        provider: str,
        folder: Path,
        environment: Mapping[str, str],
        sparing: Mapping[str, Sparing],
    ) -> None:
        self._journal, self._processes, self._provider = journal, processes, provider
        self._folder, self._environment, self._sparing = folder, environment, sparing
        self._index, self._prices = asyncio.Lock(), asyncio.Lock()
        #: of the list in the file
        self._number = 0

    async def command(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> int | None:
        """Run a command; return its exit status."""
        with (self._folder / "log" / "commands.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).with_name("posology")), *arguments,
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **self._environment, **(environment or {})},
            )  # fmt: skip
            try:
                status = await asyncio.wait_for(process.wait(), _SYNC)
            except TimeoutError:
                process.kill()
                return await process.wait()
        self._journal.write("command", command=arguments[0], status=status)
        return status

    async def sync(
        self, *, rebuild: bool = False, environment: Mapping[str, str] | None = None
    ) -> int | None:
        """Hand over new revisions, and have the index take them; return the exit status."""
        async with self._index:
            folder = self._folder / "literature"
            number = len(list(folder.glob("docs-*.jsonl"))) + 1
            for one in range(number, number + _FILES):
                first = one * _REVISED
                revised = [
                    document(n % COUNT, first // COUNT + 2) for n in range(first, first + _REVISED)
                ]
                for new in revised:
                    self._journal.write("document", id=new.id, text=new.text)
                write(folder / f"docs-{one:04d}.jsonl", revised)
            options = ["--rebuild", "--allow-removals"] if rebuild else []
            return await self.command("sync", str(folder), *options, environment=environment)

    async def drop_versions(self) -> bool:
        """Sync when replaced versions have expired; return whether that is possible here.

        That is 40 days later each time: a version's retention begins when the next one is published.
        """
        syncs = len(list((self._folder / "literature").glob("docs-*.jsonl"))) // _FILES
        later = in_the_future(_RETENTION * (1 + syncs))
        if later is not None:
            await self.sync(environment=later)
        return later is not None

    async def change_prices(self, number: int) -> None:
        """Change the price list: write the file and restart every process; then the provider bills by it.

        Args:
            number: draws the list, another one than now.
        """
        async with self._prices:
            self._number = (self._number + 1 + number % (len(LISTS) - 1)) % len(LISTS)
            prices = write_prices(self._folder / "prices.toml", self._number)
            self._journal.write("prices", **prices.record())
            for part in ("worker", "api", "ingest"):
                for pid in self._processes.of(part):
                    await self._restart(part, pid)
            await self.tell("_prices", prices.number)
            self._journal.write("priced", number=prices.number)

    async def tell(self, what: str, value: object) -> None:
        """Set the provider's weather or prices."""
        request = urllib.request.Request(f"{self._provider}/{what}?{told(value)}", method="POST")  # noqa: S310 - loopback
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        await asyncio.to_thread(lambda: opener.open(request, timeout=30).close())

    async def _restart(self, part: str, pid: int) -> None:
        """End a process as an operator does; the supervisor starts it again."""
        loop = asyncio.get_running_loop()
        while not self._sparing[part].may_kill(loop.time()):  # noqa: ASYNC110 - time alone frees it
            await asyncio.sleep(1.0)
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = loop.time() + _GRACE
            with suppress(ProcessLookupError):
                os.kill(pid, number)
            while pid in self._processes.of(part):
                if loop.time() > deadline:
                    break
                await asyncio.sleep(0.2)
            else:
                return
