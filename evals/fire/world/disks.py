"""Disks of a run: small file systems in files, which can be full, read-only, stalled or slow. Mounting needs root."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

#: bytes; only what is written takes place on the machine's own disk
_SIZE = 2**30
#: takes all room that is left
_FILLER = ".filler"
#: seconds for which writes to a slow disk wait, and pass
_WAITS, _PASSES = 0.15, 0.05


class Disk:
    """A file system on a folder. It is kept in a file beside the folder, so that a later piece finds what was written.

    Args:
        folder: on which it is mounted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._image = folder.with_name(f"{folder.name}.img")
        #: whether it is mounted: where that is not permitted, the folder is one of the machine's disk
        self.mounted = False
        self._fast = threading.Event()
        self._slowing: threading.Thread | None = None

    def mount(self) -> None:
        """Mount it where that is permitted, and make it before if there is none.

        Raises:
            RuntimeError: it was made by an earlier piece, and cannot be mounted.
        """
        self.folder.mkdir(exist_ok=True)
        made = self._image.exists()
        if made and self.folder.is_mount():
            # by a run that was killed
            _run("umount", "-l", str(self.folder))
        if not made and (os.geteuid() != 0 or any(self.folder.iterdir()) or not self._make()):
            return
        self.mounted = _run("mount", "-o", "loop", str(self._image), str(self.folder))
        if self.mounted:
            (self.folder / _FILLER).unlink(missing_ok=True)
        elif made:
            raise RuntimeError(f"cannot mount {self._image}")
        else:
            self._image.unlink()

    def _make(self) -> bool:
        """Return whether there is a new file system; nothing of it is kept for root, as which the run works."""
        with self._image.open("wb") as file:
            file.truncate(_SIZE)
        if _run("mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", str(self._image)):
            return True
        self._image.unlink()
        return False

    def unmount(self) -> None:
        """Unmount it; processes that still use it keep it until they end."""
        while self.mounted and _run("umount", "-l", str(self.folder)):
            self.mounted = self.folder.is_mount()

    def fill(self) -> None:
        """Take all room that is left."""
        with (self.folder / _FILLER).open("wb") as file:
            size, piece = 0, _SIZE
            while piece >= 4096:
                try:
                    os.posix_fallocate(file.fileno(), size, piece)
                    size += piece
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    piece //= 2

    def free(self) -> None:
        """Give the room back."""
        (self.folder / _FILLER).unlink(missing_ok=True)

    def lock(self) -> None:
        """Make it read-only for all who open a file from now on."""
        _run("mount", "--bind", str(self.folder), str(self.folder))
        _run("mount", "-o", "remount,ro,bind", str(self.folder))

    def unlock(self) -> None:
        """Let it be written again."""
        _run("umount", "-l", str(self.folder))

    def stall(self) -> None:
        """Let every write wait. Its process cannot be killed meanwhile."""
        _run("fsfreeze", "--freeze", str(self.folder))

    def flow(self) -> None:
        """Let what waits be written."""
        _run("fsfreeze", "--unfreeze", str(self.folder))

    def slow(self) -> None:
        """Let writes pass for a moment at a time, a quarter of the time in all."""
        self._fast.clear()
        self._slowing = threading.Thread(target=self._alternate)
        self._slowing.start()

    def hasten(self) -> None:
        """Let it be as fast as it is."""
        self._fast.set()
        if self._slowing is not None:
            self._slowing.join()

    def _alternate(self) -> None:
        while not self._fast.is_set():
            self.stall()
            time.sleep(_WAITS)
            self.flow()
            self._fast.wait(_PASSES)


def _run(*command: str) -> bool:
    """Return whether a command of the system ended well."""
    with suppress(FileNotFoundError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False
