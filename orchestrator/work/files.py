"""Bytes of leased work, in a folder or in object storage: uploaded files, and tables with their plans.

A name is ``KIND/TENANT/ID/…``, so all bytes of an item are below one folder. Bytes are stored before their item is offered,
and dropped after it.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from uuid import uuid4

from posology.durable import sync_folder
from posology.index.places import Place, storage_errors

if TYPE_CHECKING:
    from obstore.store import ObjectStore

#: errors of a disk that is full, read-only or broken
STORAGE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})
#: bytes of a request to object storage: one has little time, however large the object is
_PIECE = 8 * 1024 * 1024
#: folder of files that arrive
_ARRIVING = "arriving"


class Files(ABC):
    """Stored bytes. Blocking; it may be shared by threads and processes.

    All methods raise ``OSError`` if the disk fails, and :class:`~posology.errors.IndexFault` if object storage does.
    """

    @abstractmethod
    def arriving(self, name: str) -> Path:
        """Return the path of a new file in a folder of its own, which :meth:`drop_arrival` removes.

        Args:
            name: name of the file, one component.
        """

    def drop_arrival(self, path: Path) -> None:
        """Remove the folder of a file that has arrived; one that was stored stays."""
        shutil.rmtree(path.parent, ignore_errors=True)

    @abstractmethod
    def put(self, path: Path, name: str) -> None:
        """Store a file that has arrived; it outlives the machine when this returns."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return stored bytes; ``None``: there are none of that name."""

    @abstractmethod
    def local(self, name: str) -> Path:
        """Return the path of a copy on this machine, or of the file itself. Its folder may be written, too.

        Raises:
            FileNotFoundError: there are no bytes of that name.
        """

    @abstractmethod
    def drop(self, folder: str) -> None:
        """Remove all bytes below a name, and their copies on this machine."""

    @abstractmethod
    def older(self, seconds: float) -> Iterator[str]:
        """Yield the names ``KIND/TENANT/ID`` of bytes that are older than a number of seconds, each once."""

    def close(self) -> None:  # noqa: B027 - a folder has nothing to close
        """Remove what only this process needed."""

    def write(self, content: bytes, name: str) -> None:
        """Store bytes; those of that name are replaced."""
        path = self.arriving(name.rpartition("/")[2])
        try:
            with open_private(path) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            self.put(path, name)
        finally:
            self.drop_arrival(path)


class FolderFiles(Files):
    """A folder.

    Args:
        folder: created when it is first written, for its user alone.
    """

    def __init__(self, folder: Path) -> None:
        #: the folder
        self.folder = folder

    def arriving(self, name: str) -> Path:
        """See :class:`Files`: within the folder, so that it is stored by a rename."""
        folder = self.folder / _ARRIVING / uuid4().hex
        make_private(folder)
        return folder / name

    def put(self, path: Path, name: str) -> None:
        """See :class:`Files`."""
        place = self.folder / name
        make_private(place.parent)
        path.replace(place)
        for folder in place.parents:
            sync_folder(folder)
            if folder == self.folder:
                break

    def read(self, name: str) -> bytes | None:
        """See :class:`Files`."""
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def local(self, name: str) -> Path:
        """See :class:`Files`: the file itself."""
        path = self.folder / name
        path.stat()
        return path

    def drop(self, folder: str) -> None:
        """See :class:`Files`."""
        shutil.rmtree(self.folder / folder, ignore_errors=True)

    def older(self, seconds: float) -> Iterator[str]:
        """See :class:`Files`. Files that began to arrive before that are removed."""
        before = time.time() - seconds
        for path in self.folder.glob("*/*/*/"):
            # of another process, which removes it meanwhile
            with suppress(FileNotFoundError):
                name = str(path.relative_to(self.folder))
                if path.stat().st_mtime < before and not name.startswith(f"{_ARRIVING}/"):
                    yield name
        for path in self.folder.glob(f"{_ARRIVING}/*/"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < before:
                    shutil.rmtree(path, ignore_errors=True)


class ObjectFiles(Files):
    """Object storage. Files arrive in, and are read from, temporary folders of this machine.

    Args:
        place: its address and credentials.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._opened: ObjectStore | None = None
        #: copies on this machine
        self._copies: Path | None = None

    def arriving(self, name: str) -> Path:
        """See :class:`Files`."""
        return Path(tempfile.mkdtemp(prefix="posology-upload-")) / name

    def put(self, path: Path, name: str) -> None:
        """See :class:`Files`."""
        import obstore

        with self._requests() as store:
            obstore.put(store, name, path, chunk_size=_PIECE, max_concurrency=2)

    def read(self, name: str) -> bytes | None:
        """See :class:`Files`."""
        try:
            return b"".join(self._pieces(name))
        except FileNotFoundError:
            return None

    def local(self, name: str) -> Path:
        """See :class:`Files`: a copy, which stays until the bytes are dropped or the files are closed."""
        if self._copies is None:
            self._copies = Path(tempfile.mkdtemp(prefix="posology-uploads-"))
        copy = self._copies / name
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            part = copy.with_name(f"{copy.name}.part")
            with part.open("wb") as file:
                file.writelines(self._pieces(name))
            part.replace(copy)
        return copy

    def drop(self, folder: str) -> None:
        """See :class:`Files`."""
        import obstore

        with self._requests() as store:
            for page in obstore.list(store, folder):
                obstore.delete(store, [meta["path"] for meta in page])
        if self._copies is not None:
            shutil.rmtree(self._copies / folder, ignore_errors=True)

    def close(self) -> None:
        """See :class:`Files`."""
        if self._copies is not None:
            shutil.rmtree(self._copies, ignore_errors=True)

    def older(self, seconds: float) -> Iterator[str]:
        """See :class:`Files`."""
        import obstore

        before, names = time.time() - seconds, set[str]()
        with self._requests() as store:
            for page in obstore.list(store):
                names |= {
                    meta["path"] for meta in page if meta["last_modified"].timestamp() < before
                }
        yield from sorted({"/".join(name.split("/")[:3]) for name in names})

    def _pieces(self, name: str) -> Iterator[bytes]:
        """Yield an object piece by piece.

        Raises:
            FileNotFoundError: there is none of that name.
        """
        import obstore

        with self._requests() as store:
            try:
                size = obstore.head(store, name)["size"]
            except FileNotFoundError:
                size = -1
        if size < 0:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        for start in range(0, size, _PIECE):
            with self._requests() as store:
                piece = obstore.get_range(store, name, start=start, end=min(start + _PIECE, size))
            yield bytes(piece)

    @contextmanager
    def _requests(self) -> Iterator[ObjectStore]:
        if self._opened is None:
            self._opened = self._place.store()
        with storage_errors(self._place.uri, what="uploads"):
            yield self._opened


def open_files(place: Place) -> Files:
    """Return the files of a folder or of object storage."""
    return ObjectFiles(place) if place.folder is None else FolderFiles(place.folder.expanduser())


def open_private(path: Path) -> BinaryIO:
    """Create a file for its user alone."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def make_private(folder: Path) -> None:
    """Make a folder that no other user of the machine reads, and those above it; one that exists keeps its mode."""
    for one in (*reversed(folder.parents), folder):
        one.mkdir(mode=0o700, exist_ok=True)
