"""The files of a folder, and whether they arrived as published."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from posology.corpus import checksums
from posology.corpus.folders import expand, require_all
from posology.corpus.items import sentence
from posology.errors import BadFile
from posology.index.build.report import Tally
from posology.index.manifest import Applied, State

_BLOCK = 1 << 20
_GZIP = b"\x1f\x8b"


class Sums:
    """MD5 of files, each read once."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}

    def of(self, file: Path) -> str:
        """Return the MD5 of a file; see :func:`posology.corpus.checksums.md5`."""
        if file not in self._known:
            self._known[file] = checksums.md5(file)
        return self._known[file]


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder that can be applied, by name.

    Raises:
        BadFile: the folder cannot be read, or holds no file of a known format.
        ReaderUnavailable: the package that reads one of the files is not installed.
    """
    if not folder.is_dir():
        raise BadFile("no such folder", path=str(folder))
    found = []
    for file in expand([folder], subfolders=False):
        if isinstance(file, BadFile):
            raise file
        found.append(file)
    # a file that is left out would be taken for one that is gone
    require_all(folder)
    return found


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Raise an operating system error of the block as a :class:`~posology.errors.BadFile`."""
    try:
        yield
    except OSError as error:
        raise BadFile(
            sentence(error.strerror or str(error)), path=str(error.filename or folder)
        ) from error


def whole(
    files: Sequence[Path], known: Mapping[str, Applied], tally: Tally
) -> tuple[list[Path], tuple[str, ...]]:
    """Return the files before the first incomplete one, and the names of the rest.

    Args:
        files: in order.
        known: applied files, by name; files that were begun and are untouched are not checked again.
        tally: collects the incomplete file.
    """
    for place, file in enumerate(files):
        begun = known.get(file.name)
        if begun is not None and begun.state is State.BEGUN and untouched(file, begun):
            continue  # it was checked when it was begun
        wrong = checksums.check(file)
        if wrong is None and not checksums.beside(file).is_file():
            wrong = _truncated(file)
        if wrong is not None:
            tally.broken.append(wrong)
            rest = tuple(f.name for f in files[place:])
            if any(name in known for name in rest):
                # older content must not replace what these files wrote
                return [], tuple(f.name for f in files)
            return list(files[:place]), rest
    return list(files), ()


def untouched(file: Path, known: Applied) -> bool:
    """Return whether a file still has its known size and modification time."""
    stat = file.stat()
    return (stat.st_size, stat.st_mtime_ns) == (known.size, known.mtime_ns)


def _truncated(file: Path) -> BadFile | None:
    """Return the fault of a compressed file without a checksum file, if it ends early."""
    try:
        with file.open("rb") as raw:
            if raw.read(2) != _GZIP:
                return None
            raw.seek(0)
            with gzip.open(raw, "rb") as stream:
                while stream.read(_BLOCK):
                    pass
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        return BadFile(f"{sentence(reason or str(error))}: fetch it again", path=str(file))
    return None
