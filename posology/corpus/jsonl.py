"""Reads JSON-lines files, plain or gzipped, one passage a line.

Nothing is raised for what a file holds: a line that is no passage is yielded as a
:class:`~posology.errors.BadRecord` and a file that ends early as a
:class:`~posology.errors.BadFile`, in their places, and the good lines around them are kept.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from posology.corpus.record import RecordError, parse
from posology.errors import BadFile, BadRecord
from posology.types import Passage

#: bytes; a longer line is reported and skipped without being held in memory
MAX_LINE = 10_000_000
SUFFIXES = (".jsonl", ".jsonl.gz")

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A passage and where it was read."""

    passage: Passage
    path: Path
    #: counted from 1
    line: int
    #: which of the file's lines that are not blank, counted from 0: the row of the passage's
    #: vector in an array of vectors; bad records count, so that they shift nothing
    row: int


def expand(paths: Iterable[Path]) -> Iterator[Path | BadFile]:
    """The files that ``paths`` name, a folder's ``*.jsonl`` and ``*.jsonl.gz`` in sorted order.

    A file named twice comes once; what is not there or cannot be read is a ``BadFile``.
    """
    seen: set[Path] = set()
    for path in paths:
        try:
            files = [(file, file.resolve()) for file in _named(path)]
        except BadFile as bad:
            yield bad
            continue
        except OSError as error:
            yield BadFile(_sentence(error.strerror or str(error)), path=str(path))
            continue
        for file, identity in files:
            if identity not in seen:
                seen.add(identity)
                yield file


def _named(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.name.endswith(SUFFIXES) and p.is_file())
        if not files:
            raise BadFile("the folder holds no .jsonl or .jsonl.gz file", path=str(path))
        return files
    if not path.exists():
        raise BadFile("no such file or folder", path=str(path))
    return [path]


def read(path: Path, *, after: int = 0) -> Iterator[Record | BadRecord | BadFile]:
    """The records of one file, in constant memory.

    Args:
        path: whether it is gzipped is told from its first two bytes, not from its name.
        after: the lines up to this one are passed over unread.

    Yields:
        For every line after ``after`` that is not blank, its record or what is wrong with it;
        last, a ``BadFile`` when the file could not be read to its end.
    """
    line = row = 0
    try:
        for line, content in _lines(path):
            if content is not None and not content.strip():
                continue
            if line > after:
                yield _record(content, path=path, line=line, row=row)
            row += 1
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        yield BadFile(_sentence(reason or str(error)), path=str(path), line=line or None)


def count_rows(path: Path) -> int:
    """How many lines of a file are not blank, up to where it can be read."""
    rows = 0
    try:
        for _, content in _lines(path):
            rows += content is None or bool(content.strip())
    except (OSError, EOFError, zlib.error):
        pass  # `read` reports it with its line
    return rows


def _record(content: bytes | None, *, path: Path, line: int, row: int) -> Record | BadRecord:
    if content is None:
        return BadRecord(f"longer than {MAX_LINE:,} bytes", path=str(path), line=line)
    try:
        passage = parse(content)
    except RecordError as error:
        return BadRecord(str(error), path=str(path), line=line)
    return Record(passage=passage, path=path, line=line, row=row)


def _lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Numbered lines without their ends; ``None`` stands for one that is too long."""
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        with gzip.open(raw, "rb") if packed else raw as stream:
            yield from _bounded(stream)  # type: ignore[arg-type]  # GzipFile reads like a file


def _bounded(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    line = 0
    while content := stream.readline(MAX_LINE + 1):
        line += 1
        if len(content) > MAX_LINE and not content.endswith(b"\n"):
            while (rest := stream.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                pass
            yield line, None
        else:
            yield line, content.removeprefix(_BOM) if line == 1 else content


def _sentence(reason: str) -> str:
    """Zlib's and the system's words, without their punctuation."""
    return reason.strip().rstrip(".") or "cannot be read"
