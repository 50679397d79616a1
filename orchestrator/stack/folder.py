"""The data folder of a stack: who has it, and where the one that has it can be reached."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from posology.errors import ConfigurationError, StackRuns

DEFAULT_FOLDER = ".posology"
_LOCK, _STATE = "lock", "stack.json"
#: seconds to wait for the folder: a reader holds its lock for the time of a look
_LOOK = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class StackInfo:
    """A running stack, as other commands find it."""

    #: of the supervisor
    pid: int
    #: with the password
    redis_url: str = field(repr=False)
    #: ``None`` when the stack has no API
    api_url: str | None
    #: when it was ready, ISO 8601 in UTC
    started: str
    #: Posology's version
    version: str


def write_private(path: Path, text: str) -> None:
    """Replace a file at once by one that only its owner may read."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    # the mode is given at creation: between open and chmod anybody could read
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


@contextmanager
def own_folder(folder: Path) -> Iterator[None]:
    """Have the data folder alone; what a crashed stack left in it is forgotten.

    Raises:
        StackRuns: another process has it.
        ConfigurationError: it cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _LOCK).touch(mode=0o600)
    except OSError as error:
        raise ConfigurationError(
            f"the data folder {folder} cannot be written ({error.strerror}): choose another"
        ) from None
    with opened_lock(folder / _LOCK) as lock:
        deadline = time.monotonic() + _LOOK
        while not try_lock(lock):
            if time.monotonic() > deadline:
                raise _runs(folder)
            time.sleep(0.02)
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        (folder / _STATE).unlink(missing_ok=True)
        try:
            yield
        finally:
            (folder / _STATE).unlink(missing_ok=True)


def write_stack(folder: Path, info: StackInfo) -> None:
    """Say where the stack is. Only the process that has the folder may."""
    write_private(folder / _STATE, json.dumps(asdict(info), indent=2) + "\n")


def read_stack(folder: Path) -> StackInfo | None:
    """The stack that runs on the folder and is ready, or ``None``."""
    try:
        info = StackInfo(**json.loads((folder / _STATE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return info if _locked(folder / _LOCK) else None


@contextmanager
def opened_lock(path: Path) -> Iterator[int]:
    """Open a file for :func:`try_lock`, and give up the lock at the end of the block.

    A process that inherits the descriptor holds the lock, too. The operating system frees it when
    the last holder ends, however it ends.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Take the lock, unless somebody has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        # shared, so that several readers do not take each other for a stack
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _runs(folder: Path) -> StackRuns:
    info = read_stack(folder)
    if info is not None:
        where = f"API at {info.api_url}" if info.api_url else "without an API"
        pid: int | None = info.pid
    else:
        where = "not ready yet"
        written = (folder / _LOCK).read_text(encoding="utf-8").strip()
        pid = int(written) if written.isdigit() else None
    return StackRuns(
        f"a stack already runs on this folder: pid {pid or 'unknown'}, {where}. "
        f"Stop it, or choose another folder than {folder}.",
        pid=pid,
        api=info.api_url if info else None,
    )
