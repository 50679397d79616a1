"""The files of a folder, and whether they have arrived as they were published."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from posology.corpus import checksums
from posology.corpus.files import expand
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
        """Of this file; see :func:`posology.corpus.checksums.md5`."""
        if file not in self._known:
            self._known[file] = checksums.md5(file)
        return self._known[file]


def files_of(folder: Path) -> list[Path]:
    """The files of a folder that can be applied, by name.

    Raises:
        BadFile: it cannot be read, or holds no file of a known format.
    """
    if not folder.is_dir():
        raise BadFile("no such folder", path=str(folder))
    found = []
    for file in expand([folder]):
        if isinstance(file, BadFile):
            raise file
        found.append(file)
    return found


def whole(
    files: Sequence[Path], known: Mapping[str, Applied], tally: Tally
) -> tuple[list[Path], tuple[str, ...]]:
    """The files up to the first that did not arrive as it was published, and the names of the rest.

    Args:
        files: in order.
        known: what was applied, by name; files that were begun and are untouched are not looked at again.
        tally: is told what is wrong.
    """
    for place, file in enumerate(files):
        begun = known.get(file.name)
        if begun is not None and begun.state is State.BEGUN and untouched(file, begun):
            continue  # it was looked at when it was begun
        wrong = checksums.check(file)
        if wrong is None and not checksums.beside(file).is_file():
            wrong = _cut(file)
        if wrong is not None:
            tally.broken.append(wrong)
            rest = tuple(f.name for f in files[place:])
            if any(name in known for name in rest):
                # what is older may not stand over what they hold
                return [], tuple(f.name for f in files)
            return list(files[:place]), rest
    return list(files), ()


def untouched(file: Path, known: Applied) -> bool:
    """Whether a file has the size and the time of change that are known of it."""
    stat = file.stat()
    return (stat.st_size, stat.st_mtime_ns) == (known.size, known.mtime_ns)


def _cut(file: Path) -> BadFile | None:
    """What is wrong with a compressed file, of which no checksum tells."""
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
