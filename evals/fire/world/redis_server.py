"""A Redis that can be killed, filled, put into another time, and started again on what it wrote."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import redis

from orchestrator.stack.ports import free_port
from orchestrator.stack.redis_server import STARTER, find_server

#: seconds for a Redis to answer
_PATIENCE = 60.0
#: lets a process live in another time (Debian: libfaketime); without it, clocks stay as they are
_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
_FAKE = {"LD_PRELOAD": str(_FAKETIME), "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def in_the_future(seconds: int) -> dict[str, str] | None:
    """Return the environment of a process whose clock is ahead; ``None``: clocks stay as they are here."""
    return {**_FAKE, "FAKETIME": f"{seconds:+d}"} if _FAKETIME.exists() else None


class RedisServer:
    """``redis-server`` with the settings of ``posology up``: its append-only file is synced after every command.

    Args:
        folder: of its data.
        clock_of: another one, whose clock it begins with; ``None``: it has the clock of the machine, or of the piece before.
    """

    def __init__(self, folder: Path, clock_of: RedisServer | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.port = free_port("127.0.0.1")
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        #: how far its clock is ahead, as libfaketime reads it
        self.clock = (folder / "clock").absolute()
        if clock_of is not None:
            shutil.copy(clock_of.clock, self.clock)

    def begin_before_midnight(self, seconds: float) -> None:
        """Put its clock some seconds before the end of the month, unless an earlier piece has put it somewhere."""
        now = datetime.now(UTC)
        first = (now.replace(day=1) + timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0)
        if not self.clock.exists():
            self._set(round((first - now).total_seconds() - seconds))

    def shift(self, seconds: int) -> bool:
        """Put its clock forward or, with a negative number, back; return whether that is possible here."""
        if not _FAKETIME.exists():
            return False
        self._set(int(self.clock.read_text(encoding="ascii")) + seconds)
        return True

    def _set(self, ahead: int) -> None:
        draft = self.clock.with_suffix(".part")
        draft.write_text(f"{ahead:+d}\n", encoding="ascii")
        draft.replace(self.clock)

    def fill_disk(self) -> None:
        """Let its file grow by few bytes more: Redis ends within a write, and its file with a torn command."""
        # since Redis 7 a folder of files, of which the last one is written
        files = [*self._folder.glob("appendonlydir/*.incr.aof"), self._folder / "appendonly.aof"]
        written = max(
            (path for path in files if path.exists()), key=lambda path: path.stat().st_mtime
        )
        size = written.stat().st_size + 700
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size, size))

    def gone(self, seconds: float) -> bool:
        """Wait for its end, and return whether it came."""
        assert self._process is not None, "start it first"
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            return True
        return False

    @property
    def url(self) -> str:
        """URL without a proxy."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """Id of its process."""
        assert self._process is not None, "start it first"
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [
            "sh", str(STARTER), str(self._folder),
            str(find_server(os.environ.get("PATH"))), "--port", str(self.port), "--bind", "127.0.0.1",
            "--dir", str(self._folder), "--save", "", "--appendonly", "yes", "--appendfsync", "always",
            "--aof-load-truncated", "no",
            "--maxmemory-policy", "noeviction", "--loglevel", "warning",
        ]  # fmt: skip
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=self._environment()
            )
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return
            except redis.RedisError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.05)

    def _environment(self) -> dict[str, str]:
        if not _FAKETIME.exists() or not self.clock.exists():
            return dict(os.environ)
        live = {"FAKETIME_TIMESTAMP_FILE": str(self.clock), "FAKETIME_CACHE_DURATION": "1"}
        return {**os.environ, **_FAKE, **live}

    def client(self) -> redis.Redis:
        """Return a connection to it, past the proxy."""
        return redis.Redis(port=self.port, decode_responses=True, socket_timeout=10)

    def kill(self) -> None:
        """End it at once."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as an operator does."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(number)
            process.wait(_PATIENCE)
