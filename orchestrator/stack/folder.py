"""Data folder of a stack: its lock, and the addresses of the running stack."""

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
#: seconds to wait for the lock: readers hold it briefly
_LOOK = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class StackInfo:
    """Addresses of a running stack."""

    #: process id of the supervisor
    pid: int
    #: includes the password
    redis_url: str = field(repr=False)
    #: ``None``: the stack has no API
    api_url: str | None
    #: time when it was ready, ISO 8601, UTC
    started: str
    #: version of Posology
    version: str
    #: digest of what its answers depend on, see :func:`~orchestrator.stack.answers.digest`; ``None``: commands cannot
    #: use its API
    answers: str | None = None


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically; only its owner may read it."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    # the mode is set at creation: between open and chmod, others could read the file
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


@contextmanager
def own_folder(folder: Path) -> Iterator[None]:
    """Lock the data folder; the state of a crashed stack is removed.

    Raises:
        StackRuns: another stack has locked it.
        ConfigurationError: it cannot be created or written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / _LOCK).touch(mode=0o600)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write to the data folder {folder} ({error.strerror}). Choose another one with --home."
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
    """Write the addresses of the stack. The caller must hold the lock."""
    write_private(folder / _STATE, json.dumps(asdict(info), indent=2) + "\n")


def read_stack(folder: Path) -> StackInfo | None:
    """Return the ready stack of the folder; ``None``: there is none, or it is another user's.

    The folder is one of the current folder by default, and another user's stack would be sent questions.
    """
    try:
        if os.geteuid() not in (0, (folder / _STATE).stat().st_uid):
            return None
        info = StackInfo(**json.loads((folder / _STATE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return info if _locked(folder / _LOCK) else None


@contextmanager
def opened_lock(path: Path) -> Iterator[int]:
    """Open a file for :func:`try_lock`; the lock is released at the end of the block.

    A process that inherits the descriptor shares the lock. The operating system releases it when the last holder
    ends.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Take the lock; return ``False`` if another process holds it."""
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
        # a shared lock, so that concurrent readers are not mistaken for a stack
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
        f"a stack already runs on {folder}: pid {pid or 'unknown'}, {where}. "
        "Stop it, or choose another folder with --home.",
        pid=pid,
        api=info.api_url if info else None,
    )
