"""The files of a batch: questions in, answers out, row by row and never half a row."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from posology.durable import sync_folder
from posology.errors import BadFile
from posology.published.jobs import BatchRow

#: stands for standard input or output
STREAM = "-"
_GZIP = b"\x1f\x8b"
#: the end of a row without an error: it is the last field of a row
_GOOD = b'"error":null}\n'
#: part of a row whose question was rejected
_REJECTED = b',"job":null,"state":null,"result":null,"error":'


@dataclass(frozen=True, kw_only=True, slots=True)
class Questions:
    """The lines of an input file."""

    lines: tuple[bytes, ...]
    #: SHA-256 of the lines, however they were compressed
    digest: str


def read_questions(source: str) -> Questions:
    """Read a file, ``.gz`` too, or standard input.

    Raises:
        BadFile: it cannot be read, or not to its end: a part of a batch is another batch.
    """
    try:
        raw = sys.stdin.buffer.read() if source == STREAM else Path(source).read_bytes()
        if raw.startswith(_GZIP):
            raw = gzip.decompress(raw)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadFile(f"broken compression: {error}", path=source) from None
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=source) from None
    return Questions(lines=tuple(raw.split(b"\n")), digest=hashlib.sha256(raw).hexdigest())


def size(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def check_output(path: Path) -> None:
    """Find out early whether a file can be written.

    Raises:
        BadFile: it cannot.
    """
    if path.exists() and not path.is_file():
        raise BadFile("it is no regular file: write to - and redirect", path=str(path))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise BadFile("its folder is not there, or cannot be written", path=str(path))


class Sink(Protocol):
    """Where rows go, in order."""

    @property
    def rows(self) -> int:
        """How many are there."""

    @property
    def failed(self) -> int:
        """How many of them have an error."""

    def write(self, rows: Sequence[BatchRow]) -> None:
        """Append rows; when this returns, they are kept."""


class StreamSink:
    """Rows for a pipe: what was written before is not known."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.rows = 0
        self.failed = 0

    def write(self, rows: Sequence[BatchRow]) -> None:
        """Append rows."""
        lines = [_line(row) for row in rows]
        self._stream.write(b"".join(lines))
        self._stream.flush()
        self.rows += len(lines)
        self.failed += sum(not line.endswith(_GOOD) for line in lines)


class FileSink:
    """Output file of rows. It has a temporary name until it is complete.

    An incomplete file is therefore never mistaken for a complete one. The temporary name contains the batch, so rows
    of two batches never share a file.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.part = path
        self._file = file
        lines = list(_whole(file, 0))
        self.rows = len(lines)
        self.failed = sum(lines)
        # of what broke off in the middle of a row, nothing is kept
        file.truncate(file.tell())

    def write(self, rows: Sequence[BatchRow]) -> None:
        """Append rows; when this returns, they are kept.

        Raises:
            BadFile: the file system does not take them.
        """
        lines = [_line(row) for row in rows]
        try:
            self._file.write(b"".join(lines))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise BadFile(error.strerror or str(error), path=str(self.part)) from None
        self.rows += len(lines)
        self.failed += sum(not line.endswith(_GOOD) for line in lines)

    def complete(self, path: Path) -> None:
        """Give the file its own name, for good."""
        self.part.replace(path)
        sync_folder(path.parent)


@contextmanager
def file_sink(path: Path, batch: str) -> Iterator[FileSink]:
    """Open a batch's part of an output file, and keep others from writing it.

    Raises:
        BadFile: it cannot be written, or another process writes it.
    """
    part = part_of(path, batch)
    with _opened(part) as file:
        yield FileSink(part, file)


def part_of(path: Path, batch: str) -> Path:
    """The name that a batch's output has until it is complete."""
    return path.with_name(f"{path.name}.{batch[-12:]}.part")


def _opened(part: Path) -> BinaryIO:
    try:
        file = part.open("a+b")
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(part)) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # the process that had it may just have given it its own name
        if os.path.samestat(os.fstat(file.fileno()), part.stat()):
            file.seek(0)
            return file
    except OSError:
        pass
    file.close()
    raise BadFile("another process writes it: wait for that one", path=str(part))


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """An output file that has its name already."""

    rows: int
    failed: int
    #: the last row that has a job, ``None`` where there is none
    last: BatchRow | None


def read_written(path: Path) -> Written | None:
    """Read an output file; ``None``: it is not one.

    Raises:
        BadFile: it cannot be read.
    """
    rows, failed, last = 0, 0, b""
    try:
        with path.open("rb") as file:
            for line in file:
                if not line.startswith(_start(rows)) or not line.endswith(b"}\n"):
                    return None
                rows, failed = rows + 1, failed + (not line.endswith(_GOOD))
                last = last if _REJECTED in line else line
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
    with suppress(ValueError):
        found = BatchRow.model_validate_json(last) if last else None
        return Written(rows=rows, failed=failed, last=found)
    return None


def _whole(file: BinaryIO, first: int) -> Iterator[bool]:
    """Whether each row that is whole has an error; leaves the file at their end."""
    end = file.tell()
    for number, line in enumerate(iter(file.readline, b""), first):
        if not line.startswith(_start(number)) or not line.endswith(b"}\n"):
            break
        end = file.tell()
        yield not line.endswith(_GOOD)
    file.seek(end)


def _start(number: int) -> bytes:
    return b'{"row":%d,' % number


def _line(row: BatchRow) -> bytes:
    return row.model_dump_json().encode() + b"\n"
