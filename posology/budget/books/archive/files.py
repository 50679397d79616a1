"""Files that get their name only when they are complete and durable."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from posology.durable import sync_folder
from posology.errors import BadFile


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Write a file under a temporary name, and rename it when it is complete.

    Raises:
        BadFile: it cannot be written. What was there under its name stays.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        if path.exists() and not path.is_file():
            raise BadFile("it is no regular file", path=str(path))
        with part.open("xb") as file:
            yield file
            keep(file, path)
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def keep(file: BinaryIO, path: Path) -> None:
    """Rename an open file durably: a power failure after the return does not undo it.

    Raises:
        OSError: the file system does not take it.
    """
    file.flush()
    os.fsync(file.fileno())
    Path(file.name).replace(path)
    sync_folder(path.parent)
