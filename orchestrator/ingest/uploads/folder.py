"""The folder of uploads: what was sent and is not ingested yet, and the records of all ingests.

::

    UPLOADS/service.lock                          held by the process that ingests
    UPLOADS/tenants/TENANT/upload.lock            held while a file of the tenant arrives
    UPLOADS/tenants/TENANT/arriving/INGEST/       a file that is not complete
    UPLOADS/tenants/TENANT/pending/INGEST/        a complete one, which waits or is ingested
    UPLOADS/tenants/TENANT/ended/INGEST/          the record alone

An ingest is a folder with its record, ``record.json``, its file, ``TENANT/NAME``, and ``cancel`` once it is to end: an article without an id of its own
gets that of its file and folder, so files of one name from two tenants do not replace each other. Folders move by one
``rename``, and records are replaced by one, so a crash leaves each ingest in one state. The API writes what arrives, and
the ingesting process everything after that.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from posology.errors import IngestNotFound
from posology.published.ingests import IngestOutput, IngestState
from posology.store import keys

#: maximum ended ingests of a tenant whose records are kept
MAX_ENDED = 1_000
#: errors of a disk that is full, read-only or broken
STORAGE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})
_ID = re.compile(r"ingest_[0-9a-f]{28}")
_RECORD, _CANCEL = "record.json", "cancel"
_ARRIVING, _PENDING, _ENDED = "arriving", "pending", "ended"


class NoRoom(Exception):
    """A tenant's uploads that wait leave no room for another one.

    Args:
        reason: which limit, and its numbers.
    """


class Busy(Exception):
    """Another process has the lock."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """Limits of the uploads of one tenant that wait to be ingested."""

    #: bytes of their files
    size: int
    #: number of files
    files: int = 1_000


class Uploads:
    """The folder. Blocking; it may be shared by threads and processes.

    Args:
        folder: created when it is first written, for its user alone.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tenants = folder / "tenants"

    @contextmanager
    def arriving(self, tenant: str, name: str, room: Room) -> Iterator[Arrival]:
        """Receive a file during the block; unless it is completed there, nothing of it is left.

        Args:
            tenant: a valid name.
            name: see :func:`~orchestrator.ingest.uploads.names.check_name`.
            room: limits of the tenant's uploads.

        Raises:
            Busy: another process receives a file of the tenant; of this process, one at a time must ask.
            NoRoom: the tenant has no room for another file.
            OSError: the folder cannot be written.
        """
        own = self._own(tenant)
        make_private(own)
        with locked(own / "upload.lock"):
            # what a process left that was killed
            shutil.rmtree(own / _ARRIVING, ignore_errors=True)
            waiting = _entries(own / _PENDING)
            if len(waiting) >= room.files:
                raise NoRoom(f"{len(waiting)} of {room.files} files wait")
            used = sum(map(_size, waiting))
            known = keys.new_id("ingest")
            with ExitStack() as stack:
                folder = own / _ARRIVING / known
                stack.callback(shutil.rmtree, own / _ARRIVING, ignore_errors=True)
                (folder / tenant).mkdir(parents=True)
                path = folder / tenant / name
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                file = os.fdopen(os.open(path, flags, 0o600), "wb")
                stack.callback(_closed, file)
                yield Arrival(
                    ingest=known,
                    tenant=tenant,
                    name=name,
                    path=path,
                    file=file,
                    left=room.size - used,
                )

    def complete(self, arrival: Arrival) -> tuple[IngestOutput, bool]:
        """Let a file that has arrived wait to be ingested, within its block.

        Returns:
            The ingest, and whether it is new: a file of the same name and content that waits already stands for it.
        """
        arrival.file.flush()
        os.fsync(arrival.file.fileno())
        own = self._own(arrival.tenant)
        digest = arrival.digest.hexdigest()
        for one in self._records(own / _PENDING):
            if (one.name, one.sha256) == (arrival.name, digest):
                return one, False
        made = IngestOutput(
            id=arrival.id,
            tenant=arrival.tenant,
            name=arrival.name,
            bytes=arrival.size,
            sha256=digest,
            state=IngestState.WAITING,
            phase=None,
            done=0,
            total=None,
            runs=0,
            submitted=datetime.now(UTC),
            started=None,
            ended=None,
            written=0,
            unchanged=0,
            replaced=0,
            bad=0,
            rejected=(),
            unread=None,
            error=None,
        )
        folder = own / _ARRIVING / arrival.id
        _write(folder, made)
        (own / _PENDING).mkdir(exist_ok=True)
        folder.rename(own / _PENDING / arrival.id)
        sync(own / _PENDING)
        return made, True

    def get(self, ingest: str, *, tenant: str) -> IngestOutput:
        """Return an ingest as it is now.

        Raises:
            IngestNotFound: the tenant has none of that id, or its record has expired.
        """
        if _ID.fullmatch(ingest):
            own = self._own(tenant)
            # in this order: it moves from the one to the other
            for folder in (own / _PENDING / ingest, own / _ENDED / ingest):
                if (found := _read(folder)) is not None:
                    return found
        raise unknown_ingest(ingest)

    def cancel(self, ingest: str, *, tenant: str) -> IngestOutput:
        """Ask for the end of an ingest, and return it as it is now: the ingesting process ends it. An ended one stays so.

        Raises:
            IngestNotFound: the tenant has none of that id, or its record has expired.
        """
        found = self.get(ingest, tenant=tenant)
        # it may have ended meanwhile
        with suppress(FileNotFoundError):
            if not found.over:
                (self._own(tenant) / _PENDING / ingest / _CANCEL).touch(0o600)
        return found

    def is_cancelled(self, ingest: IngestOutput) -> bool:
        """Return whether the end of a pending ingest was asked for."""
        return (self._own(ingest.tenant) / _PENDING / ingest.id / _CANCEL).exists()

    def all(self, tenant: str) -> list[IngestOutput]:
        """Return a tenant's ingests, newest first."""
        own = self._own(tenant)
        # in this order, as above; one that moves meanwhile is found twice
        known = {one.id: one for one in self._records(own / _PENDING)}
        known |= {one.id: one for one in self._records(own / _ENDED)}
        return [known[own] for own in sorted(known, reverse=True)]

    def known(self, tenant: str, sha256: str, *, after: datetime) -> IngestOutput | None:
        """Return a tenant's newest ingest of a content that was submitted after a time; ``None``: there is none."""
        for one in self.all(tenant):
            if one.submitted < after:
                return None
            if one.sha256 == sha256:
                return one
        return None

    def pending(self) -> dict[str, list[IngestOutput]]:
        """Return the ingests that have not ended, by tenant, oldest first; tenants without any are left out."""
        found = {own.name: list(self._records(own / _PENDING)) for own in _entries(self._tenants)}
        return {tenant: ones for tenant, ones in found.items() if ones}

    def counts(self) -> Counter[IngestState]:
        """Return the number of ingests whose records are kept, by state."""
        found = Counter(one.state for ones in self.pending().values() for one in ones)
        for own in _entries(self._tenants):
            found.update(one.state for one in self._records(own / _ENDED))
        return found

    def path(self, ingest: IngestOutput) -> Path:
        """Return the file of an ingest that has not ended."""
        return self._own(ingest.tenant) / _PENDING / ingest.id / ingest.tenant / ingest.name

    def save(self, ingest: IngestOutput) -> None:
        """Record the state of a pending ingest. Only the ingesting process does this."""
        _write(self._own(ingest.tenant) / _PENDING / ingest.id, ingest)

    def end(self, ingest: IngestOutput) -> None:
        """Record the end of a pending ingest, and delete its file. It may be repeated after a crash."""
        own = self._own(ingest.tenant)
        folder = own / _PENDING / ingest.id
        _write(folder, ingest)
        shutil.rmtree(folder / ingest.tenant, ignore_errors=True)
        (own / _ENDED).mkdir(exist_ok=True)
        folder.rename(own / _ENDED / ingest.id)

    def sweep(self, before: datetime) -> None:
        """Forget ingests that ended before a time, and of a tenant's others all but the newest."""
        for own in _entries(self._tenants):
            kept = sorted(self._records(own / _ENDED), key=lambda one: one.id, reverse=True)
            for place, one in enumerate(kept):
                if place >= MAX_ENDED or (one.ended is not None and one.ended < before):
                    shutil.rmtree(own / _ENDED / one.id, ignore_errors=True)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Be the process that ingests during the block.

        Raises:
            Busy: another process is.
            OSError: the folder cannot be written.
        """
        make_private(self._folder)
        with locked(self._folder / "service.lock"):
            yield

    def is_served(self) -> bool:
        """Return whether a process ingests."""
        try:
            with (self._folder / "service.lock").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def _own(self, tenant: str) -> Path:
        keys.prefix(tenant)
        return self._tenants / tenant

    def _records(self, folder: Path) -> Iterator[IngestOutput]:
        for entry in _entries(folder):
            if (found := _read(entry)) is not None:
                yield found


class Arrival:
    """A file that arrives, in pieces."""

    def __init__(
        self, *, ingest: str, tenant: str, name: str, path: Path, file: IO[bytes], left: int
    ) -> None:
        self.id = ingest
        self.tenant = tenant
        self.name = name
        #: where it stands until it is complete
        self.path = path
        self.file = file
        self.size = 0
        self.digest = hashlib.sha256()
        self._left = left

    def write(self, piece: bytes) -> None:
        """Append a piece.

        Raises:
            NoRoom: the tenant's files would have more bytes than it may.
            OSError: the disk is full, or cannot be written.
        """
        self.size += len(piece)
        if self.size > self._left:
            raise NoRoom(f"the files that wait leave room for {max(self._left, 0)} bytes")
        self.digest.update(piece)
        self.file.write(piece)


def _closed(file: IO[bytes]) -> None:
    # a completed file has been written; the bytes of another one may find no room, and it is deleted
    with suppress(OSError):
        file.close()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a kernel lock, which is free when its process dies."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(str(path)) from None
        yield
    finally:
        os.close(file)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def _size(folder: Path) -> int:
    found = 0
    for path in folder.glob("*/*"):
        with suppress(FileNotFoundError):
            found += path.stat().st_size
    return found


def _read(folder: Path) -> IngestOutput | None:
    try:
        return IngestOutput.model_validate_json((folder / _RECORD).read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError:
        # of another version of Posology
        return None


def _write(folder: Path, ingest: IngestOutput) -> None:
    made = folder / f"{_RECORD}.new"
    with made.open("wb") as file:
        file.write(ingest.model_dump_json().encode())
        file.flush()
        os.fsync(file.fileno())
    made.rename(folder / _RECORD)
    sync(folder)


def unknown_ingest(ingest: str) -> IngestNotFound:
    """Return the error for an ingest that a tenant does not have."""
    return IngestNotFound(f"there is no ingest {ingest}, or it has expired", ingest=ingest)


def make_private(folder: Path) -> None:
    """Make a folder that no other user of the machine reads, and those above it; one that exists keeps its mode."""
    for one in (*reversed(folder.parents), folder):
        one.mkdir(mode=0o700, exist_ok=True)


def sync(folder: Path) -> None:
    """Make renames within a folder durable."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
