"""Backups of Redis, the ledger, the index and the memory: complete folders, of which the newest are kept."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anyio import to_thread

from orchestrator.backup.snapshot import snapshot
from posology.budget.books.export import Wanted, export
from posology.budget.books.reader import spenders
from posology.durable import sync_folder
from posology.errors import BadFile, IndexLocked
from posology.store.connection import connect
from posology.version import __version__

#: names of complete backups, which sort by time
_NAME = re.compile(r"\d{8}T\d{6}Z")
_PARTIAL = "partial"
#: file whose lock the process holds that makes a backup
_LOCK = "backup.lock"
REDIS, LEDGER, INDEX, MEMORY, ABOUT = (
    "redis.rdb", "ledger.jsonl", "index", "memory.sqlite", "backup.json"
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """Places of what is backed up."""

    #: address of Redis
    redis: str
    #: folder of the index; ``None``: it is not copied
    index: Path | None = None
    #: file of the memory; ``None``: it is not copied
    memory: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Backup:
    """A complete backup."""

    folder: Path
    #: size of the snapshot of Redis
    redis_bytes: int
    #: attempts in the ledger's export
    attempts: int
    #: files of the index, and of these, files that are shared with the backup before (hard links)
    index_files: int
    shared: int
    #: what is not in it, and why; ``None``: nothing that there is
    without: str | None


async def back_up(sources: Sources, folder: Path, *, keep: int) -> Backup:
    """Make a backup, and remove all but the newest ones. One that is interrupted leaves no folder of a backup.

    The index is copied last: what jobs name is then in it.

    Args:
        sources: what to copy.
        folder: of all backups.
        keep: number of backups to keep, this one included.

    Raises:
        StoreUnavailable: Redis does not answer, or gives no snapshot.
        LedgerBusy: a ledger is being archived.
        BadFile: another process makes a backup in the folder.
        OSError: the folder cannot be written.
    """
    with _alone(folder):
        return await _back_up(sources, folder, keep)


async def _back_up(sources: Sources, folder: Path, keep: int) -> Backup:
    partial = folder / _PARTIAL
    earlier = await to_thread.run_sync(_begin, folder, partial)
    taken = await to_thread.run_sync(snapshot, sources.redis, partial / REDIS)
    attempts = await _ledger(sources.redis, partial / LEDGER)
    files = shared = 0
    without = []
    if sources.memory is not None and sources.memory.is_file():
        try:
            await to_thread.run_sync(_memory, sources.memory, partial / MEMORY)
        except sqlite3.Error as error:
            (partial / MEMORY).unlink(missing_ok=True)
            without.append(
                f"{sources.memory} cannot be read ({error}): the backup is without the memory"
            )
    if sources.index is not None:
        before = next((one / INDEX for one in reversed(earlier) if (one / INDEX).is_dir()), None)
        try:
            files, shared = await to_thread.run_sync(_index, sources.index, partial / INDEX, before)
        except IndexLocked as error:
            without.append(error.message)
        if not sources.index.is_dir():
            without.append(f"there is no index at {sources.index}: the backup is without one")
    made = datetime.now(UTC)
    done = folder / made.strftime("%Y%m%dT%H%M%SZ")
    about: dict[str, Any] = {
        "made": made.isoformat(timespec="seconds"),
        "posology": __version__,
        "redis": {"file": REDIS, "bytes": taken.bytes, "sha256": taken.sha256},
        "ledger": {"file": LEDGER, "attempts": attempts},
        "index": {"files": files} if files else None,
    }
    await to_thread.run_sync(_publish, partial, done, about, keep)
    return Backup(
        folder=done,
        redis_bytes=taken.bytes,
        attempts=attempts,
        index_files=files,
        shared=shared,
        without="\n".join(without) or None,
    )


def backups(folder: Path) -> list[Path]:
    """Return the complete backups of a folder, oldest first."""
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder of backups, made when missing; it is free when its process dies.

    Raises:
        BadFile: another process holds it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / _LOCK).open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadFile(
                "another process makes a backup here: wait for that one", path=str(folder)
            ) from None
        yield


def _begin(folder: Path, partial: Path) -> list[Path]:
    """Make an empty folder for a backup, and return the complete ones."""
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700)
    return backups(folder)


async def _ledger(url: str, path: Path) -> int:
    redis = connect(url)
    try:
        return await export(redis, url, path, await spenders(redis, url), Wanted())
    finally:
        await redis.aclose()


def _memory(source: Path, to: Path) -> None:
    with closing(sqlite3.connect(source)) as opened, closing(sqlite3.connect(to)) as copy:
        opened.backup(copy)


def _index(source: Path, to: Path, before: Path | None) -> tuple[int, int]:
    """Copy an index while no process writes it; files that the backup before has are linked, since they never change.

    Raises:
        IndexLocked: a process is writing it.
    """
    try:
        with _unwritten(source):
            return _copied(source, to, before)
    except FileNotFoundError:
        # written by another machine, whose lock is not here
        shutil.rmtree(to, ignore_errors=True)
        raise _written(source) from None


def _copied(source: Path, to: Path, before: Path | None) -> tuple[int, int]:
    files = shared = 0
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source)
        # hidden files are no part of an index: unfinished ones of LanceDB's, and other programs'
        if any(part.startswith(".") for part in name.parts):
            continue
        own = to / name
        if path.is_dir():
            own.mkdir(parents=True, exist_ok=True)
            continue
        own.parent.mkdir(parents=True, exist_ok=True)
        files += 1
        known = None if before is None else before / name
        if known is not None and _same(path, known) and _linked(known, own):
            shared += 1
        else:
            shutil.copy2(path, own)
            _sync(own)
    for folder in (to, *(path for path in to.rglob("*") if path.is_dir())):
        if folder.is_dir():
            sync_folder(folder)
    return files, shared


def _linked(known: Path, own: Path) -> bool:
    """Return whether a file was linked: some file systems have no hard links."""
    try:
        os.link(known, own)
    except OSError:
        return False
    return True


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


@contextmanager
def _unwritten(index: Path) -> Iterator[None]:
    """Keep writers out during the block; the index may be mounted read-only.

    Raises:
        IndexLocked: a process is writing it.
    """
    try:
        lock = os.open(index / "writer.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        # no process has written it on this machine
        yield
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _written(index) from None
        yield
    finally:
        os.close(lock)


def _written(index: Path) -> IndexLocked:
    return IndexLocked(
        f"a process is writing {index}: the backup is without the index", index=str(index)
    )


def _same(path: Path, known: Path) -> bool:
    with suppress(FileNotFoundError):
        one, other = path.stat(), known.stat()
        return (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
    return False


def _publish(partial: Path, done: Path, about: dict[str, Any], keep: int) -> None:
    """Give a complete backup its name, and remove the oldest ones."""
    (partial / ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    for path in partial.iterdir():
        if path.is_file():
            _sync(path)
    partial.rename(done)
    sync_folder(done.parent)
    # by their names those of a clock that was wrong may be newer than this one
    others = [one for one in backups(done.parent) if one != done]
    newest = {done, *others[max(0, len(others) - keep + 1) :]}
    with_index = [one for one in (*others, done) if (one / INDEX).is_dir()]
    # the only copy of an index goes with no backup that is without
    newest |= {*with_index[-1:]}
    for old in others:
        if old not in newest:
            shutil.rmtree(old)
