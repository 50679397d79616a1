"""Strikes the processes of a run as its schedule says."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import redis

from evals.fire.journal import Journal
from evals.fire.memory import Processes
from evals.fire.operating import Operator
from evals.fire.schedule import WEATHERS, Blow, Sparing
from evals.fire.world.disks import Disk
from evals.fire.world.network import Network
from evals.fire.world.redis_server import RedisServer

#: seconds by which the clock of Redis is put forward or back
CLOCKS = (60, 600, 3_600, -20, -10_800)


class Striker:
    """Carries out blows, one after the other or overlapping as they fall.

    Args:
        journal: takes every blow, and whether it met something.
        processes: of the stack.
        server: its Redis.
        network: between the two.
        provider: address of the provider.
        folder: of the run.
        environment: of commands.
        disks: of index and uploads.
    """

    def __init__(
        self,
        journal: Journal,
        processes: Processes,
        server: RedisServer,
        network: Network,
        provider: str,
        folder: Path,
        environment: Mapping[str, str],
        disks: Mapping[str, Disk],
    ) -> None:
        self._journal, self._processes, self._server = journal, processes, server
        self._network, self._disks = network, disks
        #: held while Redis is away, so that two blows do not start two
        self._redis = asyncio.Lock()
        self._storage = {name: asyncio.Lock() for name in disks}
        #: by part of the stack
        self._sparing = defaultdict[str, Sparing](Sparing)
        self.operator = Operator(journal, processes, provider, folder, environment, self._sparing)
        #: set when a job ends: a worker is killed only after one has ended since the last kill, so that a slow
        #: machine is not hit until nothing is done any more
        self.progress = asyncio.Event()

    async def run(self, schedule: list[Blow], over: asyncio.Event) -> None:
        """Strike until the schedule or the run is over; blows that last end in any case."""
        started = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for blow in schedule:
                wait = started + blow.due - asyncio.get_running_loop().time()
                with suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), max(0.0, wait))
                if blow.deed == "kill worker":
                    begun = asyncio.get_running_loop().time()
                    await _either(self.progress, over)
                    self.progress.clear()
                    # blows that were due meanwhile do not fall all at once
                    started += asyncio.get_running_loop().time() - begun
                if over.is_set():
                    break
                group.create_task(self._strike(blow))

    async def _strike(self, blow: Blow) -> None:
        self._journal.write("blow", **asdict(blow))
        match blow.deed.split():
            case ["kill", "redis"] | ["restart", "redis"]:
                await self._restart(blow)
            case ["stop", "redis"]:
                async with self._redis:
                    await self._stopped([self._server.pid], blow)
            case ["fill", "disk"]:
                await self._fill_disk(blow)
            case ["shift", "clock"]:
                ahead = CLOCKS[blow.target % len(CLOCKS)]
                done = "struck" if self._server.shift(ahead) else "left out"
                self._journal.write(done, what=blow.deed, seconds=ahead)
            case ["fill", "redis"]:
                await self._fill(blow)
            case ["kill", what]:
                self._kill(what, blow)
            case ["stop", what]:
                await self._stopped(self._one(what, blow), blow)
            case ["cut", _]:
                self._network.cut()
                self._journal.write("struck", what=blow.deed)
                await asyncio.sleep(blow.lasts)
                self._network.mend(reset=blow.target % 2 == 0)
            case ["slow", "network"]:
                self._network.delay = 0.02
                self._journal.write("struck", what=blow.deed)
                await asyncio.sleep(blow.lasts)
                self._network.delay = 0.0
            case ["weather"]:
                await self.weather(blow.weather)
            case ["change", _]:
                await self.operator.change_prices(blow.target)
                self._journal.write("struck", what=blow.deed)
            case ["fill" | "lock" | "stall" | "slow", "index" | "uploads" as which]:
                await self._storage_fails(self._disks[which], blow)
            case ["drop", _]:
                dropped = await self.operator.drop_versions()
                self._journal.write("struck" if dropped else "left out", what=blow.deed)
            case [what]:
                status = await self.operator.sync(rebuild=what == "rebuild")
                self._journal.write("struck", what=what, status=status)

    async def weather(self, name: str) -> None:
        """Set the provider's weather."""
        await self.operator.tell("_weather", WEATHERS[name])

    def _one(self, what: str, blow: Blow) -> list[int]:
        """A process of a kind; none may live just now."""
        found = self._processes.of(what)
        return [found[blow.target % len(found)]] if found else []

    def _kill(self, what: str, blow: Blow) -> None:
        for pid in self._one(what, blow):
            if not self._sparing[what].may_kill(asyncio.get_running_loop().time()):
                self._journal.write("spared", what=what, pid=pid)
                return
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self._journal.write("struck", what=f"kill {what}", pid=pid)

    async def _stopped(self, pids: list[int], blow: Blow) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                self._journal.write("struck", what=blow.deed, pid=pid)
        await asyncio.sleep(blow.lasts)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    async def _restart(self, blow: Blow) -> None:
        async with self._redis:
            end = self._server.kill if blow.deed == "kill redis" else self._server.stop
            await asyncio.to_thread(end)
            self._journal.write("struck", what=blow.deed)
            # away for a while, or back at once
            await asyncio.sleep(blow.lasts / 4)
            await asyncio.to_thread(self._server.start)

    async def _fill_disk(self, blow: Blow) -> None:
        """Let the disk of Redis be full until it has ended, and start it when there is room again."""
        async with self._redis:
            await asyncio.to_thread(self._server.fill_disk)
            if await asyncio.to_thread(self._server.gone, 20.0):
                self._journal.write("struck", what=blow.deed)
            await asyncio.to_thread(self._server.kill)
            await asyncio.sleep(blow.lasts / 4)
            await asyncio.to_thread(self._server.start)

    async def _fill(self, blow: Blow) -> None:
        """Let Redis refuse whatever grows."""
        async with self._redis:
            await self._limit(1)
            self._journal.write("struck", what=blow.deed)
            await asyncio.sleep(blow.lasts)
            await self._limit(0)

    async def _limit(self, memory: int) -> None:
        def limit() -> None:
            with self._server.client() as client:
                client.config_set("maxmemory", memory)

        for _ in range(20):
            with suppress(redis.RedisError):
                await asyncio.to_thread(limit)
                return
            await asyncio.sleep(0.5)

    async def _storage_fails(self, disk: Disk, blow: Blow) -> None:
        """Let a disk be full, read-only, stalled or slow; the index is synced meanwhile, and again when it can be written."""
        if not disk.mounted:
            self._journal.write("left out", what=blow.deed)
            return
        begin, end = {
            "fill": (disk.fill, disk.free),
            "lock": (disk.lock, disk.unlock),
            "stall": (disk.stall, disk.flow),
            "slow": (disk.slow, disk.hasten),
        }[blow.deed.partition(" ")[0]]
        written = disk.folder.name == "index"
        async with self._storage[disk.folder.name], asyncio.TaskGroup() as group:
            await asyncio.to_thread(begin)
            try:
                sync = group.create_task(self.operator.sync()) if written else None
                if sync is not None and begin in (disk.fill, disk.lock):
                    await sync
                self._journal.write("struck", what=blow.deed)
                await asyncio.sleep(blow.lasts)
            finally:
                await asyncio.to_thread(end)
            if sync is not None:
                await sync
                await self.operator.sync()


async def _either(first: asyncio.Event, second: asyncio.Event) -> None:
    tasks = [asyncio.create_task(first.wait()), asyncio.create_task(second.wait())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
