"""Files that a crash or a power failure leaves as they were, or as they are to be."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in place of the old one, once it is on the disk as a whole. Other users may read it (mode 0644).

    Raises:
        OSError: the file system does not take it; the old file stays.
    """
    with NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        draft = Path(file.name)
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            draft.chmod(0o644)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def sync_folder(folder: Path) -> None:
    """Make renames within a folder durable.

    Raises:
        OSError: the file system does not take it.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
