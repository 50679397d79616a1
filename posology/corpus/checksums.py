"""Checksums published beside files: ``NAME.md5``, as NLM does for every PubMed file."""

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
#: formats of openssl, of md5sum, and a bare digest
_FORMS = (
    re.compile(rf"MD5\s*\((?P<name>.*)\)\s*=\s*{_HEX}"),
    re.compile(rf"\\?{_HEX}\s+\*?(?P<name>\S.*)"),
    re.compile(rf"(?P<name>){_HEX}"),
)


def check(path: Path) -> BadFile | None:
    """Check a file against the checksum beside it.

    Returns:
        ``None`` if it matches, or if there is no checksum; else the fault: the ``.md5`` holds another checksum, none, or
        that of another file.
    """
    try:
        published = _published(path)
        if published is None:
            return None
        found = md5(path)
    except OSError as error:
        return BadFile(sentence(error.strerror or str(error)), path=str(path))
    except ValueError as error:
        return BadFile(str(error), path=str(path))
    if found == published:
        return None
    return BadFile(
        f"MD5 is {found}, but {path.name}{SUFFIX} has {published}: fetch the file again",
        path=str(path),
    )


def beside(path: Path) -> Path:
    """Return the path of a file's checksum."""
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


def _published(path: Path) -> str | None:
    place = beside(path)
    if not place.is_file():
        return None
    with place.open("rb") as stream:
        lines = stream.read(_LONGEST).decode("utf-8", errors="replace").splitlines()
    found = [match for line in lines for form in _FORMS if (match := form.fullmatch(line.strip()))]
    if not found:
        raise ValueError(f"{place.name} has no MD5")
    for match in found:
        if Path(match["name"].strip()).name in {"", path.name}:
            return match["hex"].lower()
    raise ValueError(f"{place.name} has no MD5 of this file")
