"""Checksums that are published beside files: ``NAME.md5``, as NLM does for every file of PubMed."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from posology.corpus.items import sentence
from posology.errors import BadFile

SUFFIX = ".md5"

_BLOCK = 1 << 20
#: bytes; a longer one is no file of checksums
_LONGEST = 1_000_000
_HEX = r"(?P<hex>[0-9A-Fa-f]{32})"
#: as openssl, as md5sum and as nobody in particular writes it
_FORMS = (
    re.compile(rf"MD5\s*\((?P<name>.*)\)\s*=\s*{_HEX}"),
    re.compile(rf"\\?{_HEX}\s+\*?(?P<name>\S.*)"),
    re.compile(rf"(?P<name>){_HEX}"),
)


def check(path: Path) -> BadFile | None:
    """Return whether a file is what the checksum beside it says.

    Returns:
        ``None`` if it is, or if there is no checksum; else what is wrong: another checksum is in the file's
        ``.md5``, or none that can be read, or one of another file.
    """
    try:
        told = _told(path)
        if told is None:
            return None
        found = md5(path)
    except OSError as error:
        return BadFile(sentence(error.strerror or str(error)), path=str(path))
    except ValueError as error:
        return BadFile(str(error), path=str(path))
    if found == told:
        return None
    return BadFile(
        f"its MD5 is {found}, and should be {told} as {path.name}{SUFFIX} says: fetch it again",
        path=str(path),
    )


def beside(path: Path) -> Path:
    """Where a file's checksum would be."""
    return path.with_name(path.name + SUFFIX)


def md5(path: Path) -> str:
    """Return the checksum of a file's bytes as they are on disk, in hexadecimal digits. Constant memory.

    Raises:
        OSError: the file cannot be read.
    """
    total = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            total.update(block)
    return total.hexdigest()


def _told(path: Path) -> str | None:
    place = beside(path)
    if not place.is_file():
        return None
    with place.open("rb") as stream:
        lines = stream.read(_LONGEST).decode("utf-8", errors="replace").splitlines()
    found = [match for line in lines for form in _FORMS if (match := form.fullmatch(line.strip()))]
    if not found:
        raise ValueError(f"{place.name} holds no MD5")
    for match in found:
        if Path(match["name"].strip()).name in {"", path.name}:
            return match["hex"].lower()
    raise ValueError(f"{place.name} holds no MD5 of this file")
