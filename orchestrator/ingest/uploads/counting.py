"""Counting of the records of uploaded files, in a process of its own: it reads all of a file once, in bounded time.

What is read a second time, when it is ingested, then takes about as long.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from posology.corpus.decoding import opened
from posology.corpus.files import count_rows
from posology.errors import BadFile

#: bytes up to which a plain file is counted in this process: the start of another one takes longer
SMALL = 131_072
#: first bytes of files whose size says little of the work: gzip, archives, PDF
_PACKED = (b"\x1f\x8b", b"PK", b"%PDF")
_MIB = 1024 * 1024
#: seconds between two calls of `look`
_LOOK = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Limits of one ingest's files, together."""

    #: MiB, unpacked
    mib: int
    #: records, bad ones included
    records: int
    #: seconds of processor time to read them once
    seconds: int


def count(paths: Sequence[Path], bounds: Bounds, look: Callable[[], None]) -> int:
    """Return the number of records of files. Blocking.

    Args:
        paths: the files.
        bounds: limits of the files.
        look: called now and then; what it raises ends the count.

    Raises:
        BadFile: a limit is exceeded.
    """
    records = (
        sum(map(count_rows, paths)) if all(map(_is_small, paths)) else _apart(paths, bounds, look)
    )
    if records > bounds.records:
        raise _beyond(f"{bounds.records:,} records (got {records:,})", paths[0])
    return records


def _is_small(path: Path) -> bool:
    with path.open("rb") as file:
        return path.stat().st_size <= SMALL and not file.read(4).startswith(_PACKED)


def _apart(paths: Sequence[Path], bounds: Bounds, look: Callable[[], None]) -> int:
    # -P: the current folder has no modules of ours
    command = [sys.executable, "-P", "-m", __name__, str(bounds.mib), str(bounds.seconds)]
    with subprocess.Popen(  # noqa: S603 - our own program; the files' paths are its arguments
        [*command, *(str(path.absolute()) for path in paths)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            while True:
                try:
                    reply, _ = process.communicate(timeout=_LOOK)
                    break
                except subprocess.TimeoutExpired:
                    look()
        finally:
            process.kill()
    if process.returncode == -signal.SIGXCPU:
        raise _beyond(f"{bounds.seconds:,} s of processor time to be read", paths[0])
    if process.returncode:
        raise RuntimeError(f"the process that counts records ended with {process.returncode}")
    found = json.loads(reply)
    if found["records"] is None:
        raise _beyond(f"{bounds.mib:,} MiB, unpacked", paths[0])
    return int(found["records"])


def _beyond(limit: str, path: Path) -> BadFile:
    return BadFile(f"must have <= {limit}: split the file", path=str(path))


def _is_within(paths: Sequence[Path], size: int) -> bool:
    """Return whether files have at most so many bytes, unpacked."""
    for path in paths:
        with opened(path) as stream:
            try:
                while size >= 0 and (block := stream.read(_MIB)):
                    size -= len(block)
            except (OSError, EOFError, zlib.error):
                pass  # its reader says so
    return size >= 0


def main(arguments: Sequence[str]) -> None:
    """Write the number of records of files as JSON; null: they have too many bytes.

    Args:
        arguments: MiB, seconds of processor time, and the files.
    """
    mib, seconds, *names = arguments
    # the system ends this process then
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), resource.RLIM_INFINITY))
    paths = [Path(name) for name in names]
    records = sum(map(count_rows, paths)) if _is_within(paths, int(mib) * _MIB) else None
    sys.stdout.write(json.dumps({"records": records}))


if __name__ == "__main__":
    main(sys.argv[1:])
