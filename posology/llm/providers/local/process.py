"""llama.cpp's server in a process of its own: one for all processes of a home, which ends itself when it is idle.

Three files in the home's folder ``gguf`` belong to a server. Its lock is held as long as its process lives, so that one
that was killed is known to be gone. Its state has the address and a random key; without that file, the server ends.
Another lock is held by the process that starts it.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from posology.errors import ConfigurationError, ModelUnavailable

#: seconds to load a model
LOADING = 300.0
#: seconds between two looks at whether a server is ready, or is to end
_LOOK, _WATCH = 0.05, 0.5
#: characters of a log that an error repeats
_TOLD = 300
#: servers that this process started, to be waited for when they have ended
_started: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A server to run."""

    #: absolute path of the model's file
    model: str
    #: folder of its files
    folder: str
    #: tokens of input and output together
    window: int
    #: seconds without a request after which it ends
    idle: float

    @property
    def state(self) -> Path:
        """The file with its address: one for each model, as it is now, and window."""
        found = Path(self.model).stat()
        text = f"{self.model} {found.st_size} {found.st_mtime_ns} {self.window}"
        return Path(self.folder, hashlib.sha256(text.encode()).hexdigest()[:16] + ".json")


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """A server that runs."""

    address: str
    #: API key that it takes
    key: str
    pid: int


def ensure(wanted: Wanted) -> Running:
    """Return the running server, and start it if there is none. Blocking, until the model is loaded.

    Raises:
        ModelUnavailable: the extra ``local`` is not installed, or llama.cpp cannot load the model.
        ConfigurationError: the home's folder cannot be written.
    """
    state = wanted.state
    for process in _started:
        process.poll()
    try:
        state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _held(state.with_suffix(".start")):
            while (ended := _is_free(state.with_suffix(".lock"))) or not state.exists():
                if ended:
                    state.unlink(missing_ok=True)
                    _start(wanted, state)
                time.sleep(_LOOK)
            return Running(**json.loads(state.read_bytes()))
    except OSError as error:
        raise ConfigurationError(f"{state.parent}: {error.strerror}: set POSOLOGY_HOME") from None


def touch(wanted: Wanted) -> None:
    """Keep a server for another idle time."""
    with suppress(OSError):
        os.utime(wanted.state)


def stop(folder: Path) -> None:
    """End the servers of a folder, within a second."""
    for state in folder.glob("*.json"):
        state.unlink(missing_ok=True)


def _start(wanted: Wanted, state: Path) -> None:
    if find_spec("xllamacpp") is None:
        raise ModelUnavailable(
            "gguf: models need llama.cpp: pip install 'posology[local]', or start its server and use llamacpp:NAME",
            model=wanted.model,
        )
    log = state.with_suffix(".log")
    command = [sys.executable, "-P", "-m", __name__, json.dumps(asdict(wanted))]
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603 - this Python, and a module of ours
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    _started.append(process)
    give_up = time.monotonic() + LOADING
    while not state.exists():
        if process.poll() is not None or time.monotonic() > give_up:
            process.kill()
            raise ModelUnavailable(_cannot_load(wanted.model, log), model=wanted.model)
        time.sleep(_LOOK)


def _cannot_load(model: str, log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    reason = next((line for line in reversed(lines) if "error" in line.lower()), "")
    said = f" ({' '.join(reason.split())[:_TOLD]})" if reason else ""
    return f"llama.cpp cannot serve {model}{said}: the file may be incomplete, or need a newer xllamacpp; see {log}"


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold a lock; wait for it."""
    import fcntl

    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_free(path: Path) -> bool:
    import fcntl

    with path.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def main() -> None:
    """Serve until the state is removed, or the server is idle: ``WANTED`` as JSON."""
    wanted = Wanted(**json.loads(sys.argv[1]))
    state = wanted.state
    with _held(state.with_suffix(".lock")):
        _serve(wanted, state)
        # the server's threads have no way to end
        os._exit(0)


def _serve(wanted: Wanted, state: Path) -> None:
    import xllamacpp

    key = secrets.token_urlsafe(24)
    given = xllamacpp.CommonParams()
    given.model.path = wanted.model
    given.model_alias = {Path(wanted.model).stem}
    given.n_ctx = wanted.window
    given.n_parallel = 1
    given.api_keys = [key]
    given.ui = False
    given.warmup = False
    # errors alone
    given.verbosity = 1
    given.port = 0
    server = xllamacpp.Server(given)
    running = Running(address=server.listening_address, key=key, pid=os.getpid())
    ready = state.with_suffix(".new")
    ready.touch(mode=0o600)
    ready.write_text(json.dumps(asdict(running)), encoding="utf-8")
    ready.replace(state)
    while (age := _age(state)) is not None:
        if age > wanted.idle and not _busy(running):
            state.unlink(missing_ok=True)
            return
        time.sleep(_WATCH)


def _age(state: Path) -> float | None:
    """Return the seconds since the last request; ``None``: the server is to end."""
    try:
        return time.time() - state.stat().st_mtime
    except FileNotFoundError:
        return None


def _busy(running: Running) -> bool:
    """Return whether a reply is being written."""
    import httpx2

    headers = {"Authorization": f"Bearer {running.key}"}
    try:
        slots = httpx2.get(f"{running.address}/slots", headers=headers, trust_env=False).json()
        return any(slot["is_processing"] for slot in slots)
    except (httpx2.HTTPError, ValueError, KeyError, TypeError):
        return False


if __name__ == "__main__":
    main()
