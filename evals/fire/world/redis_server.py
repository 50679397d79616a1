"""A Redis that can be killed, stopped, filled, and started again on what it wrote."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import redis

from orchestrator.stack.ports import free_port
from orchestrator.stack.redis_server import find_server

#: seconds for a Redis to answer
_PATIENCE = 60.0


class RedisServer:
    """``redis-server`` with the settings of ``posology up``: its append-only file is synced after every command.

    Args:
        folder: of its data.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.port = free_port("127.0.0.1")
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

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
            str(find_server(os.environ.get("PATH"))), "--port", str(self.port), "--bind", "127.0.0.1",
            "--dir", str(self._folder), "--save", "", "--appendonly", "yes", "--appendfsync", "always",
            "--maxmemory-policy", "noeviction", "--loglevel", "warning",
        ]  # fmt: skip
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
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
